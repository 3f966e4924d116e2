import { describeMissing, missingOf } from '../../../../server/snapshot/missing.ts'
import { toIsoOrNull } from '../../../../base/time.ts'
import type { FindingsReads, FindingsState } from '../../../../store/findings/reads.ts'
import { type NotJudged, judgedParts, noChangeWords } from '../../../lookup/change-tables.ts'
import { reasonsNotJudged } from '../../../lookup/tag.ts'
import { answerBlocks } from '../../links.ts'
import { type Cell, link, plain, time } from '../../../lookup/answers/cells.ts'
import { type PageCall, type PageView, numberOf } from '../../page.ts'
import { NOT_LOGGED, changesBlocks, requireTagFindings } from './log.ts'

/** Changes on a page. */
const MOST = 100

/** Reasons why tags are not judged that are shown. */
const MOST_REASONS = 3

/** Loads the page of what changed in the findings of tags, and of how many are judged. */
export function loadTagChanges(call: PageCall): PageView {
  const { query, ui, now } = call
  const before = numberOf(query, 'before')
  const found = requireTagFindings(call, (reads) => ({
    state: reads.readState(),
    counts: reads.countTags(),
    refusals: notJudgedOf(call, reads),
    changes: reads.listLogBefore(before ?? Number.MAX_SAFE_INTEGER, MOST + 1),
  }))
  const { state, counts, refusals, changes } = found
  const shown = changes.slice(0, MOST)
  const next = changes.length > MOST ? shown.at(-1)?.seq : undefined
  const judgedAt = toIsoOrNull(state?.judgedAt)
  const isWhole = (state?.beganAt ?? null) !== null
  return {
    title: 'Changes of findings',
    alternates: [{ type: 'application/atom+xml', title: 'Changes of findings', href: ui('tag-changes.atom') }],
    blocks: [
      ...answerBlocks(call, { parts: judgedParts(counts, isWhole, refusals) }),
      {
        kind: 'facts',
        rows: [
          ...missingRows(call, state),
          ['all tags', link('images with their findings', ui('images'))],
          ['judged', judgedAt === null ? plain(null) : time(judgedAt, now)],
        ],
      },
      ...changesBlocks(call, shown, counts.judged === 0 ? noChangeWords(counts) : NOT_LOGGED, next),
    ],
  }
}

/** Returns why tags are not judged, as remembered while neither the catalog nor the findings change. */
function notJudgedOf(call: PageCall, reads: FindingsReads): NotJudged[] {
  const { instance = '', judgedAt = null } = reads.readState() ?? {}
  const catalog = call.reads.snapshots.readSnapshot('catalog')?.id ?? ''
  const key = `not judged ${catalog} ${instance} ${judgedAt}`
  return call.remember(key, () => reasonsNotJudged(call, reads.listRefused(), MOST_REASONS))
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
