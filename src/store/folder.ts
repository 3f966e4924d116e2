import { randomBytes } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
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

/**
 * Writes a file whole, for its owner alone, by a new file that takes the place of the old: a reader sees one or the other,
 * and a link is replaced, not followed. Throws the system's error.
 */
export function replacePrivateFile(path: string, text: string): void {
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  try {
    const file = openSync(draft, 'wx', 0o600)
    try {
      writeFileSync(file, text)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(draft, path)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
}
