import { join } from 'node:path'
import { replacePrivateFile } from '../../base/files.ts'
import {
  type Check,
  date,
  integerField,
  listField,
  members,
  orAbsent,
  orNull,
  readNote,
  recordOf,
  text,
} from '../../base/json/shapes.ts'
import { servingDaemon } from './lock.ts'

/** What a daemon writes of its settings into the data folder: digests and keys, no values. */
export interface DaemonSettings {
  readonly instance: string
  readonly salt: string
  /** By the key of the setting. */
  readonly digests: Readonly<Record<string, string>>
  /** How often it read its settings again since it started. */
  readonly reloads: number
  /** What the last of these found; null before the first. */
  readonly last: Reload | null
}

/** The highest numbers that were given in this folder, by table: they show a database that was put back from a copy. */
export type GivenNumbers = Readonly<Partial<Record<string, number>>>

/** What a daemon notes of its databases. */
interface DatabaseNote {
  readonly given: GivenNumbers
  /** The instance name of mirror.db; null: it could not be read. */
  readonly mirror: string | null
  /** When a daemon found that mirror.db is another one than before, ISO 8601 UTC; absent: none has. */
  readonly replacedAt?: string | undefined
}

/** What a daemon found when it read its settings again. */
export interface Reload {
  /** Why the settings cannot be used, so that nothing changed; null: they can. */
  readonly problem: string | null
  /** Keys of changed settings that are in force now. */
  readonly inForce: readonly string[]
  /** Keys of settings that differ from those in use until the daemon is started again. */
  readonly restart: readonly string[]
}

const FILE = 'serve.settings'

/** Writes the settings of the daemon with the `serve` lock, mode 0600. Throws the system's error. */
export function announceSettings(dataDir: string, settings: DaemonSettings): void {
  write(dataDir, { ...settings, ...databaseNote(dataDir) })
}

/** Notes the databases beside the settings. Throws the system's error. */
export function noteDatabases(dataDir: string, note: DatabaseNote): void {
  write(dataDir, { ...read(dataDir, settingsNote), ...note })
}

/** Returns what a daemon of this folder noted of its databases, now or before. */
export function databaseNote(dataDir: string): DatabaseNote {
  return read(dataDir, databasesNote) ?? { given: {}, mirror: null }
}

/** A number of a log is counted up, or a time in seconds: one beyond cannot be continued. */
const MOST_GIVEN = 1e12

const databasesNote = members<DatabaseNote>({
  given: recordOf(/^/, integerField(0, MOST_GIVEN), Infinity),
  mirror: orNull(text),
  replacedAt: orAbsent(date),
})

const keys = listField(text, Infinity)

const settingsNote = members<DaemonSettings>({
  instance: text,
  salt: text,
  digests: recordOf(/^/, text, Infinity) as Check<DaemonSettings['digests']>,
  reloads: integerField(0),
  last: orNull(members<Reload>({ problem: orNull(text), inForce: keys, restart: keys })),
})

type Written = Partial<DaemonSettings> & Partial<DatabaseNote>

function write(dataDir: string, written: Written): void {
  replacePrivateFile(join(dataDir, FILE), `${JSON.stringify(written)}\n`)
}

function read<T>(dataDir: string, note: Check<T>): T | null {
  return readNote(join(dataDir, FILE), note)
}

/**
 * Returns what the daemon that serves this folder now wrote; null: none serves it, it is starting, or it could not
 * write the file.
 */
export function daemonSettings(dataDir: string): DaemonSettings | null {
  const serving = servingDaemon(dataDir)
  if (serving === null) return null
  const found = read(dataDir, settingsNote)
  return found?.instance === serving.instance ? found : null
}
