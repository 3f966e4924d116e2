import { setImmediate, setTimeout } from 'node:timers/promises'
import { type Db, openReader } from '../../../store/database/open.ts'
import { MirrorError } from '../../../base/errors.ts'
import { nameStorageError } from '../../../store/database/faults.ts'
import { noteRepaired } from '../../../store/notes.ts'
import { snapshotStamp } from '../../../store/pin.ts'
import { createReads } from '../../../store/reads.ts'
import { tagPurls } from '../../../documents/vex/images.ts'
import type { ViewsKind } from '../store/generations.ts'
import type { BuildReport } from './osv/build.ts'
import { makeOsvViews } from './osv/views.ts'
import { vexBasis } from './vex/basis.ts'
import { type VexReport, makeVexRepository } from './vex/repository.ts'

/** What is to be made. */
export interface ViewsTask {
  readonly dataDir: string
  readonly kind: ViewsKind
  /** Vendors whose prefixes are taken off in derived views; none: there are no derived views. */
  readonly vendors: readonly string[]
  /** Make it even when one of that name is there: that one is damaged. */
  readonly rebuild: boolean
  /** Stamp of the snapshots to build from, where newer ones are kept back; missing or null: the newest. */
  readonly served?: string | null
}

/** What a task made; null: it was there already, or nothing is mirrored yet. */
export type ViewsReport = BuildReport | VexReport | null

/** What views are called where they are damaged; their kind follows. */
export const VIEWS = 'views for scanners'

/**
 * Builds views from one snapshot of the store; null when they are current, or nothing is mirrored yet. Throws `locked` while
 * another process or thread builds views, and while newer snapshots than `served` are stored.
 */
export async function performTask(task: ViewsTask): Promise<ViewsReport> {
  const made = await build(task).catch((error: unknown) => {
    throw nameStorageError(error, task.dataDir)
  })
  if (made !== null) noteRepaired(task.dataDir, `${VIEWS} (${task.kind})`)
  return made
}

/** How long another process may take to make the views, milliseconds. */
const PATIENCE_MS = 600_000
const LOOK_MS = 500

/** Does the same, and waits for another process or thread that makes views: what that has made is not made again. */
export async function performWaiting(task: ViewsTask): Promise<ViewsReport> {
  const until = performance.now() + PATIENCE_MS
  for (let { rebuild } = task; ; rebuild = false) {
    try {
      return await performTask({ ...task, rebuild })
    } catch (error) {
      const busy = error instanceof MirrorError && error.code === 'locked'
      if (!busy || performance.now() > until) throw error
      await setTimeout(LOOK_MS)
    }
  }
}

async function build({ dataDir, kind, vendors, rebuild, served = null }: ViewsTask): Promise<ViewsReport> {
  const db = openReader(dataDir)
  if (db === null) return null
  try {
    db.exec('BEGIN') // one snapshot for all reads
    const reads = createReads(db)
    if (served !== null && snapshotStamp(reads) !== served)
      throw new MirrorError('locked', 'newer snapshots are stored than are served now')
    if (kind === 'osv') return await makeOsvViews({ dataDir, reads, vendors, rebuild, pause })
    const snapshot = reads.snapshots.readSnapshot('catalog')
    if (snapshot === null) return null
    const asOf = Math.min(snapshot.asOf, reads.catalog.readVexConfirmedAt() ?? snapshot.asOf)
    const vex = {
      dataDir,
      reads: reads.vex,
      imagesOf: (tag: string) => tagPurls(reads.catalog, tag),
      snapshot: { ...snapshot, asOf, floor: reads.feeds.readDateFloor() },
      basis: vexBasis(reads),
      rebuild,
      pause,
    }
    return await makeVexRepository(vex)
  } finally {
    end(db)
  }
}

function end(db: Db): void {
  if (db.inTransaction) db.exec('COMMIT')
  db.close()
}

/** Yields to other waiting work. */
async function pause(): Promise<void> {
  await setImmediate()
}
