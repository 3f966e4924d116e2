import { toIso } from '../../../../base/time.ts'
import { detailWords, findingWords, judgedWords, whyGoneIn } from '../../../../store/findings/words.ts'
import { type WebFeed, feedUrn } from '../../feed.ts'
import { type PageCall, type PageView, numberOf } from '../../page.ts'
import { requireTagFindings } from './log.ts'

/** Entries of a feed's page. */
const ENTRIES = 100

/** Loads the changes of findings as an Atom feed (RFC 4287). */
export function loadTagsFeed(call: PageCall): PageView {
  const { query, ui, absolute, reads } = call
  const before = numberOf(query, 'before')
  const found = requireTagFindings(call, (from) => ({
    instance: from.readState()?.instance ?? '',
    isWhole: (from.readState()?.beganAt ?? null) !== null,
    counts: from.countTags(),
    rows: from.listLogBefore(before ?? Number.MAX_SAFE_INTEGER, ENTRIES + 1),
    asOf: from.readState()?.judgedAt ?? from.readState()?.osvAsOf ?? call.now,
  }))
  const { counts } = found
  const shown = found.rows.slice(0, ENTRIES)
  const urn = (name: string): string => feedUrn(reads.ledger.readIdentity(), name)
  const title = 'Findings of the tags of this mirror'
  const feed: WebFeed = {
    id: urn('feed of tags'),
    title,
    doubt: found.isWhole && counts.judged === counts.tags ? null : judgedWords(counts, found.isWhole),
    updated: toIso(shown[0]?.at ?? found.asOf),
    self: absolute(ui('tag-changes.atom', { before })),
    home: absolute(ui('tag-changes')),
    next: found.rows.length > ENTRIES ? absolute(ui('tag-changes.atom', { before: shown.at(-1)?.seq })) : null,
    entries: shown.map((row) => {
      const words = findingWords({ ...row, whyGone: whyGoneIn(row.details) })
      return {
        id: urn(`tag ${found.instance} ${row.seq}`),
        title: `${row.name}: ${words}`,
        updated: toIso(row.at),
        href: absolute(ui('tag', { id: row.owner })),
        category: row.cause,
        text: [words, ...row.details.map(detailWords)].join('\n'),
      }
    }),
  }
  return { title, blocks: [], feed }
}
