import { describeMissing, missingOf } from '../../../../server/snapshot/missing.ts'
import { toIsoOrNull } from '../../../../base/time.ts'
import { clip, counted } from '../../../../base/text.ts'
import type { FindingsState, TagFindings } from '../../../../store/findings/reads.ts'
import { judgedWords } from '../../../../store/findings/words.ts'
import type { Block } from '../../blocks.ts'
import { type Cell, grouped, link, plain, time } from '../../../../answers/cells.ts'
import { type PageCall, type PageView, numberOf } from '../../page.ts'
import { changesTable, requireTagFindings } from './log.ts'

/** Changes on a page. */
const MOST = 100

/** Reasons why tags are not judged that are shown. */
const MOST_REASONS = 3

/** Returns the table of judged tags, those with the most findings that have a fix first. */
function tagsTable({ ui }: PageCall, tags: readonly TagFindings[]): Block {
  return {
    kind: 'table',
    title: 'Tags with a fix',
    note: `Those with the most findings that have a fix first, ${MOST} at most; /-/tags/findings has all. What VEX rules out does not count.`,
    columns: ['Tag', 'With a fix', 'Findings', 'Critical', 'High', 'Ruled out by VEX'],
    rows: tags.map((tag) => [
      link(clip(tag.name, 200), ui('tag', { id: tag.owner })),
      ...[tag.fixable, tag.findings, tag.critical, tag.high, tag.suppressed].map((count) => plain(grouped(count))),
    ]),
    empty: 'No tag is judged.',
  }
}

/** Loads the page of the findings of tags, and of what changed in the findings of tags. */
export function loadTagChanges(call: PageCall): PageView {
  const { query, ui, now } = call
  const before = numberOf(query, 'before')
  const found = requireTagFindings(call, (reads) => ({
    state: reads.readState(),
    counts: reads.countTags(),
    refusals: reads.listRefusals(MOST_REASONS),
    tags: before === null ? reads.listTagsToFix(MOST) : [],
    changes: reads.listLogBefore(before ?? Number.MAX_SAFE_INTEGER, MOST + 1),
  }))
  const { state, counts, refusals, tags, changes } = found
  const shown = changes.slice(0, MOST)
  const judgedAt = toIsoOrNull(state?.judgedAt)
  const isWhole = (state?.beganAt ?? null) !== null
  return {
    title: 'Findings of tags',
    alternates: [{ type: 'application/atom+xml', title: 'Findings of tags', href: ui('tag-changes.atom') }],
    blocks: [
      {
        kind: 'facts',
        rows: [
          ['tags', plain(judgedWords(counts, isWhole))],
          ...refusals.map((one): [string, Cell] => [
            'not judged',
            plain(`${counted(one.tags, 'tag')}: ${one.reason}`, 600),
          ]),
          ...missingRows(call, state),
          ['judged', judgedAt === null ? plain(null) : time(judgedAt, now)],
        ],
      },
      ...(before === null ? [tagsTable(call, tags)] : []),
      {
        ...changesTable(call, shown),
        first: before === null ? null : ui('tag-changes'),
        next: changes.length > MOST ? ui('tag-changes', { before: shown.at(-1)?.seq }) : null,
      },
    ],
  }
}

/** By what the tags are judged although it lacks something. */
function missingRows({ reads }: PageCall, state: FindingsState | null): [string, Cell][] {
  if (state === null) return []
  const snapshots = [
    ['osv', state.osv],
    ['catalog', state.catalog],
  ] as const
  return snapshots.flatMap(([source, id]) => {
    const words = id === null ? null : describeMissing(source, missingOf(reads, source, id))
    return words === null ? [] : [['judged by', plain(`${source} is ${words}`)]]
  })
}
