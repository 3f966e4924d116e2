import { join } from 'node:path'
import { type Loss, lossAt, lostDatabase } from './faults.ts'
import { fileNumber, isLocked, notedDatabase } from './lock.ts'

/**
 * Returns what became of the database that a running daemon of this folder has open; null: it is at its path, or no daemon runs.
 * Throws the system's error.
 */
export function lossBesideDaemon(dataDir: string): Loss | null {
  const noted = notedDatabase(dataDir)
  if (noted === null) return null
  const loss = lossAt(join(dataDir, 'mirror.db'), noted)
  return loss !== null && isLocked(dataDir, 'serve') ? loss : null
}

/** Throws the error of a lost database where a daemon runs on it: a new one at its path would be written under that daemon. */
export function refuseBesideLoss(dataDir: string): void {
  const loss = lossBesideDaemon(dataDir)
  if (loss !== null) throw lostDatabase(join(dataDir, 'mirror.db'), loss)
}

/** Returns what throws, from now on, while another file or none is at the path of a database that is open. */
export function watchLoss(path: string): () => void {
  const number = fileNumber(path)
  return () => {
    const loss = lossAt(path, number)
    if (loss !== null) throw lostDatabase(path, loss)
  }
}
