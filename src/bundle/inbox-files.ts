import { mkdirSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { groupFiles } from './part-files.ts'

/** Files in the inbox that make up one bundle. */
export interface Arrival {
  /** Without the number of a part. */
  readonly name: string
  readonly files: readonly string[]
  /** Changes while anything of it is still being written. */
  readonly stamp: string
}

const BUNDLE = /^[^.].*\.zip(?:\.\d{3}|\.sha256)?$/

/** What lies in the inbox, by name. Throws the system's error for a folder that cannot be read. */
export function listArrivals(folder: string): Arrival[] {
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => !entry.isDirectory() && BUNDLE.test(entry.name))
    .map(({ name }) => join(folder, name))
    .sort()
  return groupFiles(names).map((files) => {
    const name = basename(files[0] ?? '').replace(/\.(?:\d{3}|sha256)$/, '')
    return { name, files, stamp: files.map(stampOf).join(' ') }
  })
}

/** The file may go while it is looked at: then it is another stamp. */
function stampOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat === undefined ? 'gone' : `${stat.size}:${stat.mtimeMs}:${stat.ino}`
}

/**
 * Moves a bundle's files into a folder of the inbox, with a note for what was refused. Returns false where that is not
 * possible, as on a medium that is read-only.
 */
export function moveAside(
  folder: string,
  to: 'done' | 'refused',
  { name, files }: Arrival,
  note: string | null,
): boolean {
  try {
    const aside = join(folder, to)
    mkdirSync(aside, { recursive: true })
    if (note !== null) writeFileSync(join(aside, `${name}.txt`), `${note}\n`)
    for (const file of files) renameSync(file, join(aside, basename(file)))
    return true
  } catch {
    return false
  }
}
