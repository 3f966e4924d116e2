import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { systemCode } from '../errors.ts'

/**
 * Creates a folder and those above it. Node's own recursive way never returns where a folder can be looked up but not
 * created, as under /proc; this one gives up at the first that cannot be. Throws the system's error.
 */
export function makeFolder(path: string): void {
  try {
    mkdirSync(path)
  } catch (error) {
    const code = systemCode(error)
    if (code === 'EEXIST') return
    if (code !== 'ENOENT' || dirname(path) === path) throw error
    makeFolder(dirname(path))
    mkdirSync(path)
  }
}
