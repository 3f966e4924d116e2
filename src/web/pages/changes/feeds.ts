import { MirrorError } from '../../../core/errors.ts'
import { counted } from '../../../core/text.ts'
import { toIso } from '../../../core/time.ts'
import { doubtSentence } from '../../../domain/doubts.ts'
import { createDetailer } from '../../../api/followers/details.ts'
import type { PackageFilter } from '../../../api/followers/filter.ts'
import { type SourceName, isPrivateSource } from '../../../domain/sources.ts'
import type { LoggedSnapshot } from '../../../store/changes/log.ts'
import { type WebFeed, type FeedEntry, feedUrn } from '../../feed.ts'
import { type PageCall, type PagePath, type PageView, numberOf, parameter } from '../../page.ts'
import { askedSources, changeWords, doubtWords, doubtsIn } from './log.ts'
import { askedPackages } from './packages.ts'

/** Entries of a feed's page, and names in the text of an entry. */
const ENTRIES = 50
const NAMES = 50
/** Snapshots on a page of a filtered feed, and records of each that are compared. */
const FILTERED = 20
const COMPARED = 100

/** Throws `bad_request` for a filter without a value: a feed of everything is not what was meant. A page has forms, which send all of them. */
function refuseEmpty(query: URLSearchParams): void {
  const empty = ['source', 'ecosystem', 'purl', 'tag'].find(
    (name) => query.get(name)?.trim() === '',
  )
  if (empty !== undefined) throw new MirrorError('bad_request', `${empty} is empty: give a value, or omit it`) // prettier-ignore
}

/** Loads the changes as a feed: Atom (RFC 4287) or JSON Feed. */
export function loadChangesFeed(call: PageCall, path: PagePath): PageView {
  const { query, reads, ui, absolute } = call
  refuseEmpty(query)
  const [ecosystem, purl] = [parameter(query, 'ecosystem'), parameter(query, 'purl')]
  const tag = parameter(query, 'tag')
  const asks = askedPackages(call, ecosystem)
  const filter = asks?.filter ?? null
  const sources = filter === null ? askedSources(call) : (['osv'] as const)
  const before = numberOf(query, 'before')
  const most = filter === null ? ENTRIES : FILTERED
  const found = reads.changes.listLoggedBefore(sources, before ?? Number.MAX_SAFE_INTEGER, most + 1) // prettier-ignore
  const shown = found.slice(0, most)
  const source = parameter(query, 'source')
  const subject = asks?.subject ?? source
  const title = subject === '' ? 'Changes on this mirror' : `Changes of ${subject} on this mirror`
  // One id for one set of sources: a feed with a key shows other entries than one without.
  const name = `feed ${sources.filter(isPrivateSource).length > 0 ? 'all' : 'open'} ${source}`
  const id = urn(
    call,
    filter === null ? name : `${name} ${ecosystem} ${purl}${tag && ` of ${tag}`}`,
  )
  const self = { source, ecosystem, purl, tag }
  const feed: WebFeed = {
    ...{ id, title, updated: toIso(shown[0]?.publishedAt ?? publishedAt(call, sources)) },
    self: absolute(ui(path, { ...self, before })),
    home: absolute(ui('changes', { source })),
    next: found.length > most ? absolute(ui(path, { ...self, before: shown.at(-1)?.id })) : null,
    entries: shown.flatMap((row) =>
      filter === null ? [entryOf(call, row)] : filteredEntry(call, row, filter, subject),
    ),
  }
  return { title, blocks: [], feed }
}

/** When the last snapshot of these sources was published, for a feed without entries; now where none is stored. */
function publishedAt({ reads, now }: PageCall, sources: readonly SourceName[]): number {
  const dates = sources.flatMap((one) => reads.snapshots.readSnapshot(one)?.publishedAt ?? [])
  return dates.length === 0 ? now : Math.max(...dates)
}

/** The differences that one snapshot made for some packages; no entry where there are none. */
function filteredEntry(
  call: PageCall,
  row: LoggedSnapshot,
  filter: PackageFilter,
  subject: string,
): FeedEntry[] {
  if (row.previous === null) return []
  const plain = entryOf(call, row)
  const id = urn(call, `entry ${row.id} ${row.source} ${row.snapshot} of ${subject}`)
  if (!row.complete) return [{ ...plain, id }]
  const { reads } = call
  const detailer = createDetailer(reads, row.id, filter)
  const names = reads.changes.listNames(row.id, COMPARED + 1)
  const doubted = doubtsIn(reads, row)
  const lines: string[] = []
  let [at, differences, doubtful] = [0, 0, 0]
  for (; at < Math.min(names.length, COMPARED) && !detailer.isFull(); at++) {
    const name = names[at]
    if (name === undefined) break
    const detail = detailer.describe({ ...name, log: row.id, snapshot: row.snapshot })
    if (detail === null) continue
    const doubts = doubted.get(name.name) ?? []
    differences += detail.words.length
    doubtful += doubts.length > 0 ? 1 : 0
    lines.push(...[...doubts.map(doubtSentence), ...detail.words].map((text) => `${name.name}: ${text}`)) // prettier-ignore
  }
  const unknown = detailer.notJudged()
  const more = [
    ...(unknown > 0 ? [`${counted(unknown, 'changed record')} could not be compared`] : []),
    ...(at < names.length ? ['more records changed than are compared here: see the page of this snapshot'] : []),
  ] // prettier-ignore
  if (lines.length + more.length === 0) return []
  const found = lines.length === 0 ? more[0] : counted(differences, 'difference')
  const title = `${subject}: ${found}${doubtful > 0 ? ', doubtful' : ''}`
  return [{ ...plain, id, title, text: [...lines.slice(0, NAMES), ...more].join('\n') }]
}

function entryOf(call: PageCall, row: LoggedSnapshot): FeedEntry {
  const { id, source, snapshot, publishedAt } = row
  const { reads, ui, absolute } = call
  const names = reads.changes.listNames(id, NAMES + 1)
  const doubted = doubtsIn(reads, row)
  const lines = names.slice(0, NAMES).map(({ name, change }) => {
    const doubts = (doubted.get(name) ?? []).map((doubt) => `: ${doubtSentence(doubt)}`)
    return `${change} ${name}${doubts.join('')}`
  })
  const doubts = doubtWords(reads, row)
  const more = names.length > NAMES ? ['…'] : []
  return {
    id: urn(call, `entry ${id} ${source} ${snapshot}`),
    title: `${source}: ${changeWords(row)}${doubts.length > 0 ? ', doubtful' : ''}`,
    updated: toIso(publishedAt),
    href: absolute(ui('changes', { entry: id, source: isPrivateSource(source) ? source : '' })),
    category: source,
    text: [changeWords(row), ...doubts, ...lines, ...more].join('\n'),
  }
}

function urn({ reads }: PageCall, name: string): string {
  return feedUrn(reads.ledger.readIdentity(), name)
}
