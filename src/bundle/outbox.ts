import { renameSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config/schema.ts'
import { MirrorError } from '../errors.ts'
import { openReader } from '../store/database.ts'
import { makeFolder } from '../store/folder.ts'
import { type Reads, createReads } from '../store/pinned.ts'
import { SOURCES } from '../store/runs.ts'
import { exportBundle } from './export.ts'
import type { SigningKey } from './keys.ts'
import { inspectBundle } from './open.ts'
import { type OutboxFile, listOutbox, outboxName, pruneOutbox } from './outbox-files.ts'

/** What an outbox works with. */
export interface OutboxDeps {
  readonly settings: Pick<Config['bundle'], 'keep' | 'fullDays' | 'expireDays'>
  readonly folder: string
  readonly dataDir: string
  readonly keys: readonly SigningKey[]
  readonly program: string
  readonly now: () => number
}

/** A bundle that lies in the outbox. */
export interface Shipped {
  readonly sequence: number
  readonly kind: 'full' | 'delta'
  readonly file: string
  readonly bytes: number
  /** Sources that were not whole. */
  readonly partial: readonly string[]
}

/** A name that nobody takes for a bundle: it is given its own when it is whole. */
const DRAFT = '.patchmirror-export.zip'

/**
 * Puts what is published into the outbox: a full bundle when the last one is `fullDays` old, else what changed since it.
 * Returns null when what is published lies there already, or nothing is. Throws as `exportBundle`.
 */
export async function fillOutbox(deps: OutboxDeps): Promise<Shipped | null> {
  const { folder, dataDir, settings } = deps
  const state = readState(dataDir)
  if (state === null) return null
  const { mirror, current, remembered } = state
  ready(folder)
  const files = listOutbox(folder, mirror)
  const full = files.findLast(({ kind }) => kind === 'full')
  const isOld = full === undefined || !remembered.has(full.sequence) || (await ageOf(deps, full))
  const last = files.at(-1)
  if (!isOld && last !== undefined && last.sequence === current) return null
  const path = join(folder, DRAFT)
  const report = await exportBundle({
    ...deps,
    ...{ path, sources: null, since: isOld ? null : String(full.sequence), need: null },
    ...{ split: null, force: true, expireDays: settings.expireDays, keep: settings.keep },
    spared: files.filter(({ kind }) => kind === 'full').map(({ sequence }) => sequence),
    onProgress: () => undefined,
  })
  const { sequence, kind } = report.manifest
  const file = outboxName(mirror, sequence, kind)
  renameSync(path, join(folder, file))
  pruneOutbox(folder, mirror, settings.keep)
  return { sequence, kind, file, bytes: report.bytes, partial: report.partial }
}

/** Whether the full bundle is too old to build on, or cannot be read any more. */
async function ageOf(
  { folder, settings, now }: OutboxDeps,
  { name, sequence }: OutboxFile,
): Promise<boolean> {
  try {
    const bundle = await inspectBundle([join(folder, name)])
    await bundle.close()
    const { createdAt, kind, sequence: is } = bundle.manifest
    const until = Date.parse(createdAt) + settings.fullDays * 86_400_000
    return kind !== 'full' || is !== sequence || until <= now()
  } catch (error) {
    if (error instanceof MirrorError) return true
    throw error
  }
}

interface State {
  mirror: string
  /** The sequence of the exported state whose snapshots are those published now; null: not exported yet. */
  current: number | null
  /** Sequences that a delta can build on. */
  remembered: ReadonlySet<number>
}

function readState(dataDir: string): State | null {
  const db = openReader(dataDir)
  if (db === null) return null
  try {
    const reads = createReads(db)
    if (SOURCES.every((source) => reads.readSnapshot(source) === null)) return null
    const exports = reads.listExports()
    const last = exports.at(-1)
    const remembered = exports.filter(({ kept }) => kept).map(({ sequence }) => sequence)
    const current = last !== undefined && isPublished(reads, last.sources) ? last.sequence : null
    return { mirror: reads.readIdentity(), current, remembered: new Set(remembered) }
  } finally {
    db.close()
  }
}

function isPublished(
  reads: Reads,
  exported: Partial<Record<string, { snapshot: string; asOf: number }>>,
): boolean {
  return SOURCES.every((source) => reads.readSnapshot(source)?.id === exported[source]?.snapshot)
}

function ready(folder: string): void {
  try {
    makeFolder(folder)
  } catch (error) {
    throw new MirrorError('storage', `the outbox ${folder} cannot be made`, { cause: error })
  }
}
