import { setPriority } from 'node:os'
import { setImmediate } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { MirrorError, messageOf } from '../errors.ts'
import { type Db, openReader } from '../store/database.ts'
import { createReads } from '../store/pinned.ts'
import { createVexReader } from '../store/vex.ts'
import type { ViewsKind } from '../store/views-place.ts'
import type { BuildReport } from './build.ts'
import { makeOsvViews } from './osv.ts'
import { type VexReport, makeVexRepository } from './vex.ts'

/** What a thread is to make. */
export interface ViewsTask {
  readonly dataDir: string
  readonly kind: ViewsKind
  readonly derived: boolean
  /** Make it even when one of that name is there: that one is damaged. */
  readonly anew: boolean
}

/** What became of it; `made` null: it was there already. */
export type ViewsOutcome =
  | { readonly made: BuildReport | VexReport | null }
  | { readonly failed: string; readonly locked: boolean }

/** Makes what is asked for, from one moment of the store. */
export async function performTask({ dataDir, kind, derived, anew }: ViewsTask, pause = breathe) {
  const db = openReader(dataDir)
  if (db === null) return null
  try {
    db.exec('BEGIN') // one moment, for all that is read
    const reads = createReads(db)
    if (kind === 'osv') return await makeOsvViews({ dataDir, reads, derived, anew, pause })
    const snapshot = reads.readSnapshot('catalog')
    if (snapshot === null) return null
    const vex = { dataDir, reads: createVexReader(db), snapshot: snapshot.id, anew, pause }
    return await makeVexRepository(vex)
  } finally {
    end(db)
  }
}

function end(db: Db): void {
  if (db.inTransaction) db.exec('COMMIT')
  db.close()
}

/** Lets the thread be ended in between. */
async function breathe(): Promise<void> {
  await setImmediate()
}

/** On Linux a priority belongs to the thread that sets it; elsewhere it would slow the whole process, so not there. */
function lowerPriority(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(0, 15)
  } catch {
    // Not permitted in some sandboxes; nothing worse.
  }
}

async function main(port: NonNullable<typeof parentPort>): Promise<void> {
  lowerPriority()
  const tell = (outcome: ViewsOutcome): void => port.postMessage(outcome)
  try {
    tell({ made: await performTask(workerData as ViewsTask) })
  } catch (error) {
    const locked = error instanceof MirrorError && error.code === 'locked'
    tell({ failed: messageOf(error), locked })
  }
}

if (parentPort !== null) await main(parentPort)
