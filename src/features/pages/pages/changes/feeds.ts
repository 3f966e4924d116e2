import { MirrorError } from '../../../../base/errors.ts'
import { counted } from '../../../../base/text.ts'
import { toIso } from '../../../../base/time.ts'
import { doubtSentence } from '../../../../base/domain/doubts.ts'
import { createDetailer } from '../../../../server/followers/details.ts'
import type { PackageFilter } from '../../../../server/followers/filter.ts'
import { type SourceName, isPrivateSource } from '../../../../base/domain/sources.ts'
import type { LoggedSnapshot } from '../../../../store/changes/log.ts'
import { MAX_TRACKED } from '../../../../store/changes/tracker.ts'
import { type WebFeed, type FeedEntry, feedUrn } from '../../feed.ts'
import { type PageCall, type PageView, numberOf, parameter } from '../../page.ts'
import { createLeft } from '../../../../store/changes/left.ts'
import { askedSources, changeWords, doubtWords, doubtsIn } from './log.ts'
import { askedPackages, whyUnrecordedHere } from './packages.ts'

/** Entries of a feed's page, and names in the text of an entry. */
const ENTRIES = 50
const NAMES = 50
/** Snapshots on a page of a filtered feed, and records of each that concern what is asked and are compared. */
const FILTERED = 20
const COMPARED = 100
/**
 * Content of records that a filter rules out, bytes: of one snapshot, more than the 10,000 names that it lists have; and of a page,
 * which ends at the snapshot with which that many were read, after about a second.
 */
const EXAMINED = 2 ** 28
const EXAMINED_OF_PAGE = 2 ** 25

/** Throws `bad_request` for a filter without a value: a feed of everything is not what was meant. A page has forms, which send all of them. */
function refuseEmpty(query: URLSearchParams): void {
  const empty = ['source', 'ecosystem', 'purl', 'tag'].find((name) => query.get(name)?.trim() === '')
  if (empty !== undefined) throw new MirrorError('bad_request', `${empty} is empty: give a value, or omit it`)
}

/** Loads the changes as an Atom feed (RFC 4287). */
export function loadChangesFeed(call: PageCall): PageView {
  const { query, reads, ui, absolute } = call
  refuseEmpty(query)
  const ecosystem = parameter(query, 'ecosystem')
  const purl = parameter(query, 'purl')
  const tag = parameter(query, 'tag')
  const asks = askedPackages(call, ecosystem)
  const filter = asks?.filter ?? null
  const sources = filter === null ? askedSources(call) : (['osv'] as const)
  const before = numberOf(query, 'before')
  const most = filter === null ? ENTRIES : FILTERED
  const found = reads.changes.listLoggedBefore(sources, before ?? Number.MAX_SAFE_INTEGER, most + 1)
  const source = parameter(query, 'source')
  sources.forEach(call.mark)
  const subject = asks?.subject ?? source
  const entries: FeedEntry[] = []
  const shown: LoggedSnapshot[] = []
  let examined = 0
  for (const row of found.slice(0, most)) {
    if (examined > EXAMINED_OF_PAGE) break
    shown.push(row)
    if (filter === null) {
      entries.push(entryOf(call, row))
      continue
    }
    const concerning = filteredEntry(call, row, filter, subject)
    examined += concerning.examined
    if (concerning.entry !== null) entries.push(concerning.entry)
  }
  const title = subject === '' ? 'Changes on this mirror' : `Changes of ${subject} on this mirror`
  // One id for one set of sources: a feed with a key shows other entries than one without.
  const name = `feed ${sources.filter(isPrivateSource).length > 0 ? 'all' : 'open'} ${source}`
  const id = urn(call, filter === null ? name : `${name} ${ecosystem} ${purl}${tag && ` of ${tag}`}`)
  const self = { source, ecosystem, purl, tag }
  const feed: WebFeed = {
    id,
    title,
    doubt: doubtOf(call, { sources, isAll: filter === null && source === '', filter, entries }),
    updated: toIso(shown[0]?.publishedAt ?? publishedAt(call, sources)),
    self: absolute(ui('changes.atom', { ...self, before })),
    home: absolute(ui('changes', { source })),
    next: found.length > shown.length ? absolute(ui('changes.atom', { ...self, before: shown.at(-1)?.id })) : null,
    entries,
  }
  return { title, blocks: [], feed }
}

/** What a feed is of. */
interface FeedOf {
  readonly sources: readonly SourceName[]
  /** Whether it is of everything. */
  readonly isAll: boolean
  readonly filter: PackageFilter | null
  readonly entries: readonly FeedEntry[]
}

/** Says why a feed without entries is no sign that nothing changed; null: nothing is known to be. */
function doubtOf(call: PageCall, { sources, isAll, filter, entries }: FeedOf): string | null {
  const empty = isAll ? null : emptyWords(call, sources)
  return empty ?? (entries.length > 0 ? null : whyUnrecordedHere(call, filter))
}

/** Says that there is nothing yet that could have changed; null: there is. */
function emptyWords({ reads }: PageCall, sources: readonly SourceName[]): string | null {
  const empty = sources.filter((one) => reads.snapshots.readSnapshot(one) === null)
  return empty.length === 0 ? null : `nothing of ${empty.join(', ')} is mirrored yet, so no change of it is known`
}

/** When the last snapshot of these sources was published, for a feed without entries; now where none is stored. */
function publishedAt({ reads, now }: PageCall, sources: readonly SourceName[]): number {
  const dates = sources.flatMap((one) => reads.snapshots.readSnapshot(one)?.publishedAt ?? [])
  return dates.length === 0 ? now : Math.max(...dates)
}

/** The entry of a snapshot in a filtered feed; null: nothing in it concerns what is asked. */
interface FilteredEntry {
  readonly entry: FeedEntry | null
  /** Content of records that the filter ruled out, bytes. */
  readonly examined: number
}

/** Tells the differences that one snapshot made for some packages. The filter is asked of every name before any is left out. */
function filteredEntry(call: PageCall, row: LoggedSnapshot, filter: PackageFilter, subject: string): FilteredEntry {
  if (row.previous === null) return { entry: null, examined: 0 }
  const plain = entryOf(call, row)
  const id = urn(call, `entry ${row.id} ${row.source} ${row.snapshot} of ${subject}`)
  if (!row.complete) return { entry: { ...plain, id }, examined: 0 }
  const found = differencesIn(call, row, filter)
  const { lines, more, differences, doubtful, examined } = found
  if (lines.length + more.length === 0) return { entry: null, examined }
  const what = lines.length === 0 ? more[0] : counted(differences, 'difference')
  const title = `${subject}: ${what}${doubtful > 0 ? ', doubtful' : ''}`
  const text = [...lines.slice(0, NAMES), ...more].join('\n')
  return { entry: { ...plain, id, title, text }, examined }
}

/** The differences of a snapshot that concern what is asked, as lines. */
interface Concerning {
  readonly lines: readonly string[]
  /** What is not among the lines. */
  readonly more: readonly string[]
  readonly differences: number
  /** Records whose change the guard doubted. */
  readonly doubtful: number
  readonly examined: number
}

function differencesIn({ reads }: PageCall, row: LoggedSnapshot, filter: PackageFilter): Concerning {
  const detailer = createDetailer(reads, row.id, filter, EXAMINED)
  const names = reads.changes.listNames(row.id, MAX_TRACKED)
  const doubted = doubtsIn(reads, row)
  const lines: string[] = []
  let compared = 0
  let differences = 0
  let doubtful = 0
  const unseen = names.findIndex((name) => {
    if (compared >= COMPARED || detailer.isFull()) return true
    const detail = detailer.describe({ ...name, log: row.id, snapshot: row.snapshot, publishedAt: row.publishedAt })
    if (detail === null) return false
    const doubts = doubted.get(name.name) ?? []
    compared++
    differences += detail.words.length
    if (doubts.length > 0) doubtful++
    const words = [...doubts.map(doubtSentence), ...detail.words]
    lines.push(...words.map((text) => `${name.name}: ${text}`))
    return false
  })
  const more: string[] = []
  const unknown = detailer.notJudged()
  if (lines.length > NAMES) more.push(`and ${counted(lines.length - NAMES, 'more difference')}`)
  if (unknown > 0) more.push(`${counted(unknown, 'changed record')} could not be compared`)
  if (unseen >= 0)
    more.push('more of the changed records may concern it than are compared here: see the page of this snapshot')
  return { lines, more, differences, doubtful, examined: detailer.examined() }
}

function entryOf(call: PageCall, row: LoggedSnapshot): FeedEntry {
  const { id, source, snapshot, publishedAt } = row
  const { reads, ui, absolute } = call
  const names = reads.changes.listNames(id, NAMES + 1)
  const doubted = doubtsIn(reads, row)
  const left = createLeft(reads)
  const lines = names.slice(0, NAMES).map(({ name, change }) => {
    const isLeft = source === 'osv' && change === 'removed' && left(name, snapshot) !== null
    const doubts = (doubted.get(name) ?? []).map((doubt) => `: ${doubtSentence(doubt)}`)
    return `${isLeft ? 'left' : change} ${name}${doubts.join('')}`
  })
  const doubts = doubtWords(reads, row)
  const words = changeWords(reads, row)
  const more = names.length > NAMES ? ['…'] : []
  return {
    id: urn(call, `entry ${id} ${source} ${snapshot}`),
    title: `${source}: ${words}${doubts.length > 0 ? ', doubtful' : ''}`,
    updated: toIso(publishedAt),
    href: absolute(ui('changes', { entry: id, source: isPrivateSource(source) ? source : '' })),
    category: source,
    text: [words, ...doubts, ...lines, ...more].join('\n'),
  }
}

function urn({ reads }: PageCall, name: string): string {
  return feedUrn(reads.ledger.readIdentity(), name)
}
