import { accessSync, constants, statSync } from 'node:fs'

/** Reports whether a published archive's file is missing, or has another size than this. */
export function isLost(path: string, size: number): boolean {
  return sizeOf(path) !== size
}

/** Returns the size of a file that this user may read; -1 for any other: a command that ran as root may have made it. */
function sizeOf(path: string): number {
  try {
    accessSync(path, constants.R_OK)
    return statSync(path).size
  } catch {
    return -1
  }
}
