import { MirrorError } from '../../../../../base/errors.ts'
import { openReader } from '../../../../../store/database/open.ts'
import { createReads } from '../../../../../store/reads.ts'
import { produceChunks } from '../../../../../base/threads/chunks.ts'
import { lowerPriority } from '../../../../../base/threads/worker-file.ts'
import { sendPrepared } from './send.ts'

/** What the thread that prepares records is started with. */
export interface PrepareStart {
  readonly dataDir: string
  /** Id of the snapshot of the records that the views are built from. */
  readonly snapshot: string
  readonly vendors: readonly string[]
  readonly chosen: readonly string[] | null
}

produceChunks(async (data, send) => {
  const { dataDir, snapshot, vendors, chosen } = data as PrepareStart
  lowerPriority(15)
  const db = openReader(dataDir, { cacheKb: 2048 }) // each record is read once, in the order of the ids
  try {
    db?.exec('BEGIN') // one snapshot for all reads
    const reads = db && createReads(db)
    if (reads === null || reads.snapshots.readSnapshot('osv')?.id !== snapshot)
      throw new MirrorError('locked', 'a newer snapshot was published when the build began')
    const rules = { vendors: new Set(vendors), chosen: chosen && new Set(chosen) }
    await sendPrepared(reads.osv, rules, send)
  } finally {
    db?.close()
  }
})
