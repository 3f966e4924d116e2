import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { DAY_MS, HOUR_MS } from '../../../base/time.ts'
import type { Config } from '../../../config/schema.ts'
import { MirrorError } from '../../../base/errors.ts'
import { makeFolder } from '../../../base/files.ts'
import { SOURCES, type SourceName } from '../../../base/domain/sources.ts'
import { exportBundle } from '../export/export.ts'
import { type PublishedState, readPublishedState } from '../export/published-state.ts'
import type { SigningKey } from '../format/keys.ts'
import type { Manifest } from '../format/manifest.ts'
import { inspectBundle } from '../import/open.ts'
import { type OutboxFile, dateInName, listOutbox, outboxName, pruneOutbox } from './outbox-files.ts'

/** Dependencies of an outbox. */
interface OutboxDeps {
  readonly settings: Pick<Config['bundle'], 'keep' | 'fullDays' | 'dateHours' | 'expireDays'>
  readonly folder: string
  readonly dataDir: string
  readonly keys: readonly SigningKey[]
  readonly trustRoot: readonly string[]
  readonly program: string
  readonly now: () => number
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

/** Temporary name; renamed when complete. */
const DRAFT = '.patchmirror-export.zip'

/**
 * Exports the published state into the outbox: a full bundle when the last one is `fullDays` old, else a delta since it.
 * Returns null if the state is there already, with a date within `dateHours`, or nothing is published. Throws as
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
  const report = await exportBundle({
    ...deps,
    path,
    sources: null,
    since: isOld ? null : String(full.sequence),
    need: null,
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
  const file = outboxName(mirror, { sequence, kind, dated })
  renameSync(path, join(folder, file))
  pruneOutbox(folder, mirror, settings.keep)
  return { sequence, kind, file, bytes: report.bytes, partial: report.partial }
}

/** Throws if the outbox has a later export: target mirrors would take new exports for older ones. */
function refuseRestored(files: readonly OutboxFile[], { mirror, last }: PublishedState): void {
  const newest = files.at(-1)
  if (newest === undefined || newest.sequence <= last) return
  throw new MirrorError(
    'bundle',
    `${newest.name} is of this mirror (${mirror}), whose last recorded export is ${last}: the mirror was restored from a ` +
      'backup. Run "patchmirror identity --new", then target mirrors accept its exports again',
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
  { folder, settings }: OutboxDeps,
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
  return SOURCES.every((source) => (asOf[source] ?? 0) - (exportedDates[source] ?? 0) < settings.dateHours * HOUR_MS)
}

/** Returns null for an unreadable bundle. */
async function readManifest(path: string): Promise<Manifest | null> {
  try {
    const bundle = await inspectBundle([path])
    await bundle.close()
    return bundle.manifest
  } catch (error) {
    if (error instanceof MirrorError) return null
    throw error
  }
}
