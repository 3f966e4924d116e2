import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PRIVATE_FILE } from '../../../base/files.ts'

/** Counts attempts with inbox bundles that never ended, since the process crashed or was killed. */
export interface Tries {
  /**
   * Records the beginning of an attempt. Returns false if too many attempts never ended: the bundle must not be tried
   * again.
   */
  begin(bundle: string): boolean
  end(bundle: string): void
}

/** Process crashes tolerated per bundle before it is rejected: one may be a coincidence. */
const MOST = 2

/** Stores the counts in a file of the data folder, since the database may be what cannot be written. */
export function createTries(dataDir: string): Tries {
  const path = join(dataDir, 'inbox-tries.json')
  const counts = readCounts(path)
  const keep = (): void => {
    try {
      if (counts.size === 0) rmSync(path, { force: true })
      else writeFileSync(path, JSON.stringify([...counts]), { mode: PRIVATE_FILE })
    } catch {
      // If the folder is not writable, the import itself fails.
    }
  }
  return {
    begin(bundle) {
      const count = counts.get(bundle) ?? 0
      if (count >= MOST) return false
      counts.set(bundle, count + 1)
      keep()
      return true
    },
    end(bundle) {
      counts.delete(bundle)
      keep()
    },
  }
}

function readCounts(path: string): Map<string, number> {
  try {
    const json = JSON.parse(readFileSync(path, 'utf8')) as [unknown, unknown][]
    return new Map(
      json.filter((one): one is [string, number] => {
        return typeof one[0] === 'string' && typeof one[1] === 'number'
      }),
    )
  } catch {
    return new Map()
  }
}
