import { MirrorError } from '../base/errors.ts'
import { SOURCES, type SourceName } from '../base/domain/sources.ts'
import type { Db } from './database/sqlite.ts'
import type { createSnapshotReader } from './runs/snapshots.ts'

/** What is served of a store whose newest state is kept back, as in a fleet until all of its mirrors serve it. */
export interface ServedPin {
  /** Names the snapshots that are served. */
  stamp(): string
  /** Whether a newer state may be stored long before it is served; otherwise both follow each other at once. */
  readonly keepsBack: boolean
  /** Calls back with the stamp whenever the pin moves, so that connections of other threads move with it. */
  onMoved(call: (stamp: string) => void): void
}

interface Stamped {
  readonly snapshots: Pick<ReturnType<typeof createSnapshotReader>, 'readSnapshot'>
}

/** Names the snapshots of all sources in one text. */
export function snapshotStamp({ snapshots }: Stamped): string {
  return stampOfIds((source) => snapshots.readSnapshot(source)?.id)
}

/** Names snapshots by their ids, in the form of `snapshotStamp`. */
export function stampOfIds(idOf: (source: SourceName) => string | undefined): string {
  return SOURCES.map((source) => idOf(source) ?? '-').join(' ')
}

/** Creates a pin: it keeps a read transaction open between two requests, at the snapshots with the stamp that is served. */
export function createPin(db: Db, reads: Stamped) {
  let stamp: string | null = null
  const move = (served: string): void => {
    if (db.inTransaction) db.exec('COMMIT')
    db.exec('BEGIN')
    stamp = snapshotStamp(reads)
    if (stamp === served) return
    const message = 'this thread started after the served snapshot was replaced: try again soon'
    throw new MirrorError('not_ready', message)
  }
  return {
    move,
    follow(served: string): void {
      if (!db.inTransaction || stamp !== served) move(served)
    },
  }
}
