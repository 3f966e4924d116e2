import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemCode } from '../errors.ts'
import { derivedDir } from './database.ts'
import { PRIVATE_FILE } from './folder.ts'

/** What is made for scanners out of what is mirrored: of the OSV records, and of the VEX documents. */
export type ViewsKind = 'osv' | 'vex'

/** Folder of all generations of views; safe to delete while nothing runs. */
export function viewsDir(dataDir: string): string {
  return join(derivedDir(dataDir), 'views')
}

/** The folder of a generation. */
export function generationDir(dataDir: string, name: string): string {
  return join(viewsDir(dataDir), name)
}

/** The database of an OSV generation. */
export function viewsPath(folder: string): string {
  return join(folder, 'views.db')
}

/** The generation that is served. */
export interface CurrentViews {
  readonly name: string
  /** The snapshot that it was last found to show. */
  readonly snapshot: string
  /** Upstream's date of that snapshot, unix milliseconds; null when an earlier version wrote none. */
  readonly asOf: number | null
  /** Unix milliseconds, since when. */
  readonly since: number
}

/** The generation that is served; null before the first, and when it was cleaned away. Throws the system's error for an unreadable folder. */
export function readCurrentViews(dataDir: string, kind: ViewsKind): CurrentViews | null {
  const pointer = pointerPath(dataDir, kind)
  try {
    const [name = '', snapshot = '', date = ''] = readFileSync(pointer, 'utf8').split('\n')
    if (!GENERATION.test(name) || !existsSync(generationDir(dataDir, name))) return null
    const asOf = /^\d+$/.test(date) ? Number(date) : null
    return { name, snapshot, asOf, since: statSync(pointer).mtimeMs }
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null
    throw error
  }
}

/** From now on this generation is served. The file is replaced as a whole. */
export function replaceCurrentViews(
  dataDir: string,
  kind: ViewsKind,
  { name, snapshot, asOf }: { readonly [Key in 'name' | 'snapshot']: string } & { asOf: number },
): void {
  const path = pointerPath(dataDir, kind)
  const temporary = `${path}.${process.pid}`
  try {
    writeFileSync(temporary, `${name}\n${snapshot}\n${asOf}\n`, { flush: true, mode: PRIVATE_FILE })
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

/** The names that generations have: their kind, and what they are made of as 32 hex digits. */
export const GENERATION = /^(osv|vex)-[\da-f]{32}$/

function pointerPath(dataDir: string, kind: ViewsKind): string {
  return join(viewsDir(dataDir), `current-${kind}`)
}
