import { toIsoOrNull } from '../../../core/time.ts'
import { grouped, plain, time } from '../../cells.ts'
import { type Page, numberOf } from '../../page.ts'
import { changesTable, requireTagFindings } from './log.ts'

/** Changes on a page. */
const MOST = 100

/** The page of what changed in the findings of tags. */
export const TAG_CHANGES: Page = {
  path: 'tag-changes',
  label: 'Tag findings',
  access: 'key',
  usesStatus: false,
  parameters: { before: 'Entries before this one only: the older pages of the feed.' },
  load(call) {
    const { query, ui, now } = call
    const before = numberOf(query, 'before')
    const found = requireTagFindings(call, (reads) => ({
      state: reads.readState(),
      counts: reads.countTags(),
      changes: reads.listLogBefore(before ?? Number.MAX_SAFE_INTEGER, MOST + 1),
    }))
    const { state, counts, changes } = found
    const shown = changes.slice(0, MOST)
    const judgedAt = toIsoOrNull(state?.judgedAt)
    return {
      title: 'Findings of tags',
      alternates: ['application/atom+xml', 'application/feed+json'].map((type) => {
        const path = type.includes('atom') ? 'tag-changes.atom' : 'tag-changes.json'
        return { type, title: 'Findings of tags', href: ui(path) }
      }),
      blocks: [
        {
          kind: 'facts',
          rows: [
            ['tags', plain(`${grouped(counts.judged)} of ${grouped(counts.tags)} are judged`)],
            ['judged', judgedAt === null ? plain(null) : time(judgedAt, now)],
          ],
        },
        {
          ...changesTable(call, shown),
          first: before === null ? null : ui('tag-changes'),
          next: changes.length > MOST ? ui('tag-changes', { before: shown.at(-1)?.seq }) : null,
        },
      ],
    }
  },
}
