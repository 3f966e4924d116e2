import { findMissingNamed } from '../../../server/lookup/missing-record.ts'
import { findItems, findRecordIds, packageOfPurl, referenceOfPurl } from '../../../server/lookup/named.ts'
import { fieldsOfItem } from '../../../base/json/forms/item-fields.ts'
import { fieldsOf } from '../../../base/json/objects.ts'
import type { Block } from '../blocks.ts'
import { type Cell, code, count, link, plain } from '../../../answers/cells.ts'
import { type PageCall, type PageView, parameter } from '../page.ts'
import { noViews } from './ecosystems.ts'

/** Results of one kind on a page. */
const PAGE = 50

/** Loads the page of results of the search box, by kind. */
export function loadSearch(call: PageCall): PageView {
  const given = parameter(call.query, 'q')
  const query = referenceOfPurl(given) ?? given
  if (query === '') return { title: 'Search', blocks: [HELP] }
  return query.startsWith('pkg:') ? byPurl(call, query) : byText(call, query)
}

const HELP: Block = {
  kind: 'notice',
  tone: 'plain',
  title: 'What can be found',
  text:
    'The id of a record or its beginning; a CVE or another id that records name; the exact name of a package; a purl; ' +
    'and, with a local key, the name of an image tag, or a digest: its first 8 digits or more.',
}

/** Finds the package of a purl, in all versions: `pkg:npm/lodash`. */
function byPurl(call: PageCall, purl: string): PageView {
  const title = `Search: ${purl}`
  const named = packageOfPurl(purl)
  if (named === null) {
    const text = 'No ecosystem of OSV has packages of this type of purl.'
    return { title, blocks: [{ kind: 'notice', tone: 'warn', title: 'Unknown type', text }] }
  }
  const { ecosystem: base, name, version } = named
  const found = call.views((views) => views.listCandidates(base, name, '', PAGE + 1))
  if (found === null) return { title, blocks: [noViews(call)] }
  const all = link(`All records of ${name} (${base})`, call.ui('package', { ecosystem: base, name }))
  const note = version === '' ? {} : { note: 'In any version; the record says which ones are affected.' }
  return {
    title,
    blocks: [
      { kind: 'facts', rows: [['package', all]] },
      recordTable(
        call,
        'Records that name this package',
        found.slice(0, PAGE).map(({ id }) => id),
        note,
      ),
    ],
  }
}

function byText(call: PageCall, query: string): PageView {
  const after = parameter(call.query, 'after')
  const blocks = [...recordBlocks(call, query), ...indexBlocks(call, query, after), ...imageBlocks(call, query)]
  const found = blocks.some((block) => block.kind === 'table')
  const nothing: Block = {
    kind: 'notice',
    tone: 'plain',
    title: 'Nothing was found',
    text: 'Names of packages and other ids are compared as a whole; ids of records by their beginning.',
  }
  return { title: `Search: ${query}`, blocks: found ? blocks : [missingBlock(call, query) ?? nothing, ...blocks] }
}

/** Says that a record of this id is missing here, or may be. */
function missingBlock({ reads }: PageCall, query: string): Block | null {
  const missing = findMissingNamed(reads, query)
  return missing && { kind: 'notice', tone: 'warn', title: 'Nothing was found', text: missing.message }
}

/** Records whose ids begin with the text, as it is and in upper case. */
function recordBlocks(call: PageCall, query: string): Block[] {
  const ids = findRecordIds(call.reads.osv, query, PAGE + 1)
  if (ids.length === 0) return []
  const note = ids.length > PAGE ? { note: `The first ${PAGE}: type more of the id.` } : {}
  return [recordTable(call, 'Records with this id', ids.slice(0, PAGE), note)]
}

/** What the index of the views finds: other ids, and packages. */
function indexBlocks(call: PageCall, query: string, after: string): Block[] {
  const { ui } = call
  const found = call.views((views) => ({
    ids: views.listAliasIds(query, after, PAGE + 1),
    packages: views.listPackagesNamed(query, PAGE + 1),
  }))
  if (found === null) return [noViews(call)]
  const { ids, packages } = found
  const shown = ids.slice(0, PAGE)
  const next = ids.length > PAGE ? ui('search', { q: query, after: shown.at(-1) }) : null
  const named: Block = {
    kind: 'table',
    title: 'Packages of this name',
    ...(packages.length > PAGE && { note: `In the first ${PAGE} ecosystems that have it.` }),
    columns: ['Package', 'Ecosystem', 'Records'],
    rows: packages
      .slice(0, PAGE)
      .map(({ ecosystem, name, records }) => [
        link(name, ui('package', { ecosystem, name })),
        plain(ecosystem),
        count(records),
      ]),
    empty: 'none',
  }
  return [
    ...(shown.length === 0 ? [] : [{ ...recordTable(call, 'Records that name this id', shown, {}), next }]),
    ...(packages.length === 0 ? [] : [named]),
  ]
}

function recordTable({ ui, reads }: PageCall, title: string, ids: readonly string[], more: { note?: string }) {
  return {
    kind: 'table',
    title,
    ...more,
    columns: ['Record', 'Modified'],
    rows: ids.map((id) => [code(id, ui('record', { id })), plain(reads.osv.readEntry(id)?.modified)]),
    empty: 'No record of this mirror names it.',
  } as const satisfies Block
}

/** Images and tags that name the text, for clients with a key. */
function imageBlocks({ reads, signedIn, ui, root }: PageCall, query: string): Block[] {
  if (reads.snapshots.readSnapshot('catalog') === null) return []
  if (!signedIn) {
    const text = 'Names of tags and digests are searched for clients with a local key.'
    const links = [link('Sign in', ui('sign-in'))]
    return [{ kind: 'notice', tone: 'plain', title: 'Images and tags', text, links }]
  }
  const found = findItems(reads.catalog, query, PAGE)
  if (found.length === 0) return []
  return [
    {
      kind: 'table',
      title: 'Images and tags',
      columns: ['Item', 'Names', 'List'],
      rows: found.map(({ list, id, body }): Cell[] => {
        return [code(id, ui('tag', { id })), plain(namesOf(body)), code(list, root(list))]
      }),
      empty: 'none',
    },
  ]
}

/** Texts of an item that people know it by. */
function namesOf(body: Buffer): string {
  const fields = fieldsOfItem(fieldsOf(JSON.parse(body.toString('utf8'))), 'tags')
  const texts = ['repository', 'name', 'tag', 'digest'].map((name) => fields[name])
  return texts.filter((text) => typeof text === 'string').join(' ')
}
