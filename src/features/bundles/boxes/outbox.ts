import { readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DAY_MS, HOUR_MS } from '../../../base/time.ts'
import type { Config } from '../../../config/schema.ts'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import { makeFolder } from '../../../base/files.ts'
import { SOURCES, type SourceName } from '../../../base/domain/sources.ts'
import { exportBundle } from '../export/export.ts'
import { type PublishedState, readPublishedState } from '../export/published-state.ts'
import type { SigningKey } from '../format/keys.ts'
import type { Manifest } from '../format/manifest.ts'
import { inspectBundle } from '../import/open.ts'
import { readThinClaims } from '../thin/decode.ts'
import { isThin } from '../thin/format.ts'
import { receiptOf } from './receipts.ts'

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
}

/** How old the dates in the outbox may be, hours, while nothing changes: well below the `maxAgeHours` of target mirrors. */
const DATE_HOURS = 6

/** Temporary name; renamed when complete. */
const DRAFT = '.patchmirror-export.zip'

/**
 * Exports the published state into the outbox: a full bundle when the last one is `fullDays` old, else a delta since it; a thin
 * one where receipts say that the newest file has arrived.
 * Returns null if the state is there already, with a date within `DATE_HOURS`, or nothing is published. Throws as
 * `exportBundle`, the system's errors for its folder, and `bundle` for a mirror that was restored from a backup.
 */
export async function fillOutbox(deps: OutboxDeps): Promise<Shipped | null> {
  const { folder, dataDir, settings } = deps
  const state = readPublishedState(dataDir)
  if (state === null) return null
  const { mirror, remembered } = state
  makeFolder(folder)
  const files = listOutbox(folder, mirror)
  refuseRestored(files, state)
  const full = files.findLast(({ kind }) => kind === 'full')
  const isOld = full === undefined || !remembered.has(full.sequence) || (await ageOf(deps, full))
  // With `fullDays` 0, the age of the last full bundle is no reason for another export.
  if ((!isOld || settings.fullDays === 0) && (await isThere(deps, files, state))) return null
  const path = join(folder, DRAFT)
  const receipt = isOld ? null : await receiptOfNewest(deps, files, state)
  const isWhole = receipt === null
  const report = await exportBundle({
    ...deps,
    path,
    sources: null,
    since: isOld || !isWhole ? null : String(full.sequence),
    need: receipt,
    thin: !isWhole,
    split: null,
    force: true,
    expireDays: settings.expireDays,
    keep: settings.keep,
    spared: files.filter(({ kind }) => kind === 'full').map(({ sequence }) => sequence),
    onProgress: () => undefined,
  })
  const { sequence, kind, createdAt } = report.manifest
  const isKnown = files.some((one) => one.sequence === sequence && one.kind === kind)
  const dated = isKnown ? dateInName(Date.parse(createdAt)) : ''
  const file = outboxName(mirror, { sequence, kind, dated, isWhole })
  renameSync(path, join(folder, file))
  pruneOutbox(folder, mirror, settings.keep)
  return { sequence, kind, file, bytes: report.bytes, partial: report.partial }
}

/** Returns the receipt of what was exported last; null: it is not known to have arrived. */
async function receiptOfNewest(
  { folder, onTrouble }: OutboxDeps,
  files: readonly OutboxFile[],
  { remembered }: PublishedState,
): Promise<Buffer | null> {
  const digest = remembered.get(files.at(-1)?.sequence ?? 0)
  if (digest === undefined) return null
  try {
    return await receiptOf(folder, digest)
  } catch (error) {
    onTrouble?.(`outbox: ${messageOf(error)}`)
    return null
  }
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

/** Reports whether the full bundle is too old to build on, or unreadable. */
async function ageOf({ folder, settings, now }: OutboxDeps, { name, sequence }: OutboxFile): Promise<boolean> {
  const manifest = await readManifest(join(folder, name))
  if (manifest === null) return true
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
    .sort(
      (a, b) =>
        a.sequence - b.sequence ||
        Number(a.kind === 'delta') - Number(b.kind === 'delta') ||
        (a.dated < b.dated ? -1 : 1),
    )
}

/**
 * Returns the files to keep: the newest `keep`, and each full bundle on which a delta among them builds. Bundles that
 * differ only in their dates count as one, so that a quiet upstream does not displace others.
 */
export function keptFiles(files: readonly OutboxFile[], keep: number): OutboxFile[] {
  const latest = files.filter((file) => files.findLast((one) => isOfOneForm(one, file)) === file)
  const newest = latest.slice(-keep)
  const full = latest.filter(({ kind }) => kind === 'full')
  const bases = newest
    .filter(({ kind }) => kind === 'delta')
    .flatMap(({ sequence }) => [
      full.findLast((one) => one.sequence < sequence),
      full.find((one) => one.sequence === sequence), // a delta that has only a later date
    ])
  return files.filter((one) => newest.includes(one) || bases.includes(one))
}

function isOfOneForm(one: OutboxFile, other: OutboxFile): boolean {
  return one.sequence === other.sequence && one.kind === other.kind && one.isWhole === other.isWhole
}

/** Removes the files that are not kept. */
function pruneOutbox(folder: string, mirror: string, keep: number): void {
  const files = listOutbox(folder, mirror)
  const kept = new Set(keptFiles(files, keep))
  for (const file of files) if (!kept.has(file)) rmSync(join(folder, file.name), { force: true })
}
