import {
  type KnownRecordTags,
  JUDGED_BEFORE,
  foundPackage,
  noTagHasIt,
  readRecordTags,
} from '../../../server/lookup/record-tags.ts'
import { clip, counted } from '../../../base/text.ts'
import type { Block } from '../blocks.ts'
import { link, plain } from '../../../answers/cells.ts'
import type { PageCall } from '../page.ts'

/** Rows that are shown of a record. */
const MOST = 100

/** Returns words as a sentence. */
function sentence(words: string): string {
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}.`
}

/** Returns the mirrored tags with a record among their findings, for clients with a key, where this mirror has tags. */
export function recordTagsBlocks(call: PageCall, id: string): Block[] {
  const { config, reads, refuseOld, signedIn, ui } = call
  if (!signedIn || reads.snapshots.readSnapshot('catalog') === null) return []
  const found = readRecordTags(config, reads, id, () => {
    for (const source of ['osv', 'catalog'] as const) refuseOld(source)
  })
  if (typeof found === 'string') return [{ kind: 'notice', tone: 'warn', title: 'Tags are not shown', text: found }]
  const { tags, tagCount, isCurrent } = found
  return [
    {
      kind: 'table',
      title: 'Mirrored tags with it',
      note: `${counted(tagCount, 'tag')}${tags.length > MOST ? `; the first ${MOST} packages in them` : ''}.${isCurrent ? '' : ` ${sentence(JUDGED_BEFORE)}`}`,
      columns: ['Tag', 'Package', 'Version', 'With a fix'],
      rows: tags
        .slice(0, MOST)
        .map((one) => [
          link(clip(one.name || one.id, 200), ui('tag', { id: one.id })),
          plain(foundPackage(one), 200),
          plain(one.version, 200),
          plain(fixWords(one)),
        ]),
      empty: sentence(noTagHasIt(found)),
    },
  ]
}

/** Returns whether a finding has a fix, in words. */
function fixWords({ suppressed, fixable }: KnownRecordTags['tags'][number]): string {
  if (suppressed) return 'ruled out by VEX'
  return fixable ? 'yes' : 'no'
}
