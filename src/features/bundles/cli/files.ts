import { accessSync, constants, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type ErrorCode, MirrorError, messageOf, systemCode } from '../../../base/errors.ts'
import { type SourceName, SOURCES } from '../../../base/domain/sources.ts'
import { isFull } from '../../../store/disk-state.ts'
import { makeTemporary } from '../../../store/temporary.ts'

/** Source names as `--sources` gives them, separated by commas, in the order of `SOURCES`. Throws `usage`. */
export function namedSources(text: string): SourceName[] {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  const known = SOURCES.join(', ')
  if (names.length === 0) throw new MirrorError('usage', `--sources names no source; the sources are: ${known}`)
  const unknown = names.find((name) => !SOURCES.some((source) => source === name))
  if (unknown === undefined) return SOURCES.filter((source) => names.includes(source))
  throw new MirrorError('usage', `unknown source ${unknown}; the sources are: ${known}`)
}

const UNWRITABLE: Partial<Record<string, string>> = {
  ENOENT: 'does not exist: create it, or correct the path',
  ENOTDIR: 'is not a folder: correct the path',
  EACCES: 'may not be written by this user: change its owner or its mode, or give another place',
  EROFS: 'is on a read-only file system: give another place',
}

/** Throws `usage` for a place where no file can be written, before any work is done for it. */
export function refuseUnwritable(path: string): void {
  const folder = dirname(resolve(path))
  try {
    accessSync(folder, constants.W_OK)
    if (!statSync(folder).isDirectory()) throw Object.assign(new Error(), { code: 'ENOTDIR' })
    tryFolder(folder)
  } catch (error) {
    const why = UNWRITABLE[systemCode(error) ?? ''] ?? `cannot be used (${messageOf(error)})`
    throw new MirrorError('usage', `${path} cannot be written: the folder ${folder} ${why}`)
  }
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined || found.isFile()) return
  const why = found.isDirectory()
    ? 'is a folder: give the name of a file in it'
    : 'is not a regular file (a device, a pipe or a socket), and is not replaced: give another name'
  throw new MirrorError('usage', `${path} ${why}`)
}

/** Makes a folder and removes it: rights alone do not say that a network disk, or /proc, takes a file. A full disk is named later. */
function tryFolder(folder: string): void {
  try {
    makeTemporary(folder).remove()
  } catch (error) {
    if (isFull(error)) return
    throw systemCode(error) === 'ENOENT' ? new Error(messageOf(error)) : error // the folder is there
  }
}

/** A bundle that could not be opened, applied or looked into. */
export interface Failed {
  failed: ErrorCode
  message: string
}

/** What a bundle is at fault for: it takes nothing from the others that are given. */
const OF_A_BUNDLE: readonly ErrorCode[] = ['bundle', 'archive']

/** What `work` returns, or why it failed where several bundles are given; throws for one, and for what is no bundle's fault. */
export async function orFailed<T>(bundles: number, work: () => Promise<T>): Promise<T | Failed> {
  try {
    return await work()
  } catch (error) {
    if (bundles === 1 || !(error instanceof MirrorError) || !OF_A_BUNDLE.includes(error.code)) throw error
    return { failed: error.code, message: error.message }
  }
}
