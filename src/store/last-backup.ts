import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { replacePrivateFile } from '../base/files.ts'

/** The file of a data folder that says where the last complete backup of it was written. */
const NOTE = 'backup.last'

/** Notes where a backup was written, for the advice about damage. Where that cannot be written, the backup is as good. */
export function noteBackup(dataDir: string, file: string, at: string): void {
  try {
    if (statSync(dataDir).uid !== process.geteuid?.()) return // root leaves no files in another user's folder
    replacePrivateFile(join(dataDir, NOTE), `${at} ${file}\n`)
  } catch {
    // a folder that only another user may write, or a full disk
  }
}

/** Returns the path and the date of the last backup of a data folder, in words; null: none is known. */
export function describeLastBackup(dataDir: string): string | null {
  try {
    const text = readFileSync(join(dataDir, NOTE), 'utf8')
    const [, at = '', file = ''] = /^(\S+) (.+)\n$/.exec(text) ?? []
    return file === '' ? null : `${file} of ${at}`
  } catch {
    return null
  }
}
