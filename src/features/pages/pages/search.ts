import { link } from '../../lookup/answers/cells.ts'
import { findMissingNamed, whyNotAllSearched } from '../../../server/lookup/missing-record.ts'
import { referenceOfPurl, whyUnnamed } from '../../../server/lookup/named.ts'
import { findNamedItems, findRecords, moreNotice, searchParts } from '../../lookup/search.ts'
import { asSentence } from '../../lookup/answers/html.ts'
import type { Block } from '../blocks.ts'
import { answerBlocks } from '../links.ts'
import { type PageCall, type PageView, parameter } from '../page.ts'
import { NOTHING_MIRRORED, noViews } from './ecosystems.ts'

/** Results of one kind on a page. */
const PAGE = 50

/** Loads the page of results of the search box, by kind. */
export function loadSearch(call: PageCall): PageView {
  const given = parameter(call.query, 'q')
  const query = referenceOfPurl(given) ?? given
  if (query === '') return { title: 'Search', blocks: [HELP] }
  const title = `Search: ${query}`
  const found = findRecords(call, query, PAGE, parameter(call.query, 'after'))
  if (found === null) return { title, blocks: [UNKNOWN_TYPE] }
  const { own, others, packages, named, isAnyVersion, hasIndex, next } = found
  const items = named !== null || !call.signedIn ? [] : findNamedItems(call, query, PAGE + 1)
  const cut = <Row>(list: readonly Row[]): Row[] => list.slice(0, PAGE)
  const records = [...cut(own), ...cut(others)]
  const more = [own, packages, items].some(({ length }) => length > PAGE)
  const parts = searchParts({ records, packages: cut(packages), items: cut(items), isAnyVersion, next })
  const isEmpty = parts.length === 0
  if (more) parts.push(moreNotice(PAGE, 'type more of the name or id'))
  const pageAfter = (after: string): string => call.ui('search', { q: query, after })
  const nothing = isEmpty && (hasIndex || named === null) ? nothingFound(call, query, named) : null
  return {
    title,
    blocks: [
      ...(nothing === null ? [] : [nothing]),
      ...(named === null ? [] : [packageBlock(call, named)]),
      ...(CVE.test(query) ? [cveBlock(call, query.toUpperCase())] : []),
      ...answerBlocks(call, { parts }, { pageAfter }),
      ...(hasIndex || nothing === NOTHING_MIRRORED ? [] : [noViews(call)]),
      ...(named === null ? signInNotice(call) : []),
    ],
  }
}

const HELP: Block = {
  kind: 'notice',
  tone: 'plain',
  title: 'What can be found',
  text:
    'The id of a record or its beginning; a CVE or another id that records name; the exact name of a package; a purl; ' +
    'and, with a local key, the name of an image tag, or a digest: its first 8 digits or more.',
}

const UNKNOWN_TYPE: Block = {
  kind: 'notice',
  tone: 'warn',
  title: 'Unknown type',
  text: 'No ecosystem of OSV has packages of this type of purl.',
}

/** Leads to the package that a purl names. */
function packageBlock({ ui }: PageCall, { ecosystem, name }: { ecosystem: string; name: string }): Block {
  const all = link(`All records of ${name} (${ecosystem})`, ui('package', { ecosystem, name }))
  return { kind: 'facts', rows: [['package', all]] }
}

const CVE = /^CVE-\d{4}-\d{4,}$/i

/** Leads to all that is known of a CVE: also patches, VEX and tags. */
function cveBlock({ ui }: PageCall, id: string): Block {
  return { kind: 'facts', rows: [['vulnerability', link(`All about ${id}`, ui('cve', { id }))]] }
}

/** The package that a purl names; null: the text is no purl. */
type Named = NonNullable<ReturnType<typeof findRecords>>['named']

/** Says that nothing was found, or that a record of this id is missing here, or may be. */
function nothingFound({ reads, signedIn }: PageCall, query: string, named: Named): Block {
  const isPurl = named !== null
  const title = 'Nothing was found'
  const missing = isPurl ? null : findMissingNamed(reads, query)
  if (missing !== null) return { kind: 'notice', tone: 'warn', title, text: asSentence(missing.message) }
  if (reads.snapshots.readSnapshot('osv') === null) return NOTHING_MIRRORED
  const unnamed = isPurl || !signedIn ? null : whyUnnamed(reads, query)
  if (unnamed !== null) return { kind: 'notice', tone: 'warn', title, text: asSentence(unnamed) }
  const outside = whyNotAllSearched(reads, named?.ecosystem ?? null)
  if (outside !== null) return { kind: 'notice', tone: 'warn', title, text: asSentence(outside) }
  const text = isPurl
    ? 'No record of this mirror names this package.'
    : 'Names of packages and other ids are compared as a whole; ids of records by their beginning.'
  return { kind: 'notice', tone: 'plain', title, text }
}

/** Says that images and tags are searched for clients with a key, where this mirror has some. */
function signInNotice({ reads, signedIn, ui }: PageCall): Block[] {
  if (signedIn || reads.snapshots.readSnapshot('catalog') === null) return []
  const text = 'Names of tags and digests are searched for clients with a local key.'
  return [{ kind: 'notice', tone: 'plain', title: 'Images and tags', text, links: [link('Sign in', ui('sign-in'))] }]
}
