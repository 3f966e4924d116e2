import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { replacePrivateFile } from '../../../base/files.ts'
import { integerField, readNote, recordOf } from '../../../base/json/shapes.ts'

/** Counts attempts with inbox bundles that never ended, since the process crashed or was killed. */
export type Tries = ReturnType<typeof createTries>

/** An attempt that is under way. */
export interface Attempt {
  readonly bundle: string
  /** Earlier attempts with the bundle that never ended. */
  readonly before: number
}

/** Process crashes tolerated per bundle before it is rejected: one may be a coincidence. */
const MOST = 2

/**
 * Stores the counts in a file of the data folder, since the database may be what cannot be written; a kill leaves the old ones or the
 * new ones. `onAttempt` is called with
 * each attempt that begins, and with null when it ends.
 */
export function createTries(dataDir: string, onAttempt: (attempt: Attempt | null) => void = () => undefined) {
  const path = join(dataDir, 'inbox-tries.json')
  const counts = readCounts(path)
  const keep = (bundle: string, count: number): void => {
    if (count === 0) counts.delete(bundle)
    else counts.set(bundle, count)
    try {
      if (counts.size === 0) rmSync(path, { force: true })
      else replacePrivateFile(path, JSON.stringify(Object.fromEntries(counts)))
    } catch {
      // If the folder is not writable, the import itself fails.
    }
  }
  return {
    /**
     * Records the beginning of an attempt. Returns false if too many attempts never ended: the bundle must not be tried
     * again.
     */
    begin(bundle: string): boolean {
      const before = counts.get(bundle) ?? 0
      if (before >= MOST) return false
      onAttempt({ bundle, before })
      keep(bundle, before + 1)
      return true
    },
    end(bundle: string): void {
      keep(bundle, 0)
      onAttempt(null)
    },
    /** Forgets an attempt that was stopped in order. It may be called again: the count is set to what it was before. */
    takeBack: ({ bundle, before }: Attempt): void => keep(bundle, before),
  }
}

const note = recordOf(/^/, integerField(0), Infinity)

function readCounts(path: string): Map<string, number> {
  return new Map(Object.entries(readNote(path, note) ?? {}).map(([bundle, count = 0]) => [bundle, count]))
}
