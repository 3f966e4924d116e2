import { statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { reserveFor, shownBytes } from '../../core/disk-space.ts'
import { MirrorError, messageOf, systemCode } from '../../core/errors.ts'
import type { OnProgress } from '../../domain/progress.ts'
import type { SourceName } from '../../domain/sources.ts'
import { acquireLock } from '../../store/database/lock.ts'
import {
  type SummaryHeader,
  type SummarySource,
  writeSummary,
} from '../../store/replication/summary.ts'
import { openWrites } from '../../store/writer.ts'
import type { SigningKey } from '../format/keys.ts'
import { FORMAT, type Manifest, type ManifestHead } from '../format/manifest.ts'
import { sizeOfData, writeData } from './blobs.ts'
import { type Base, baseOfExport, baseOfNeed, findSince } from './delta-base.ts'
import { type RowsWritten, writeRows } from './rows.ts'
import { verifyOwn } from './self-check.ts'
import { type ExportSnapshot, pinExportSnapshot } from './snapshot.ts'
import { type BundleWriter, createBundleWriter } from './writer.ts'

/** What to export, and where to. */
export interface ExportOptions {
  readonly dataDir: string
  readonly path: string
  /** Null: all that have a snapshot. */
  readonly sources: readonly SourceName[] | null
  /** An export's sequence or a snapshot's id, a need file's bytes, or neither: everything. */
  readonly since: string | null
  readonly need: Buffer | null
  /** Bytes of a part; null: one file. */
  readonly split: number | null
  readonly force: boolean
  /** None: the bundle is not signed. */
  readonly keys: readonly SigningKey[]
  /** 0: it never expires. */
  readonly expireDays: number
  /** Exports that deltas can build on later: the newest so many, and these. */
  readonly keep: number
  readonly spared: readonly number[]
  readonly program: string
  readonly now: () => number
  readonly onProgress: OnProgress
}

/** What was exported. */
export interface ExportReport {
  readonly manifest: Manifest
  readonly files: string[]
  readonly bytes: number
  /** Sources that were not whole: something of them was missing or stale already. */
  readonly partial: SourceName[]
}

/**
 * Writes a bundle of one moment of the mirror, while syncs go on, and verifies it to its last byte before it gets its name.
 * Throws `usage`, `not_ready`, `locked`, `storage`, `corrupt`, `bundle`; nothing is left behind then.
 */
export async function exportBundle(options: ExportOptions): Promise<ExportReport> {
  // One at a time: a later sequence must be a later state.
  const lock = acquireLock(options.dataDir, 'export')
  try {
    const full = options.since === null && options.need === null
    const withArchive = full && (options.sources?.includes('osv') ?? true)
    const moment = await pinExportSnapshot(options.dataDir, withArchive)
    try {
      return await exportMoment(moment, options)
    } finally {
      moment.close()
    }
  } finally {
    lock.release()
  }
}

async function exportMoment(moment: ExportSnapshot, options: ExportOptions): Promise<ExportReport> {
  const sources = chosenSources(moment, options)
  const base = await chosenBase(moment, options, sources)
  const writer = createBundleWriter(options.path, options)
  try {
    const { onProgress } = options
    const states = base?.states ?? null
    const written = await writeRows(moment.carried, sources, states, writer, (done) =>
      onProgress({ phase: 'rows', unit: 'rows', done, total: null }),
    )
    const total = sizeOfData(moment, written)
    await refuseFullDisk(options.path, total, base !== null)
    await writeData(moment, written, writer, (done) =>
      onProgress({ phase: 'write', unit: 'bytes', done, total: Math.max(done, total) }),
    )
    return await finish(moment, options, sources, base, written, writer)
  } catch (error) {
    await writer.discard()
    throw error
  }
}

async function finish(
  moment: ExportSnapshot,
  options: ExportOptions,
  sources: readonly SourceName[],
  base: Base | null,
  { counts, blobs }: RowsWritten,
  writer: BundleWriter,
): Promise<ExportReport> {
  const header = describe(moment, options, sources)
  const sequence = await record(moment, options, header)
  const head = headOf(moment, options, header, base)
  const { keys, onProgress } = options
  const check = (drafts: readonly string[]): Promise<void> =>
    verifyOwn(drafts, keys, blobs, onProgress)
  const done = await writer.finish({ ...head, sequence, counts }, keys, check)
  const partial = sources.filter((source) => done.manifest.sources[source]?.whole === false)
  return { ...done, partial }
}

function chosenSources(
  { carried }: ExportSnapshot,
  { sources, dataDir }: ExportOptions,
): SourceName[] {
  const held = carried.listStoredSources()
  const lacking = sources?.find((source) => !held.includes(source))
  if (lacking !== undefined)
    throw new MirrorError('not_ready', `of ${lacking} nothing is mirrored yet in ${dataDir}`)
  const chosen = held.filter((source) => sources?.includes(source) ?? true)
  if (chosen.length === 0)
    throw new MirrorError(
      'not_ready',
      `nothing is mirrored yet in ${dataDir}: sync, or import a full bundle, first`,
    )
  return chosen
}

async function chosenBase(
  { reads }: ExportSnapshot,
  { since, need }: ExportOptions,
  sources: readonly SourceName[],
): Promise<Base | null> {
  if (since !== null) return baseOfExport(reads, findSince(reads, since), sources)
  return need === null ? null : baseOfNeed(reads, need, sources)
}

/** What is exported, as a summary's header has it. */
function describe(
  { reads, carried }: ExportSnapshot,
  { now }: ExportOptions,
  chosen: readonly SourceName[],
): SummaryHeader {
  const { digest, sources: digests } = carried.digestSources(chosen)
  const sources: Partial<Record<SourceName, SummarySource>> = {}
  for (const source of chosen) {
    const snapshot = reads.readSnapshot(source)
    const of = digests[source]
    if (snapshot === null || of === undefined) throw new Error(`${source} has no snapshot`)
    const asOf = Math.max(snapshot.asOf, reads.readConfirmedAt(source) ?? 0)
    sources[source] = { digest: of, snapshot: snapshot.id, asOf, records: snapshot.records }
  }
  const mirror = reads.readIdentity()
  const common = { format: 1, kind: 'patchmirror-summary', brief: false, imported: null } as const
  return { ...common, mirror, digest, sources, createdAt: dateAfter(reads, now()) }
}

/** A clock that is further ahead than this, milliseconds, was wrong: target mirrors refuse its bundles. */
const AHEAD_MS = 86_400_000

/** The date of an export: now, but later than that of the last one, so that the dates of one mirror are in its order. */
function dateAfter({ listExports }: ExportSnapshot['reads'], now: number): number {
  const last = Math.max(0, ...listExports().map(({ exportedAt }) => exportedAt))
  return last < now || last > now + AHEAD_MS ? now : last + 1
}

/** How long a sync that holds the database is waited for, and how long between two looks, milliseconds. */
const WAIT_MS = 30 * 60_000
const LOOK_MS = 1_000

/** Gives the moment its sequence and remembers what was in it, for later deltas. */
async function record(
  { carried }: ExportSnapshot,
  { dataDir, keep, spared, now }: ExportOptions,
  header: SummaryHeader,
): Promise<number> {
  const chunks: Buffer[] = []
  for await (const chunk of writeSummary(carried, header)) chunks.push(chunk)
  const summary = Buffer.concat(chunks)
  const store = openWrites(dataDir)
  try {
    for (const until = now() + WAIT_MS; ;) {
      try {
        const { sequence } = await store.transaction(() => {
          const given = store.recordExport(header.sources, header.createdAt, summary)
          store.forgetSummaries(keep, [...spared, given])
          return Promise.resolve({ commit: true, sequence: given })
        })
        return sequence
      } catch (error) {
        if (systemCode(error) !== 'SQLITE_BUSY' || now() > until) throw error
        await pause(LOOK_MS)
      }
    }
  } finally {
    store.close()
  }
}

function headOf(
  { reads }: ExportSnapshot,
  { expireDays, program }: ExportOptions,
  { mirror, digest, sources: described, createdAt }: SummaryHeader,
  base: Base | null,
): Omit<ManifestHead, 'sequence' | 'counts'> {
  const iso = (time: number): string => new Date(time).toISOString()
  const sources: ManifestHead['sources'] = {}
  for (const [name, { asOf, ...rest }] of Object.entries(described)) {
    const source = name as SourceName
    const whole = reads.readSnapshot(source)?.whole ?? false
    const bases = (base?.states[source] ?? []).map((state) => state.digest)
    sources[source] = { ...rest, asOf: iso(asOf), whole, bases }
  }
  const expiresAt = expireDays === 0 ? null : iso(createdAt + expireDays * 86_400_000)
  const kind = base === null ? 'full' : 'delta'
  const stamp = { createdAt: iso(createdAt), expiresAt, program }
  return { format: FORMAT, mirror, kind, ...stamp, digest, sources, base: base?.base ?? null }
}

async function refuseFullDisk(path: string, bytes: number, isDelta: boolean): Promise<void> {
  const folder = dirname(resolve(path))
  const { blocks, bavail, bsize } = await statfs(folder).catch((error: unknown) => {
    throw new MirrorError('storage', `${folder} cannot be written to (${messageOf(error)})`)
  })
  const free = bavail * bsize
  const needed = bytes + reserveFor(bytes, ...MARGIN)
  if (blocks === 0 || free >= needed) return // some file systems do not say
  const advice = isDelta
    ? 'free some space, or choose another place'
    : 'free some space, choose another place, or export a delta (--since, --for)'
  throw new MirrorError(
    'storage',
    `${folder} has ${shownBytes(free)} free and the bundle needs about ${shownBytes(needed)}: ${advice}`,
  )
}

/** For the manifest and what the file system needs itself: least and most. */
const MARGIN = [64_000, 4_000_000] as const
