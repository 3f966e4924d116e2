import { sha256Hex } from '../../../core/digest.ts'
import { toIso } from '../../../core/time.ts'
import { isPrivateSource } from '../../../api/followers/changes.ts'
import type { LoggedSnapshot } from '../../../store/changes/log.ts'
import type { WebFeed, FeedEntry } from '../../feed.ts'
import { type Page, type PageCall, type PageView, numberOf, parameter } from '../../page.ts'
import { asksForPrivate, askedSources, changeWords } from './log.ts'

/** Entries of a feed's page, and names in the text of an entry. */
const ENTRIES = 50
const NAMES = 50

const COMMON = {
  label: null,
  access: 'open',
  usesStatus: false,
  isLog: true,
  isPrivate: asksForPrivate,
  parameters: {
    source:
      'Changes of this source; catalog and identity take a key. All that may be read when not given.',
    before: 'Entries before this one only: the older pages of the feed.',
  },
} as const

/** The changes as an Atom feed (RFC 4287). */
export const CHANGES_ATOM: Page = {
  ...COMMON,
  path: 'changes.atom',
  type: 'application/atom+xml',
  load: (call) => feedView(call, 'changes.atom'),
}

/** The changes as a JSON Feed. */
export const CHANGES_JSON: Page = {
  ...COMMON,
  path: 'changes.json',
  type: 'application/feed+json',
  load: (call) => feedView(call, 'changes.json'),
}

function feedView(call: PageCall, path: string): PageView {
  const { query, reads, ui, absolute } = call
  const sources = askedSources(call)
  const before = numberOf(query, 'before')
  const found = reads.changes.listLoggedBefore(sources, before ?? Number.MAX_SAFE_INTEGER, ENTRIES + 1) // prettier-ignore
  const shown = found.slice(0, ENTRIES)
  const source = parameter(query, 'source')
  const title = source === '' ? 'Changes on this mirror' : `Changes of ${source} on this mirror`
  // One id for one set of sources: a feed with a key shows other entries than one without.
  const id = urn(call, `feed ${sources.filter(isPrivateSource).length > 0 ? 'all' : 'open'} ${source}`) // prettier-ignore
  const feed: WebFeed = {
    ...{ id, title, updated: toIso(shown[0]?.publishedAt ?? 0) },
    self: absolute(ui(path, { source, before })),
    home: absolute(ui('changes', { source })),
    next: found.length > ENTRIES ? absolute(ui(path, { source, before: shown.at(-1)?.id })) : null,
    entries: shown.map((row) => entryOf(call, row)),
  }
  return { title, blocks: [], feed }
}

function entryOf(call: PageCall, row: LoggedSnapshot): FeedEntry {
  const { id, source, snapshot, publishedAt } = row
  const { reads, ui, absolute } = call
  const names = reads.changes.listNames(id, NAMES + 1)
  const lines = names.slice(0, NAMES).map(({ name, change }) => `${change} ${name}`)
  const more = names.length > NAMES ? ['…'] : []
  return {
    id: urn(call, `entry ${id} ${source} ${snapshot}`),
    title: `${source}: ${changeWords(row)}`,
    updated: toIso(publishedAt),
    href: absolute(ui('changes', { entry: id, source: isPrivateSource(source) ? source : '' })),
    category: source,
    text: [changeWords(row), ...lines, ...more].join('\n'),
  }
}

/** Returns a URN that stays the same for the same thing of the same mirror: a UUID of version 8 (RFC 9562) from a digest. */
function urn({ reads }: PageCall, name: string): string {
  const hex = sha256Hex(Buffer.from(`${reads.ledger.readIdentity()} ${name}`))
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
  ]
  return `urn:uuid:${[...parts, hex.slice(20, 32)].join('-')}`
}
