import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DAY_MS, HOUR_MS } from '../../../base/time.ts'
import type { Config } from '../../../config/schema.ts'
import { MirrorError, messageOf, systemCode } from '../../../base/errors.ts'
import { makeFolder } from '../../../base/files.ts'
import { SOURCES, type SourceName } from '../../../base/domain/sources.ts'
import { type ExportReport, exportBundle } from '../export/export.ts'
import { type PublishedState, readPublishedState } from '../export/published-state.ts'
import { AHEAD_MS } from '../export/record-state.ts'
import type { SigningKey } from '../format/keys.ts'
import type { Manifest } from '../format/manifest.ts'
import { inspectBundle } from '../import/open.ts'
import { readThinClaims } from '../thin/decode.ts'
import { isThin } from '../thin/format.ts'
import { type Confirmation, readReceipts } from './receipts.ts'

/** Dependencies of an outbox. */
interface OutboxDeps {
  readonly settings: Pick<Config['bundle'], 'keep' | 'fullDays' | 'expireDays'>
  readonly folder: string
  readonly dataDir: string
  readonly keys: readonly SigningKey[]
  readonly trustRoot: readonly string[]
  readonly program: string
  readonly now: () => number
  /** Called with what is wrong and does not stop the export. */
  readonly onTrouble?: (message: string) => void
}

/** A bundle that was written to the outbox. */
export interface Shipped {
  readonly sequence: number
  readonly kind: 'full' | 'delta'
  readonly file: string
  readonly bytes: number
  /** Sources that were incomplete. */
  readonly partial: readonly string[]
  /** What receipts made of it, for people; null: there were none, or it is a full bundle. */
  readonly receipts: string | null
}

/** How old the dates in the outbox may be, hours, while nothing changes: well below the `maxAgeHours` of target mirrors. */
const DATE_HOURS = 6

/** Temporary name; renamed when complete. */
const DRAFT = '.patchmirror-export.zip'

/**
 * Exports the published state into the outbox: a full bundle when the last one is `fullDays` old or lacks a key, else a delta since it; a thin
 * one where receipts say that the newest file has arrived.
 * Returns null if the state is there already, with a date within `DATE_HOURS`, or nothing is published. Throws as
 * `exportBundle`, the system's errors for its folder, and `bundle` for a mirror that was restored from a backup.
 */
export async function fillOutbox(deps: OutboxDeps): Promise<Shipped | null> {
  const { folder, dataDir, settings } = deps
  const state = readPublishedState(dataDir)
  if (state === null) return null
  const { mirror, remembered, exported } = state
  readyFolder(folder, remembered.size > 0)
  const all = listOutbox(folder, mirror)
  refuseRestored(all, state)
  const files = await withoutFuture(deps, all)
  const full = files.findLast(({ kind }) => kind === 'full')
  const isOld = full === undefined || !remembered.has(full.sequence) || (await ageOf(deps, full))
  // With `fullDays` 0, the age of the last full bundle is no reason for another export.
  if ((!isOld || settings.fullDays === 0) && (await isThere(deps, files, state))) return null
  const fulls = files.filter(({ kind }) => kind === 'full').map(({ sequence }) => sequence)
  const newest = files.at(-1)?.sequence ?? 0
  const sent = { sequence: newest, digest: remembered.get(newest), exported }
  const { report, isThin, why } = isOld
    ? { report: await exportTo(deps, null, fulls), isThin: false, why: null }
    : await exportDelta(deps, { sent, full: full.sequence }, fulls)
  const { manifest, bytes, partial } = report
  const { sequence, kind, createdAt } = manifest
  const made = { sequence, kind, isWhole: !isThin, dated: '' }
  const file = freeName(folder, mirror, made, all, Date.parse(createdAt))
  renameSync(join(folder, DRAFT), join(folder, file.name))
  pruneOutbox(folder, files, file, settings.keep)
  return { sequence, kind, file: file.name, bytes, partial, receipts: why }
}

/** Makes the folder, but for a mirror that has exported before: what is not there then is a medium that is not mounted. */
function readyFolder(folder: string, hasExported: boolean): void {
  if (hasExported && !existsSync(folder))
    throw new MirrorError('storage', `the outbox ${folder} is not there: mount its medium, or make the folder`)
  makeFolder(folder)
}

/** What a delta may build on. */
interface DeltaBases {
  readonly sent: Parameters<typeof readReceipts>[1]
  /** The sequence of the last full bundle. */
  readonly full: number
}

/**
 * Exports a delta to the draft: a thin one where receipts say that the newest file has arrived, else a whole one, also where the
 * thin form fails; what fails the whole one too is the failure of the export.
 */
async function exportDelta(
  deps: OutboxDeps,
  { sent, full }: DeltaBases,
  spared: readonly number[],
): Promise<Confirmation & { readonly report: ExportReport }> {
  const exportWhole = () => exportTo(deps, { sequence: full, isThin: false }, spared)
  const said = await askReceipts(deps, sent)
  if (!said.isThin) return { ...said, report: await exportWhole() }
  try {
    return { ...said, report: await exportTo(deps, { sequence: sent.sequence, isThin: true }, spared) }
  } catch (error) {
    if (!mayBeOfThinForm(error)) throw error
    const report = await exportWhole()
    const why = `whole: a thin one could not be made: ${messageOf(error)}`
    deps.onTrouble?.(`outbox: bundle ${report.manifest.sequence} is ${why}`)
    return { isThin: false, why, report }
  }
}

const CODES_OF_THIN_FORM: readonly string[] = ['usage', 'bundle', 'archive', 'internal']

/** Reports whether a whole export may do what failed: not where the disk, a database or the settings are at fault. */
function mayBeOfThinForm(error: unknown): boolean {
  if (error instanceof MirrorError) return CODES_OF_THIN_FORM.includes(error.code)
  return !/^(?:E[A-Z\d]+|SQLITE_.+)$/.test(systemCode(error) ?? '')
}

/** Exports to the draft; `base`: on which it builds, null: a full bundle. */
function exportTo(
  deps: OutboxDeps,
  base: { readonly sequence: number; readonly isThin: boolean } | null,
  spared: readonly number[],
): Promise<ExportReport> {
  const { folder, settings } = deps
  return exportBundle({
    ...deps,
    path: join(folder, DRAFT),
    sources: null,
    since: base === null ? null : String(base.sequence),
    need: null,
    thin: base?.isThin === true,
    split: null,
    force: true,
    expireDays: settings.expireDays,
    keep: settings.keep,
    spared,
    onProgress: () => undefined,
  })
}

/** Reads what receipts make of the next delta; one that cannot be read makes it whole, and is reported. */
async function askReceipts({ folder, onTrouble }: OutboxDeps, sent: DeltaBases['sent']): Promise<Confirmation> {
  try {
    return await readReceipts(folder, sent)
  } catch (error) {
    onTrouble?.(`outbox: ${messageOf(error)}`)
    return { isThin: false, why: `whole: ${messageOf(error)}` }
  }
}

/** Leaves out what is dated long after now, since a clock was or is wrong: target mirrors refuse it until that time has come. */
async function withoutFuture({ folder, now }: OutboxDeps, files: readonly OutboxFile[]): Promise<OutboxFile[]> {
  const present: OutboxFile[] = []
  for (const file of files) {
    const manifest = await readManifest(join(folder, file.name))
    if (manifest === null || Date.parse(manifest.createdAt) <= now() + AHEAD_MS) present.push(file)
  }
  return present
}

/** Throws if the outbox has a later export: target mirrors would take new exports for older ones. */
function refuseRestored(files: readonly OutboxFile[], { mirror, last }: PublishedState): void {
  const newest = files.at(-1)
  if (newest === undefined || newest.sequence <= last) return
  throw new MirrorError(
    'bundle',
    `${newest.name} is of this mirror (${mirror}), whose last recorded export is ${last}: the mirror was restored from a ` +
      'backup. Run "patchmirror bundle inspect --new-identity", then target mirrors accept its exports again',
  )
}

/**
 * Reports whether the full bundle is too old to build on, unreadable, or without a key that signs now: target mirrors that trust no
 * other one could not begin with it.
 */
async function ageOf({ folder, settings, keys, now }: OutboxDeps, { name, sequence }: OutboxFile): Promise<boolean> {
  const manifest = await readManifest(join(folder, name))
  if (manifest === null || keys.some(({ id }) => !manifest.keys.includes(id))) return true
  const until = Date.parse(manifest.createdAt) + settings.fullDays * DAY_MS
  return manifest.kind !== 'full' || manifest.sequence !== sequence || until <= now()
}

/** Reports whether the newest bundle in the outbox is the published state, with a recent date. */
async function isThere(
  { folder }: OutboxDeps,
  files: readonly OutboxFile[],
  { current, asOf }: PublishedState,
): Promise<boolean> {
  if (current === null || files.at(-1)?.sequence !== current) return false
  const exportedDates: Partial<Record<SourceName, number>> = {}
  for (const { name, sequence } of files) {
    if (sequence !== current) continue
    const manifest = await readManifest(join(folder, name))
    for (const source of SOURCES) {
      const date = Date.parse(manifest?.sources[source]?.asOf ?? '')
      if (date > (exportedDates[source] ?? 0)) exportedDates[source] = date
    }
  }
  return SOURCES.every((source) => (asOf[source] ?? 0) - (exportedDates[source] ?? 0) < DATE_HOURS * HOUR_MS)
}

/** Returns null for an unreadable bundle. */
async function readManifest(path: string): Promise<Manifest | null> {
  try {
    if (isThin(path)) return readThinClaims(path).manifest
    const bundle = await inspectBundle([path])
    await bundle.close()
    return bundle.manifest
  } catch (error) {
    if (error instanceof MirrorError) return null
    throw error
  }
}

/** A bundle in the outbox, as described by its name. */
export interface OutboxFile {
  readonly name: string
  readonly sequence: number
  readonly kind: 'full' | 'delta'
  /** When it was created, if it repeats an exported state with a later date; empty: a new state. */
  readonly dated: string
  /** Whether it is no thin one. */
  readonly isWhole: boolean
}

/**
 * Returns the name of a bundle in the outbox. A bundle that only has a later date than another of its sequence gets a
 * different name, since transfer tools skip names that they know.
 */
function outboxName(mirror: string, { sequence, kind, dated, isWhole }: Omit<OutboxFile, 'name'>): string {
  const number = String(sequence).padStart(8, '0')
  const date = dated === '' ? '' : `.dated-${dated}`
  return `patchmirror-${mirror.slice(0, 8)}-${number}-${kind}${date}.bundle.${isWhole ? 'zip' : 'thin'}`
}

/** Returns a file whose name was not used: transfer tools skip names that they know. `createdAt`: Unix milliseconds. */
function freeName(
  folder: string,
  mirror: string,
  made: Omit<OutboxFile, 'name'>,
  files: readonly OutboxFile[],
  createdAt: number,
): OutboxFile {
  const isKnown = files.some(({ sequence, kind }) => sequence === made.sequence && kind === made.kind)
  const plain = outboxName(mirror, made)
  if (!isKnown && !existsSync(join(folder, plain))) return { ...made, name: plain }
  for (let at = createdAt; ; at += 1000) {
    const dated = dateInName(at)
    const name = outboxName(mirror, { ...made, dated })
    if (!existsSync(join(folder, name))) return { ...made, dated, name }
  }
}

/** Formats a time for names, to the second. */
function dateInName(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`
}

const NAME = /^patchmirror-([\da-f]{8})-(\d{8,})-(full|delta)(?:\.dated-(\d{8}T\d{6}Z))?\.bundle\.(zip|thin)$/

/** Returns this mirror's bundles in the outbox, oldest first. Throws the system's error for an unreadable folder. */
export function listOutbox(folder: string, mirror: string): OutboxFile[] {
  return readdirSync(folder)
    .flatMap((name): OutboxFile[] => {
      const [, of, number, kind, dated = '', form] = NAME.exec(name) ?? []
      if (of !== mirror.slice(0, 8)) return []
      return [
        { name, sequence: Number(number), kind: kind === 'full' ? 'full' : 'delta', dated, isWhole: form === 'zip' },
      ]
    })
    .sort(compareFiles)
}

function compareFiles(a: OutboxFile, b: OutboxFile): number {
  const byKind = Number(a.kind === 'delta') - Number(b.kind === 'delta')
  return a.sequence - b.sequence || byKind || (a.dated < b.dated ? -1 : 1)
}

/**
 * Returns the files to keep: the newest `keep`, and each that leads to one of these: the full bundle that a delta builds on, and what
 * comes before a thin one, back to a whole one. Bundles that differ only in their dates count as one, so that a quiet upstream does
 * not displace others.
 */
export function keptFiles(files: readonly OutboxFile[], keep: number): OutboxFile[] {
  const latest = files.filter((file) => files.findLast((one) => isOfOneForm(one, file)) === file)
  const newest = latest.slice(-keep)
  const chain = [...newest, ...leadingTo(files, newest[0])]
  const full = latest.filter(({ kind }) => kind === 'full')
  const bases = chain
    .filter(({ kind }) => kind === 'delta')
    .flatMap(({ sequence }) => [
      full.findLast((one) => one.sequence < sequence),
      full.find((one) => one.sequence === sequence), // a delta that has only a later date
    ])
  return files.filter((one) => chain.includes(one) || bases.includes(one))
}

/** Returns the files before a thin one, back to the last whole one: each is the base of the next. */
function leadingTo(files: readonly OutboxFile[], first: OutboxFile | undefined): OutboxFile[] {
  if (first === undefined || first.isWhole) return []
  const before = files.slice(0, files.indexOf(first))
  return before.slice(
    Math.max(
      0,
      before.findLastIndex(({ isWhole }) => isWhole),
    ),
  )
}

function isOfOneForm(one: OutboxFile, other: OutboxFile): boolean {
  return one.sequence === other.sequence && one.kind === other.kind && one.isWhole === other.isWhole
}

/**
 * Removes those of `files` that are not kept; never the one that was just made. What is dated after now stays: it may be this clock
 * that is wrong.
 */
function pruneOutbox(folder: string, files: readonly OutboxFile[], made: OutboxFile, keep: number): void {
  const kept = keptFiles([...files, made].sort(compareFiles), keep)
  for (const file of files) if (!kept.includes(file)) rmSync(join(folder, file.name), { force: true })
}
