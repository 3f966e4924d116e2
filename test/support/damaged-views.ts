import { execFileSync } from 'node:child_process'
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generationDir, readNamedViews, viewsPath } from '../../src/features/scanners/store/generations.ts'

function folderOf(dataDir: string): string {
  const named = readNamedViews(dataDir, 'osv')
  if (named === null) throw new Error('there are no views')
  return generationDir(dataDir, named.name)
}

/**
 * Changes a name in the database of the views in use: SQLite opens it as ever, and does not find what has that name. Its date
 * stays, as on a disk that loses bits: a daemon looks again at what has a newer one.
 */
export function renameInViews(dataDir: string, name: string, other: string): void {
  const path = viewsPath(folderOf(dataDir))
  const text = readFileSync(path, 'latin1')
  const changed = text.replaceAll(name, other)
  if (changed === text || changed.length !== text.length) throw new Error(`${name} is not there, or ${other} is longer`)
  const dated = `${path}.dated`
  execFileSync('touch', ['-r', path, dated])
  writeFileSync(path, changed, 'latin1')
  execFileSync('touch', ['-r', dated, path])
  rmSync(dated)
}

/** Changes a byte in each list of the views in use. */
export function flipLists(dataDir: string): void {
  const folder = folderOf(dataDir)
  for (const file of readdirSync(folder)) {
    if (!/^[\da-f]{32}\.(?!zip$)/.test(file)) continue
    const bytes = readFileSync(join(folder, file))
    const at = bytes.length - 1
    bytes[at] = (bytes[at] ?? 0) ^ 1
    writeFileSync(join(folder, file), bytes)
  }
}
