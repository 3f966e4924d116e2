import { readdirSync } from 'node:fs'
import { messageOf, systemCode } from '../../../base/errors.ts'
import { nameStorageError } from '../../../store/database/faults.ts'
import { openViewsReader } from '../../../store/database/open.ts'
import {
  type ViewsKind,
  generationDir,
  noteDamage,
  readDamage,
  readNamedViews,
  readVexInfo,
  viewsPath,
} from '../store/generations.ts'
import { createViewsWriter } from '../store/writes.ts'
import { isDatabaseSame } from './osv/database-sum.ts'
import { WHOLE } from './osv/whole.ts'
import { isSoundFile } from './files.ts'

/**
 * Reads the views in use to their end: what is wrong with each kind, in one line; empty when nothing is, or there are none. What is
 * damaged is noted: from then on nothing reads it.
 */
export function checkViews(dataDir: string): { kind: ViewsKind; fault: string }[] {
  const kinds: ViewsKind[] = ['osv', 'vex']
  return kinds.flatMap((kind) => {
    try {
      const fault = readDamage(dataDir, kind) ?? findDamage(dataDir, kind)
      return fault === null ? [] : [{ kind, fault }]
    } catch (error) {
      return [{ kind, fault: messageOf(nameStorageError(error, dataDir)) }] // of another version, or closed to this user
    }
  })
}

function findDamage(dataDir: string, kind: ViewsKind): string | null {
  const named = readNamedViews(dataDir, kind)
  if (named === null) return null
  const folder = generationDir(dataDir, named.name)
  const fault = kind === 'osv' ? (findOpeningDamage(folder) ?? faultOfArchives(folder)) : faultOfVex(folder)
  if (fault !== null) noteDamage(folder, fault)
  return fault
}

/** Lists, which nothing in themselves proves: their names have their digests. */
const LIST = /^[\da-f]{32}\.(?!zip$)/

/**
 * Compares what of an OSV generation is believed without a further look with its sums: its database, and its lists. Returns what is
 * damaged, null when nothing is; it is noted. It takes about 70 ms for 100,000 records. Throws the system's errors.
 */
export function findOpeningDamage(folder: string): string | null {
  const fault = isDatabaseThere(folder) ? faultOfLists(folder) : 'their database is damaged'
  if (fault !== null) noteDamage(folder, fault)
  return fault
}

/** Does the same; what cannot be read at all is left to who opens it. */
export function isDamaged(folder: string): boolean {
  try {
    return findOpeningDamage(folder) !== null
  } catch {
    return false
  }
}

function isDatabaseThere(folder: string): boolean {
  try {
    return isDatabaseSame(folder)
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false
    throw error
  }
}

function faultOfLists(folder: string): string | null {
  const damaged = readdirSync(folder).find((file) => LIST.test(file) && !isSoundFile(folder, file))
  return damaged === undefined ? null : `${damaged} is damaged`
}

function faultOfArchives(folder: string): string | null {
  const db = openViewsReader(viewsPath(folder))
  try {
    const { isSound, listFiles } = createViewsWriter(db)
    if (!isSound()) return 'their database is damaged'
    // The archive of everything is the published one, which is checked as such.
    const damaged = listFiles().find((file) => file !== WHOLE && !isSoundFile(folder, file))
    return damaged === undefined ? null : `${damaged} is damaged`
  } finally {
    db.close()
  }
}

function faultOfVex(folder: string): string | null {
  const made = readVexInfo(folder)
  return made === null || isSoundFile(folder, made.file) ? null : `${made.file} is damaged`
}
