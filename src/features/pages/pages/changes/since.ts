import { type FoundChanges, countWords, findChanges } from '../../../../server/followers/changes.ts'
import {
  type SincePlace,
  firstStoredText,
  isSnapshotName,
  placeByDefault,
  placesSince,
  wentBackText,
} from '../../../../server/followers/since.ts'
import { MirrorError } from '../../../../base/errors.ts'
import { clip } from '../../../../base/text.ts'
import { SINCE_FORMS, readSince, toIso } from '../../../../base/time.ts'
import { type SourceName, SOURCES } from '../../../../base/domain/sources.ts'
import { changedNames, notJudgedWords } from '../../../lookup/change-tables.ts'
import type { Block } from '../../blocks.ts'
import { answerBlocks } from '../../links.ts'
import { type Cell, plain, withTimes } from '../../../lookup/answers/cells.ts'
import { asSentence } from '../../../lookup/answers/html.ts'
import { type PageCall, type PageView, choiceOf, parameter } from '../../page.ts'
import { askedSources, labelerOf } from './log.ts'
import { askedPackages, whyUnrecordedHere } from './packages.ts'
import { SHOWN, beginning, formBlock, knownRows, sinceBeginning } from './parts.ts'

/** Rows on a page. */
const PAGE = 100

/**
 * Everything that changed since a date or a snapshot, each name once; of records also what changed, and of a package alone.
 * Without a date for a week, or since the log begins.
 */
export function sinceView(call: PageCall): PageView {
  const { query, reads } = call
  const named = parameter(query, 'since')
  const purl = parameter(query, 'purl')
  const tag = parameter(query, 'tag')
  const isOfPackages = purl !== '' || tag !== ''
  const chosen = choiceOf(query, 'source', SOURCES)
  const usual = isOfPackages ? 'osv' : null
  const wanted = chosen === '' ? usual : chosen
  if (isOfPackages && wanted !== 'osv')
    throw new MirrorError('bad_request', 'a package is named by records alone: choose the source osv')
  const asks = askedPackages(call, '')
  const filter = asks?.filter ?? null
  const place = named === '' ? placeByDefault(reads, call.now) : placeOf(call, named, wanted)
  const source = place?.source ?? wanted ?? 'osv'
  const since = named || (typeof place?.at === 'number' ? toIso(place.at) : '')
  const title = `Changes of ${clip(asks?.subject ?? source, 100)}${since && ` since ${withTimes(clip(since, 64))}`}`
  const note = place && firstStoredText(place)
  const blocks = [formBlock(call, source), ...(note === null ? [] : [youngNotice(note)])]
  if (reads.snapshots.readSnapshot(source) === null)
    return { title, status: 404, blocks: [...blocks, notMirrored(source)] }
  call.mark(source)
  const asked = {
    after: parameter(query, 'after') || null,
    limit: PAGE,
    detailed: source === 'osv',
    now: call.now,
  }
  const found = place === null ? null : findConcerning(reads, place, { ...asked, filter })
  if (found === null) {
    const rows = [...beginning(call, source), ...sinceBeginning(call, source, { purl, tag })]
    return { title, status: 404, blocks: [...blocks, { kind: 'facts', rows }, UNKNOWN] }
  }
  if (!found.complete) {
    const later = found.namedSince
    const rows =
      later === undefined ? [] : knownRows(call.ui, `changes since ${later}`, { source, since: later, purl, tag })
    const facts: Block = { kind: 'facts', rows: [...countRows(found), ...rows] }
    return { title, blocks: [formBlock(call, source), EVERYTHING, facts] }
  }
  const first = asked.after === null ? null : { source, since, purl, tag }
  const next = found.next === null ? null : { source, since: place?.snapshot, purl, tag, after: found.next }
  const back = place && wentBackText(reads, place, found.to)
  const isEmpty = found.changes.length + (found.notJudged ?? 0) === 0 && found.next === null
  const unknown = isEmpty ? whyUnrecordedHere(call, filter) : null
  const doubt = asks?.doubt ?? null
  const notices = [
    ...(back === null ? [] : [backNotice(back)]),
    ...(unknown === null ? [] : [unknownNotice('No record names this package', unknown)]),
    ...(doubt === null ? [] : [unknownNotice('The SBOM may lack packages of the tag', doubt)]),
  ]
  return { title, blocks: [...blocks, ...notices, ...tableOf(call, found, { first, next })] }
}

/** Pages of changes that are compared until one has what a filter asks for. */
const MOST_PAGES = 4

/** Finds a page of changes, and with a filter the first one that has any. */
function findConcerning(
  reads: PageCall['reads'],
  place: SincePlace,
  asked: Parameters<typeof findChanges>[3],
): FoundChanges | null {
  let found = findChanges(reads, place, place.snapshot, asked)
  let notJudged = 0
  for (let pages = 1; pages < MOST_PAGES; pages++) {
    if (found === null || found.next === null || found.changes.length > 0) break
    notJudged += found.notJudged ?? 0
    found = findChanges(reads, place, place.snapshot, { ...asked, after: found.next })
  }
  return found && { ...found, notJudged: notJudged + (found.notJudged ?? 0) }
}

/** Says how many names changed, where none is listed. */
function countRows({ counts }: FoundChanges): [string, Cell][] {
  return counts === undefined ? [] : [['changes', plain(countWords(counts))]]
}

type PageParameters = Record<string, string | undefined>

function tableOf(
  call: PageCall,
  found: FoundChanges,
  { first, next }: { readonly first: PageParameters | null; readonly next: PageParameters | null },
): Block[] {
  const { source, from, to, notJudged = 0 } = found
  const label = labelerOf(call, source)
  const named = found.changes.map((one) => {
    const name = 'id' in one ? one.id : one.path
    return { ...one, name, ...label({ name }) }
  })
  const unknown = notJudged === 0 ? [] : [notJudgedWords(notJudged)]
  const ofPackages = ['purl', 'tag'].some((name) => parameter(call.query, name) !== '')
  const further = 'none of the names compared so far concerns it; the next page compares further ones'
  const table = changedNames(
    source,
    named,
    {
      about: [`from snapshot ${from.slice(0, 12)} to ${to.slice(0, 12)}`, ...unknown],
      total: null,
      ...(ofPackages && { empty: NONE_LISTED }),
      ...(next !== null && { next: next['after'] ?? '', empty: further }),
    },
    SHOWN,
  )
  const pageAfter = (): string => (next === null ? '' : call.ui('changes', next))
  return answerBlocks(call, { parts: [table] }, { pageAfter, first: first && call.ui('changes', first) })
}

const NONE_LISTED = 'no listed change is about what was asked for; names of packages are compared as a whole'

function youngNotice(text: string): Block {
  return { kind: 'notice', tone: 'plain', title: 'The mirror is younger than that', text: withTimes(asSentence(text)) }
}

function backNotice(text: string): Block {
  return { kind: 'notice', tone: 'warn', title: 'Older data', text: asSentence(text) }
}

function unknownNotice(title: string, text: string): Block {
  return { kind: 'notice', tone: 'warn', title, text: asSentence(text) }
}

const UNKNOWN: Block = {
  kind: 'notice',
  tone: 'warn',
  title: 'The log does not reach back that far',
  text: 'Everything may have changed since then. Follow the link above, or ask since a later time; a program reads everything and follows from there. The log is kept for data.historyDays days, and only the last part of it where very much changed.',
}

const notMirrored = (source: SourceName): Block => ({
  kind: 'notice',
  tone: 'warn',
  title: `Nothing of ${source} is mirrored yet`,
  text: 'Its changes are listed from its first snapshot on.',
})

const EVERYTHING: Block = {
  kind: 'notice',
  tone: 'warn',
  title: 'Everything may have changed',
  text: 'More changed since then than the log lists by name: read everything, and follow from there.',
}

/** Returns where the log continues from a time or a snapshot; null when it does not know it. Throws `bad_request`. */
function placeOf(call: PageCall, since: string, wanted: SourceName | null): SincePlace | null {
  const { reads, now } = call
  const allowed = askedSources(call)
  if (readSince(since, now) === null && !isSnapshotName(since))
    throw new MirrorError(
      'bad_request',
      `since "${since.slice(0, 100)}" is none of: a snapshot (12 to 64 hexadecimal digits) or its number, ${SINCE_FORMS}`,
    )
  const places = placesSince(reads, since, wanted, now).filter(({ source }) => allowed.includes(source))
  const [place, another] = places
  if (another !== undefined && wanted === null)
    throw new MirrorError('bad_request', 'since is a snapshot of two sources: choose one')
  return place ?? null
}
