import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PRIVATE_FILE } from '../../core/files.ts'

/** What was begun with bundles of an inbox and never ended: the process died of it, or was killed. */
export interface Tries {
  /** Notes a beginning. False: it was begun so often without an end that it is not to be begun again. */
  begin(bundle: string): boolean
  end(bundle: string): void
}

/** So often a bundle may take the process with it: once may be chance. */
const MOST = 2

/** Tries that are remembered in a file of the data folder: the database may be what cannot be written. */
export function createTries(dataDir: string): Tries {
  const path = join(dataDir, 'inbox-tries.json')
  const counts = readCounts(path)
  const keep = (): void => {
    try {
      if (counts.size === 0) rmSync(path, { force: true })
      else writeFileSync(path, JSON.stringify([...counts]), { mode: PRIVATE_FILE })
    } catch {
      // A folder that cannot be written to refuses the import itself.
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
