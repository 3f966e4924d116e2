import { basename } from 'node:path'
import { createViewsInUse, isDamage } from '../scanners/routes/generation.ts'
import { MirrorError } from '../../base/errors.ts'
import { closeFindings, isUnusable, openFindings, removeFindings } from '../../store/findings/database.ts'
import { createFindingsStore } from '../../store/findings/writes.ts'
import { timeOfAges } from '../../store/runs/age-limit.ts'
import { type Reads, openShortReads } from '../../store/reads.ts'
import { type DatedSnapshot, isBack, scopeOfSnapshot } from '../../store/runs/rollback.ts'
import { type DuringReads, ageOfCatalog } from './judge/during.ts'
import { createPatched, followPatches } from './judge/patches.ts'
import { type RecordsReport, changedRecords, followRecords } from './judge/records.ts'
import { followTags } from './judge/tags.ts'
import { followVex } from './judge/vex-documents.ts'
import { createVexRules } from './judge/vex.ts'

/** What the tags are judged from. */
export interface FindingsTask {
  readonly dataDir: string
  /** Stamp of the served snapshots, where newer ones are kept back; null: the newest. */
  readonly served: string | null
  /** Days for which changes are kept. */
  readonly keepDays: number
}

/** What a task did. */
export interface FindingsReport {
  readonly records: RecordsReport
  /** Tags whose SBOM was read, tags that are gone, and tags with other findings than before. */
  readonly read: number
  readonly gone: number
  readonly tags: number
  /** Whether SBOMs or VEX are damaged: they are read again by the next judgement. */
  readonly unread: boolean
  /** Changes in the log now: the position of the newest. */
  readonly last: number
  /** Why everything was judged again; null: it was not. */
  readonly reset: string | null
}

/**
 * Judges the SBOMs of the mirrored tags by the views in use, as far as anything changed; null where there is no catalog.
 * Throws `not_ready` where there are no views yet, `locked` where these were replaced meanwhile, `storage`.
 */
export async function performFindings(
  { dataDir, served, keepDays }: FindingsTask,
  now = Date.now(),
): Promise<FindingsReport | null> {
  const shortReads = openShortReads(dataDir)
  if (shortReads === null) return null
  const inUse = createViewsInUse(dataDir, null, null)
  let reset: string | null = null
  try {
    const views = inUse.current()
    const db = openFindings(dataDir, (reason) => (reset = reason))
    try {
      const store = createFindingsStore(db)
      const { reads } = shortReads
      const during: DuringReads = (work) => shortReads.during(() => work(reads, shortReads.vex), served)
      const changedBetween = (from: string, to: string) => during((one) => changedRecords(one, from, to))
      const generation = basename(views.folder)
      const catalog = await followVex({ store, during })
      if (catalog === null) return null
      const age = during((one) => ageOfCatalog(store, one, catalog))
      const followed = { store, during, catalog, age, now }
      const patched = await followPatches(followed)
      const rules = createVexRules(followed)
      await rules.followImages()
      const scope = during((reads) => scopeOf(reads, views.info.snapshot))
      const input = { ...followed, views, generation, scope, rules, isPatched: createPatched(followed) }
      const isBackFrom = (from: DatedSnapshot) => during((one) => isBack(one, 'osv', from, views.info))
      const whyNotStored = (record: string) => during((one) => whyRecordLeft(one, record))
      const records = await followRecords({ ...input, changedBetween, isBackFrom, whyNotStored })
      const { read, gone, tags: ofTags } = await followTags(input)
      store.putFollowed('catalogAsOf', String(age.asOf))
      store.sweepNames()
      store.pruneLog(
        keepDays,
        during((one) => timeOfAges(one, now)),
      )
      const tags = patched + records.tags + ofTags
      return { records, read, gone, tags, unread: store.hasUnread(), last: store.lastLog(), reset }
    } finally {
      closeFindings(db)
    }
  } catch (error) {
    throw explained(error, dataDir)
  } finally {
    inUse.close()
    shortReads.close()
  }
}

/**
 * Returns which records a snapshot has: its scope, 'all' for none, and what upstream lacks. Where another one is stored by now its
 * run says it; null: no such run is kept.
 */
function scopeOf(reads: Pick<Reads, 'snapshots' | 'runs'>, snapshot: string): string | null {
  const scope = scopeOfSnapshot(reads, 'osv', snapshot)
  if (scope === undefined) return null
  const lacks = reads.runs.readLatestWith('osv', snapshot)?.facts['upstreamLacks']
  return [scope ?? 'all', lacks].filter((one) => typeof one === 'string').join('; ')
}

/** Returns whether upstream removed a record, or it is not mirrored any more for another reason; null: it is stored. */
function whyRecordLeft({ osv }: Pick<Reads, 'osv'>, record: string): 'removed' | 'left' | null {
  if (osv.readEntry(record) !== null) return null
  return osv.readTombstone(record) === null ? 'left' : 'removed'
}

/** Deletes a database that proves damaged; views that are not there any more were replaced. */
function explained(error: unknown, dataDir: string): unknown {
  if (error instanceof MirrorError) return error
  if (isUnusable(error)) {
    removeFindings(dataDir)
    return new MirrorError('locked', 'their database is damaged and begins again')
  }
  return isDamage(error) ? new MirrorError('locked', 'the views were replaced meanwhile') : error
}
