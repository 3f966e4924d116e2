import { statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { createGzip, gzipSync } from 'node:zlib'
import { DAY_MS, toIso } from '../../../base/time.ts'
import { reserveFor, shownBytes } from '../../../base/disk-space.ts'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import type { OnProgress } from '../../../base/domain/progress.ts'
import type { SourceName } from '../../../base/domain/sources.ts'
import { acquireLock } from '../../../store/database/lock.ts'
import { type SummaryHeader, createStatePass } from './summary.ts'
import { whyWithheld } from '../../../store/runs/rejected.ts'
import { readTrust } from '../../../documents/signatures/trust.ts'
import { sha256Hex } from '../../../base/digest.ts'
import { faultOfRecordId } from '../../../base/domain/record-id.ts'
import type { RecordDates } from '../../../store/dates/reads.ts'
import type { SigningKey } from '../format/keys.ts'
import { FORMAT, type Manifest, type ManifestHead } from '../format/manifest.ts'
import { LARGEST_TRUST, TRUST_HEADER } from '../format/trust-root.ts'
import { DATES_HEADER, datesLine } from '../format/dates.ts'
import { DOUBT_NAMES_HEADER, MOST_CARRIED, countsOfDoubts, isCarried } from '../format/doubts.ts'
import type { Carried } from '../format/carried.ts'
import { countsOfWithheld } from '../format/withheld.ts'
import { sizeOfData, writeData } from './blobs.ts'
import { type Base, baseOfExport, baseOfNeed, findSince } from './delta-base.ts'
import { describeState, recordState } from './record-state.ts'
import { type RowsWritten, writeRows } from './rows.ts'
import { verifyOwn } from './self-check.ts'
import { prepareThin } from '../thin/publish.ts'
import { type ExportSnapshot, pinExportSnapshot } from './snapshot.ts'
import { type BundleWriter, createBundleWriter } from './writer.ts'

/** Options of an export. */
export interface ExportOptions {
  readonly dataDir: string
  readonly path: string
  /** Null: all sources with a snapshot. */
  readonly sources: readonly SourceName[] | null
  /** An export's sequence or a snapshot's id, a need file's bytes, or neither: a full bundle. */
  readonly since: string | null
  readonly need: Buffer | null
  /** Bytes of a part; null: one file. */
  readonly split: number | null
  readonly force: boolean
  /** As what its base lacks alone (`encodeThin`); needs `since` or `need`. */
  readonly thin?: boolean
  /** Empty: the bundle is not signed. */
  readonly keys: readonly SigningKey[]
  /** What this mirror trusts to sign artifacts, as in `catalog.trustRoot`: a bundle with the catalog carries it. */
  readonly trustRoot: readonly string[]
  /** 0: it never expires. */
  readonly expireDays: number
  /** Number of newest exports on which later deltas can build, and further sequences. */
  readonly keep: number
  readonly spared: readonly number[]
  readonly program: string
  /** As for `createTarget`. */
  readonly staging?: string
  readonly now: () => number
  readonly onProgress: OnProgress
}

/** What was exported. */
export interface ExportReport {
  readonly manifest: Manifest
  readonly files: string[]
  readonly bytes: number
  /** Sources that were incomplete: data was missing or stale already. */
  readonly partial: SourceName[]
}

/**
 * Writes a bundle of one snapshot while syncs continue, and verifies all of it before it gets its final name. Throws
 * `usage`, `not_ready`, `locked`, `storage`, `corrupt`, `bundle`; then no file is left.
 */
export async function exportBundle(options: ExportOptions): Promise<ExportReport> {
  // One at a time: a later sequence must be a later state.
  const lock = acquireLock(options.dataDir, 'export')
  try {
    const full = options.since === null && options.need === null
    const withArchive = full && (options.sources?.includes('osv') ?? true)
    const snapshot = await pinExportSnapshot(options.dataDir, withArchive)
    try {
      return await exportPinned(snapshot, options)
    } finally {
      snapshot.close()
    }
  } finally {
    lock.release()
  }
}

/** Executes an export: sources → base → rows → data → sequence → manifest → check → name. */
async function exportPinned(snapshot: ExportSnapshot, options: ExportOptions): Promise<ExportReport> {
  const sources = chosenSources(snapshot, options)
  const base = await chosenBase(snapshot, options, sources)
  const thin = options.thin === true ? prepareThin(snapshot.reads, base, options) : null
  const writer = createBundleWriter(thin?.whole ?? options.path, options)
  try {
    const { onProgress } = options
    const states = base?.states ?? null
    const pass = createStatePass(snapshot.carried)
    const written = await writeRows({ carried: snapshot.carried, pass }, sources, states, writer, (done) =>
      onProgress({ phase: 'rows', unit: 'rows', done, total: null }),
    )
    const total = sizeOfData(snapshot, written)
    await refuseFullDisk(options.path, total, base !== null)
    await writeData(snapshot, written, writer, (done) =>
      onProgress({ phase: 'write', unit: 'bytes', done, total: Math.max(done, total) }),
    )
    const since = base?.base.sequence ?? null
    const trusted = sources.includes('catalog') ? await writeTrustRoot(snapshot, options.trustRoot, writer) : {}
    const names = await writeDoubtNames(snapshot, sources, { base: since, now: options.now(), writer })
    const dated = await addDates(snapshot, sources, written, writer)
    const withheld = countsOfWithheld(sources.filter((source) => whyWithheld(snapshot.reads, source) !== null))
    const counts = {
      ...dated,
      ...countDoubts(snapshot, sources, since, options.now()),
      ...withheld,
      ...names,
      ...trusted,
    }
    const header = describeState(snapshot, options, pass.digests)
    const stated = { header, summary: await pass.summary(header) }
    const sequence = await recordState(snapshot, options, stated, documentsOf(snapshot, sources))
    const head = { ...headOf(snapshot, options, header, base), sequence, counts }
    const { manifest, bytes, drafts } = await writer.complete(head, options.keys)
    await verifyOwn(drafts, options.keys, onProgress)
    const made = thin === null ? { files: await writer.publish(), bytes } : await thin.publish(drafts, written.blobs)
    const partial = sources.filter((source) => manifest.sources[source]?.whole === false)
    if (thin !== null) await writer.discard()
    return { manifest, ...made, partial }
  } catch (error) {
    await writer.discard()
    throw error
  }
}

/** Writes the dates of the records, where there are any. Returns the counts with theirs. */
async function addDates(
  snapshot: ExportSnapshot,
  sources: readonly SourceName[],
  { counts, dated }: RowsWritten,
  writer: BundleWriter,
): Promise<ManifestHead['counts']> {
  const put = sources.includes('osv') ? await writeDates(snapshot, dated, writer) : 0
  return put === 0 ? counts : { ...counts, 'osv-dates': { put, removed: 0 } }
}

function documentsOf({ reads }: ExportSnapshot, sources: readonly SourceName[]): string[] {
  return sources.flatMap((source) => reads.feeds.listDocuments(source).map(({ path }) => path))
}

function chosenSources({ carried }: ExportSnapshot, { sources, dataDir }: ExportOptions): SourceName[] {
  const stored = carried.listStoredSources()
  const missing = sources?.find((source) => !stored.includes(source))
  if (missing !== undefined) throw new MirrorError('not_ready', `nothing is mirrored yet of ${missing} in ${dataDir}`)
  const chosen = stored.filter((source) => sources?.includes(source) ?? true)
  if (chosen.length === 0)
    throw new MirrorError('not_ready', `nothing is mirrored yet in ${dataDir}: sync, or import a full bundle, first`)
  return chosen
}

async function chosenBase(
  { reads }: ExportSnapshot,
  { since, need }: ExportOptions,
  sources: readonly SourceName[],
): Promise<Base | null> {
  if (since !== null) return baseOfExport(reads.ledger, findSince(reads.ledger, since), sources)
  return need === null ? null : baseOfNeed(reads.ledger, need, sources)
}

function headOf(
  { reads }: ExportSnapshot,
  { expireDays, program }: ExportOptions,
  { mirror, digest, sources: described, createdAt }: SummaryHeader,
  base: Base | null,
): Omit<ManifestHead, 'sequence' | 'counts'> {
  const sources: ManifestHead['sources'] = {}
  for (const [name, { asOf, ...rest }] of Object.entries(described)) {
    const source = name as SourceName
    const whole = reads.snapshots.readSnapshot(source)?.whole ?? false
    const bases = (base?.states[source] ?? []).map((state) => state.digest)
    sources[source] = { ...rest, asOf: toIso(asOf), whole, bases }
  }
  const expiresAt = expireDays === 0 ? null : toIso(createdAt + expireDays * DAY_MS)
  const kind = base === null ? 'full' : 'delta'
  const stamp = { createdAt: toIso(createdAt), expiresAt, program }
  return { format: FORMAT, mirror, kind, ...stamp, digest, sources, base: base?.base ?? null }
}

async function refuseFullDisk(path: string, bytes: number, isDelta: boolean): Promise<void> {
  const folder = dirname(resolve(path))
  const { blocks, bavail, bsize } = await statfs(folder).catch((error: unknown) => {
    throw new MirrorError('storage', `${folder} cannot be written to (${messageOf(error)})`)
  })
  const free = bavail * bsize
  const needed = bytes + reserveFor(bytes, ...MARGIN)
  if (blocks === 0 || free >= needed) return // some file systems do not report it
  const advice = isDelta
    ? 'free some space, or choose another place'
    : 'free some space, choose another place, or export a delta (--since, --for)'
  throw new MirrorError(
    'storage',
    `${folder} has ${shownBytes(free)} free and the bundle needs about ${shownBytes(needed)}: ${advice}`,
  )
}

/** Reserve for the manifest and the file system, bytes: least and most. */
const MARGIN = [64_000, 4_000_000] as const

/**
 * Writes what this mirror trusts to sign artifacts, so that a mirror that trusts the bundle can verify them by it. `files`: as in
 * `catalog.trustRoot`. Returns its count; none: nothing is trusted. Throws `config`.
 */
async function writeTrustRoot(
  { reads }: ExportSnapshot,
  files: readonly string[],
  writer: BundleWriter,
): Promise<ManifestHead['counts']> {
  const { texts } = readTrust(files, reads.catalog.listCarriedTrust())
  const size = texts.reduce((sum, text) => sum + text.length, 0)
  if (size > LARGEST_TRUST)
    throw new MirrorError(
      'config',
      `catalog.trustRoot: its files have ${size} characters, and a bundle carries ${LARGEST_TRUST}`,
    )
  const lines = texts.map((text) => JSON.stringify(text))
  return writeCarried(writer, 'trust-root', { header: TRUST_HEADER, lines })
}

const PIECE = 65_536

/**
 * Writes the dates of records as the last member: of all, also of removed ones, or, with ids, of these. Returns how many;
 * without any there is no member.
 */
async function writeDates(
  { reads }: Pick<ExportSnapshot, 'reads'>,
  ids: readonly string[] | null,
  writer: BundleWriter,
): Promise<number> {
  const counted = { records: 0 }
  const rows = ids === null ? reads.dates.eachDates() : datesOf(reads, ids)
  const chunks: Buffer[] = []
  for await (const chunk of Readable.from(textOf(rows, counted)).pipe(createGzip({ level: 6 })))
    chunks.push(chunk as Buffer)
  if (counted.records === 0) return 0
  const bytes = Buffer.concat(chunks)
  await writer.addStored(`blobs/${sha256Hex(bytes)}.gz`, bytes.length, [bytes])
  return counted.records
}

function* datesOf({ dates }: ExportSnapshot['reads'], ids: readonly string[]): Generator<RecordDates> {
  for (const id of ids) {
    const one = dates.readDates(id)
    if (one !== null) yield one
  }
}

function* textOf(rows: Iterable<RecordDates>, counted: { records: number }): Generator<string> {
  let text = `${DATES_HEADER}\n`
  for (const row of rows) {
    if (faultOfRecordId(row.id) !== null) continue // no mirror accepts it
    counted.records++
    text += `${datesLine(row)}\n`
    if (text.length < PIECE) continue
    yield text
    text = ''
  }
  yield text
}

/** Doubts that a full bundle carries are younger than this. */
const YOUNG_MS = 7 * DAY_MS

/**
 * Returns the counts of what was published although the guard doubted it: since the export on which a delta builds, or in a full
 * bundle within the last days. `base`: the sequence of that export; null: a full bundle, or an unknown one. Unix milliseconds.
 */
function countDoubts(
  { reads }: ExportSnapshot,
  sources: readonly SourceName[],
  base: number | null,
  now: number,
): ManifestHead['counts'] {
  const since = sinceOf(reads, base, now)
  const found = sources.map((source) => countsOfDoubts(source, reads.changes.countDoubts(source, since)))
  return Object.assign({}, ...found) as ManifestHead['counts']
}

function sinceOf(reads: ExportSnapshot['reads'], base: number | null, now: number): number {
  const exported = base === null ? null : reads.ledger.readExport(base)
  return exported?.exportedAt ?? now - YOUNG_MS
}

/** Writes the first names of each kind as a member, before the dates of records. Returns their count; none: there is no member. */
async function writeDoubtNames(
  { reads }: ExportSnapshot,
  sources: readonly SourceName[],
  { base, now, writer }: { readonly base: number | null; readonly now: number; readonly writer: BundleWriter },
): Promise<ManifestHead['counts']> {
  const since = sinceOf(reads, base, now)
  const lines: string[] = []
  for (const source of sources)
    for (const [kind, names] of reads.changes.listDoubtNames(source, since)) {
      const short = names.filter(isCarried)
      for (const name of short.slice(0, MOST_CARRIED.names)) lines.push(JSON.stringify([source, kind, name]))
    }
  return writeCarried(writer, 'doubt-names', { header: DOUBT_NAMES_HEADER, lines })
}

/** Writes lines that a bundle carries beside its state as a member. Returns their count; none: there is no member. */
async function writeCarried(
  writer: BundleWriter,
  kind: Carried,
  { header, lines }: { readonly header: string; readonly lines: readonly string[] },
): Promise<ManifestHead['counts']> {
  if (lines.length === 0) return {}
  const bytes = gzipSync([header, ...lines, ''].join('\n'))
  await writer.addStored(`blobs/${sha256Hex(bytes)}.gz`, bytes.length, [bytes])
  return { [kind]: { put: lines.length, removed: 0 } }
}
