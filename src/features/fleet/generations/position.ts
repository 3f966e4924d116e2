import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { MirrorError, systemCode } from '../../../base/errors.ts'
import { toIso } from '../../../base/time.ts'
import { makeFolder, replacePrivateFile } from '../../../base/files.ts'
import { namingFaults } from '../../../store/database/faults.ts'
import { createCarriedReader } from '../../../store/replication/reader.ts'
import type { KeyTrust } from '../../bundles/format/keys.ts'
import type { ChainLink } from './chain.ts'
import { openGeneration } from './format/envelope.ts'
import { type KnownGeneration, digestOfObject } from './format/generation.ts'
import { withReads } from '../../../store/reads.ts'

/** How far a data folder has followed, or published, the fleet's generations. */
export interface Position extends ChainLink {
  /** Number of the last row of the fleet's change log at that generation. */
  readonly log: number
}

/** Returns the position after a generation. */
export function positionOf({ generation, sha256 }: KnownGeneration): Position {
  const { generation: number, epoch, log, publishedAt } = generation
  return { generation: number, sha256, epoch, log, publishedAt }
}

/** Returns a folder of the fleet's own files in a data folder: downloads, exports and the last publication. Throws `storage`. */
export function fleetFolder(dataDir: string): string {
  const folder = join(dataDir, 'fleet')
  namingFaults(dataDir, () => makeFolder(folder))
  return folder
}

/**
 * Returns the name under which an applied generation is recorded in the ledger of imports. The row is written in the
 * transaction that applies it, so that it is right after a kill at any point.
 */
export function ledgerName({ generation, epoch, log, sha256 }: Position): string {
  return `generation-${generation}.epoch-${epoch}.log-${log}.${sha256}`
}

const NAME = /^generation-(\d{1,15})\.epoch-(\d{1,15})\.log-(\d{1,15})\.([\da-f]{64})$/

function readApplied(dataDir: string): Position | null {
  const last = withReads(dataDir, ({ ledger }) => ledger.readLastImport())
  const [, generation, epoch, log, sha256 = ''] = NAME.exec(last?.file ?? '') ?? []
  if (!last || generation === undefined) return null
  const publishedAt = toIso(last.importedAt)
  return { generation: Number(generation), epoch: Number(epoch), log: Number(log), sha256, publishedAt }
}

/**
 * Reports whether a data folder has the content of its generation alone: not after a repair that emptied it, nor with snapshots of
 * its own behind that, which are not published.
 */
export function hasItsContent(dataDir: string, { log }: Position): boolean {
  const isAlone = withReads(
    dataDir,
    ({ changes }, db) => createCarriedReader(db).listStoredSources().length > 0 && changes.lastLogged() <= log,
  )
  return isAlone ?? false
}

const PUBLISHED = 'published.json'

/** Stores the object of the generation that this data folder published last. */
export function recordPublished(dataDir: string, object: Buffer): void {
  replacePrivateFile(join(fleetFolder(dataDir), PUBLISHED), object.toString('utf8'))
}

function readPublishedObject(dataDir: string): Buffer | null {
  try {
    return readFileSync(join(dataDir, 'fleet', PUBLISHED))
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null
    throw new MirrorError('storage', `the last published generation cannot be read: ${String(error)}`)
  }
}

/** How far a data folder has followed and published, as stored in it. */
export type StoredPosition = ReturnType<typeof createStoredPosition>

/** Reads the position that is stored in a data folder. */
export function createStoredPosition(dataDir: string) {
  return {
    /** The generation that was applied last; null: what is stored does not come from a fleet. */
    readApplied: (): Position | null => readApplied(dataDir),
    /** The object of the generation that was published last; null: none was. */
    readPublished: (): Buffer | null => readPublishedObject(dataDir),
  }
}

/** Returns the generation that was published or applied last; null: none. Throws `fleet` for one that cannot be read. */
export function readPosition(stored: StoredPosition, trust: KeyTrust): Position | null {
  const applied = stored.readApplied()
  const object = stored.readPublished()
  if (object === null) return applied
  const published = positionOf(openGeneration(object, trust, PUBLISHED, digestOfObject(object)))
  return applied !== null && applied.generation >= published.generation ? applied : published
}
