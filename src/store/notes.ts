import { readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { replacePrivateFile } from '../base/files.ts'
import { date, integerField, listField, members, orNull, readNote, text } from '../base/json/shapes.ts'
import type { VerifiedStatus } from '../base/reports/storage.ts'

/** The files of a data folder that say where its last complete backup was written, and what its last verification found. */
const BACKUP_NOTE = 'backup.last'
const VERIFICATION_NOTE = 'verify.last'

/** Writes a note into a data folder. Where that cannot be done, nothing else is worse for it. */
function leaveNote(dataDir: string, name: string, content: string): void {
  try {
    if (statSync(dataDir).uid !== process.geteuid?.()) return // root leaves no files in another user's folder
    replacePrivateFile(join(dataDir, name), `${content}\n`)
  } catch {
    // a folder that only another user may write, or a full disk
  }
}

/** Notes where a backup was written, for the advice about damage. Where that cannot be written, the backup is as good. */
export function noteBackup(dataDir: string, file: string, at: string): void {
  leaveNote(dataDir, BACKUP_NOTE, `${at} ${file}`)
}

/** Returns the path and the date of the last backup of a data folder, in words; null: none is known. */
export function describeLastBackup(dataDir: string): string | null {
  try {
    const text = readFileSync(join(dataDir, BACKUP_NOTE), 'utf8')
    const [, at = '', file = ''] = /^(\S+) (.+)\n$/.exec(text) ?? []
    return file === '' ? null : `${file} of ${at}`
  } catch {
    return null
  }
}

/** The last verification of all that is stored. */
interface LastVerification extends Omit<VerifiedStatus, 'endedAt'> {
  /** When it ended, ISO 8601 UTC; null: none has ended since `since`. */
  readonly endedAt: string | null
  /** Since when a daemon has planned verifications of this data folder. */
  readonly since: string
}

/** Notes a verification, for the schedule, the status and metrics. Where that cannot be written, the next start verifies again. */
export function noteVerification(dataDir: string, verification: LastVerification): void {
  leaveNote(dataDir, VERIFICATION_NOTE, JSON.stringify(verification))
}

/** Takes damage out of the last verification that is repaired since: the parts that are called so. */
export function noteRepaired(dataDir: string, part: string): void {
  const last = readLastVerification(dataDir)
  if (last === null) return
  const damaged = last.damaged.filter((line) => !line.startsWith(part))
  const gone = last.damaged.length - damaged.length
  if (gone > 0) noteVerification(dataDir, { ...last, damaged, damagedCount: Math.max(0, last.damagedCount - gone) })
}

/** Forgets the last verification: what it was about is not there any more. */
export function forgetVerification(dataDir: string): void {
  rmSync(join(dataDir, VERIFICATION_NOTE), { force: true })
}

/** Returns the last verification of a data folder; null: none is known. */
export function readLastVerification(dataDir: string): LastVerification | null {
  return readNote(join(dataDir, VERIFICATION_NOTE), note)
}

const note = members<LastVerification>({
  endedAt: orNull(date),
  since: date,
  damaged: listField(text, Infinity),
  damagedCount: integerField(0),
  healed: orNull(text),
})
