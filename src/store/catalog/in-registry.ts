import { join } from 'node:path'
import type { ErrorCode } from '../../base/errors.ts'
import { fileMark, makeFolder, replacePrivateFile } from '../../base/files.ts'
import {
  type Check,
  date,
  integerField,
  members,
  choiceField,
  orNull,
  readNote,
  recordOf,
  text,
  union,
} from '../../base/json/shapes.ts'
import type { RegistryStatus } from '../../base/reports/transfer.ts'
import { nameStorageError } from '../database/faults.ts'
import { derivedDir } from '../database/open.ts'

/** What is known of an image in a registry: it answered for the digest, it answered that there is none, or neither. */
export type Presence =
  | { readonly is: 'there' | 'missing' }
  | {
      readonly is: 'not known'
      readonly why: string
      /** Of the error; null: it was not asked for. */
      readonly code: ErrorCode | null
    }

/** The same, and when it was asked for, Unix milliseconds. */
type KeptPresence = Presence & { readonly at: number }

/** What the registry of `images.registry` answered. It is no copy of anything, and asked for again where it is gone. */
export interface RegistryNote {
  /** The setting that it is of: the answers of another registry say nothing. */
  readonly registry: string
  /** When a check of all images last ended in which it answered each request, with whatever status, ISO 8601 UTC; null: none yet. */
  readonly checkedAt: string | null
  /** Why the list of these images is not known to be complete; null: it is. */
  readonly incomplete: string | null
  /** By REPOSITORY@DIGEST, without the registry that the catalog names. */
  readonly images: Readonly<Record<string, KeptPresence>>
}

function pathOf(dataDir: string): string {
  return join(derivedDir(dataDir), 'registry.json')
}

/** Returns what is known of a registry; nothing where that is of another one, or cannot be read. */
export function readRegistryNote(dataDir: string, registry: string): RegistryNote {
  const note = readNote(pathOf(dataDir), registryNote)
  return note?.registry === registry ? note : { registry, checkedAt: null, incomplete: null, images: {} }
}

/** The last date that JavaScript knows, Unix milliseconds. */
const LAST_DATE = 8.64e15

const presence = union<KeptPresence>(
  members<KeptPresence & { is: 'there' | 'missing' }>({
    is: choiceField('there', 'missing'),
    at: integerField(0, LAST_DATE),
  }),
  members<KeptPresence & { is: 'not known' }>({
    is: choiceField('not known'),
    why: text,
    code: orNull(text) as Check<ErrorCode | null>,
    at: integerField(0, LAST_DATE),
  }),
)

const registryNote = members<RegistryNote>({
  registry: text,
  checkedAt: orNull(date),
  incomplete: orNull(text),
  images: recordOf(/^/, presence, Infinity) as Check<RegistryNote['images']>,
})

/** Throws `storage` where the folder cannot be written. */
export function writeRegistryNote(dataDir: string, note: RegistryNote): void {
  try {
    makeFolder(derivedDir(dataDir))
    replacePrivateFile(pathOf(dataDir), `${JSON.stringify(note)}\n`)
  } catch (error) {
    throw nameStorageError(error, dataDir)
  }
}

/** Returns a text that is another one after each write. */
export function registryNoteMark(dataDir: string): string {
  return fileMark(pathOf(dataDir))
}

/** Counts what is known. */
export function sumOf({ images, checkedAt, incomplete }: RegistryNote): Omit<RegistryStatus, 'checking'> {
  const all = Object.values(images)
  const unknown = all.filter((one) => one.is === 'not known')
  return {
    images: all.length,
    there: all.filter(({ is }) => is === 'there').length,
    missing: all.filter(({ is }) => is === 'missing').length,
    unknown: unknown.length,
    checkedAt,
    incomplete,
    problem: unknown.find(({ code }) => code !== null)?.code ?? null,
  }
}
