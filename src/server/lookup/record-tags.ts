import { MirrorError } from '../../base/errors.ts'
import type { TagsWithRecord } from '../../base/reports/records.ts'
import { counted } from '../../base/text.ts'
import { readFindings } from '../../store/findings/database.ts'
import type { FindingsReads } from '../../store/findings/reads.ts'
import type { RecordTags } from '../../store/findings/record-tags.ts'
import { type JudgingSettings, notJudgedYet, whyNoTags } from '../../store/findings/words.ts'
import type { Reads } from '../../store/reads.ts'
import { type RemovedRecord, removedTagsWords } from './removed-records.ts'

/** The settings that decide whether tags are judged, and where. */
export interface RecordTagsSettings extends JudgingSettings {
  readonly data: { readonly dir: string }
}

/** The tags with a record, and what of the mirror they are known of. */
export interface KnownRecordTags extends RecordTags {
  /** Mirrored tags, and those of them that are judged: of the others nothing is known. */
  readonly counts: { readonly tags: number; readonly judged: number }
  /** Whether they were judged by the records and tags that are served; false: by earlier ones, or without what is damaged. */
  readonly isCurrent: boolean
  /** Records about the same that upstream removed: tags are not judged by them; absent: none was looked for. */
  readonly removed?: readonly RemovedRecord[]
}

/**
 * Reads the mirrored tags with a record among their findings; a text says why they are not known. `refuseOld` throws `stale`
 * where records or catalog are too old to be served. Throws `storage`.
 */
export function readRecordTags(
  config: RecordTagsSettings,
  { snapshots, catalog }: Pick<Reads, 'snapshots' | 'catalog'>,
  record: string,
  refuseOld: () => void,
): KnownRecordTags | string {
  const off = whyNoTags(config)
  if (off !== null) return off
  try {
    refuseOld()
  } catch (error) {
    if (error instanceof MirrorError && error.code === 'stale') return error.message
    throw error
  }
  const found = readFindings(config.data.dir, (reads) => {
    const state = reads.readState()
    const counts = reads.countTags()
    if (state === null || state.beganAt === null) return notJudgedYet(counts)
    const isCurrent = isJudgedByServed(reads, snapshots) && !reads.hasUnread()
    const known = reads.listTagsWith(record)
    return { ...known, uncertain: withOldSboms(reads, known, catalog.listTagsWithOldSbom()), counts, isCurrent }
  })
  return found ?? notJudgedYet(null)
}

/** Adds the judged tags without a record whose SBOM may be of an earlier image. */
function withOldSboms(reads: FindingsReads, { tags, uncertain }: RecordTags, old: readonly string[]): string[] {
  const having = new Set(tags.map(({ id }) => id))
  const judged = old.filter((id) => !having.has(id) && reads.readTag(id)?.refusal === null)
  return [...new Set([...uncertain, ...judged])]
}

/**
 * Reads the mirrored tags with one or more of the records, as `readRecordTags` does for one. `removed`: those about the same that
 * upstream removed: where no tag has another, none is said to have none.
 */
export function readRecordsTags(
  config: RecordTagsSettings,
  reads: Pick<Reads, 'snapshots' | 'catalog'>,
  records: readonly string[],
  refuseOld: () => void,
  removed: readonly RemovedRecord[],
): KnownRecordTags | string {
  const known: KnownRecordTags[] = []
  for (const record of records) {
    const found = readRecordTags(config, reads, record, refuseOld)
    if (typeof found === 'string') return found
    known.push(found)
  }
  const [first, ...others] = known
  if (first === undefined) return removed.length === 0 ? 'no record is named' : removedTagsWords(removed)
  const all = { ...joined(first, others), removed }
  return all.tagCount === 0 && removed.length > 0 ? removedTagsWords(removed) : all
}

/** Joins what is known of several records: a tag that has the same package by two of them is one row. */
function joined(first: KnownRecordTags, others: readonly KnownRecordTags[]): KnownRecordTags {
  const found = [first, ...others]
  const rows = new Map(found.flatMap(({ tags }) => tags.map((one) => [`${one.id} ${one.package} ${one.version}`, one])))
  const tags = [...rows.values()]
  const distinct = new Set(tags.map(({ id }) => id)).size
  const tagCount = Math.max(distinct, ...found.map((one) => one.tagCount))
  const having = new Set(tags.map(({ id }) => id))
  const uncertain = [...new Set(found.flatMap((one) => one.uncertain))].filter((id) => !having.has(id))
  return { tags, tagCount, uncertain, counts: first.counts, isCurrent: found.every((one) => one.isCurrent) }
}

/** Whether all tags are judged by the records and the catalog that are served; SBOMs and VEX that are damaged aside. */
export function isJudgedByServed(reads: FindingsReads, snapshots: Reads['snapshots']): boolean {
  const { osv = '', catalog = null } = reads.readState() ?? {}
  return reads.isWhole() && isServed(snapshots, 'osv', osv) && isServed(snapshots, 'catalog', catalog)
}

function isServed(snapshots: Reads['snapshots'], source: 'osv' | 'catalog', id: string | null): boolean {
  return snapshots.readSnapshot(source)?.id === id
}

/** Returns the name of a package with a record, and that of its source package where it was found by that. */
export function foundPackage(one: RecordTags['tags'][number]): string {
  return one.source === null ? one.package : `${one.package} (by its source package ${one.source})`
}

/** Returns how many of the judged tags have a record, in words, and of how many that is not known. */
export function tagsThatHaveIt({ tagCount, uncertain, counts: { tags, judged } }: KnownRecordTags): string {
  const others = tags - judged
  const some = `${tagCount} of ${counted(judged, 'judged tag', 'judged tags')} ${tagCount === 1 ? 'has' : 'have'} it`
  const found = tagCount === 0 ? noneWords(judged, uncertain.length) : some
  const words = [
    found,
    uncertain.length === 0 ? '' : `${counted(uncertain.length, 'tag')} ${UNCERTAIN}`,
    others === 0 ? '' : `${counted(others, 'tag is', 'tags are')} not judged`,
  ]
  return words.filter((one) => one !== '').join('; ')
}

function noneWords(judged: number, uncertain: number): string {
  if (uncertain > 0) return 'no judged tag is known to have it'
  return judged === 1 ? 'the judged tag does not have it' : `none of the ${judged} judged tags has it`
}

const UNCERTAIN =
  'may have it: a package cannot be compared with the record, or the SBOM does not name all packages, or is not of the image now'

/** Says that tags were judged by other records, SBOMs or VEX than those that are served. */
export const JUDGED_BEFORE =
  'other records or tags are mirrored than these tags were judged by, or SBOMs or VEX of them are damaged: the daemon (patchmirror serve) judges them again'

/** Returns the tags of a record as answers show them; `notShown`: why they are not known, or not shown. */
export function recordTagsMessage(found: KnownRecordTags | string): { readonly tags: TagsWithRecord } {
  if (typeof found === 'string')
    return { tags: { listed: null, count: null, uncertain: null, counts: null, current: null, notShown: found } }
  const { tags, tagCount, uncertain, counts, isCurrent } = found
  const known = { listed: tags, count: tagCount, uncertain: uncertain.length }
  return { tags: { ...known, counts, current: isCurrent, notShown: null } }
}
