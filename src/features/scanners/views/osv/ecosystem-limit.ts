import { compareText } from '../../../../base/versions/order.ts'
import { COMMITS, NO_ECOSYSTEM } from '../../store/generations.ts'
import { isKnownEcosystem } from './ecosystems.ts'

/** Folders that a bucket may have: each costs files. There are some fifty ecosystems. */
export const MOST_FOLDERS = 1000

/**
 * Chooses the first `most` of all names, in any order of input: those that the OSV schema knows before others, then by name, so
 * that equal records give equal folders. Keeps no more than twice as many in memory.
 */
export function createFolderChoice(most: number) {
  let names = new Set<string>([NO_ECOSYSTEM]) // the folder of records that are in no other
  let cut = false
  const shorten = (): void => {
    if (names.size <= most) return
    names = new Set([...names].sort(compareNames).slice(0, most))
    cut = true
  }
  return {
    /** A record names it. */
    add(name: string): void {
      names.add(name)
      if (names.size > 2 * most) shorten()
    },
    /** Those that there may be; null when all of them may. */
    chosen(): ReadonlySet<string> | null {
      shorten()
      return cut ? names : null
    },
  }
}

function compareNames(one: string, other: string): number {
  return rankOf(one) - rankOf(other) || compareText(one, other)
}

function rankOf(name: string): number {
  if (name === NO_ECOSYSTEM || name === COMMITS) return 0
  return isKnownEcosystem(name) ? 1 : 2
}
