import { DAY_MS } from '../../../../base/time.ts'
import type { Config } from '../../../../config/schema.ts'
import type { SigningKey } from '../../../bundles/format/keys.ts'
import type { SourceName } from '../../../../base/domain/sources.ts'
import type { ExportedFile, Exporter } from './exporter.ts'
import type {
  ChangeCounts,
  Generation,
  KnownGeneration,
  NamedDelta,
  NamedFull,
  NamedObject,
  NamedThin,
} from '../format/generation.ts'
import { bundleKey } from '../format/object-names.ts'
import { isStored, lostOf } from '../uploads.ts'
import type { ObjectStore } from '../../objects/object-store.ts'

/** The bundles of a generation: the files to upload, and how it names them. */
export interface ExportedBundles {
  readonly files: readonly (ExportedFile & { readonly key: string })[]
  readonly mirror: string
  readonly digest: string
  readonly sources: Generation['sources']
  readonly full: NamedFull
  readonly delta: NamedDelta | null
  readonly thin: readonly NamedThin[]
}

/** What decides which bundles are exported. */
interface ExportChoice {
  readonly store: Pick<ObjectStore, 'head'>
  readonly exporter: Exporter
  readonly config: Pick<Config, 'bundle'>
  readonly keys: readonly Pick<SigningKey, 'id'>[]
  readonly now: () => number
  /** The newest generation; null: none. */
  readonly before: KnownGeneration | null
  readonly reason: Generation['reason']
  /** How many names differ from the newest generation; null: everything may. */
  readonly counts: ChangeCounts | null
  /** Whether all mirrors can make a whole bundle of a thin one. Not given: it is not known. */
  readonly canTakeThin?: () => Promise<boolean>
}

/** Exports what the next generation needs: a thin bundle on the newest one where that will do, or else a delta, and a full bundle. */
export async function exportBundles(choice: ExportChoice): Promise<ExportedBundles> {
  return (await exportThin(choice)) ?? exportWhole(choice)
}

/** Thin bundles that follow each other at most, and the bytes of those after which none follows: who was away applies all of them. */
const MOST_THIN = 16
const MOST_THIN_BYTES = 4_000_000
/** Names that differ at most: what is thin takes several times as long to make. */
const MOST_THIN_NAMES = 5_000

/**
 * Exports a thin bundle on the newest generation. Null: mirrors need a whole one, as after many thin ones, for many names, or where one
 * was lost or another key signs.
 */
async function exportThin(choice: ExportChoice): Promise<ExportedBundles | null> {
  const { exporter, before, reason, counts, canTakeThin } = choice
  const last = before?.generation
  const base = last === undefined ? null : exporter.findBase(last.digest)
  if (last === undefined || base === null || reason === 'rollback' || countNames(counts) > MOST_THIN_NAMES) return null
  const { thin = [] } = last
  const bytes = thin.reduce((sum, { size }) => sum + size, 0)
  if (thin.length >= MOST_THIN || bytes > MOST_THIN_BYTES) return null
  if (isOutdated(choice, last.full) || hasNewKey(choice, last) || (await canTakeThin?.()) !== true) return null
  if ((await lostOf(choice.store, last)).length > 0) return null
  const full = exporter.findBase(last.full.digest)
  const file = await exporter.exportFile(base, full === null ? [base] : [full, base], true)
  const { digest } = file.manifest
  if (bringsSource(file, last)) {
    exporter.discard(file)
    return null
  }
  return {
    ...describe(file),
    files: [{ ...file, key: bundleKey(file.sha256) }],
    full: last.full,
    delta: last.delta && withOwnState(last.delta, last),
    thin: [...thin, { ...nameFile(file), base: last.digest, digest }],
  }
}

function countNames(counts: ChangeCounts | null): number {
  return counts === null ? Infinity : counts.added + counts.removed + counts.changed
}

/** A delta that thin bundles follow also applies to the state that it leads to itself: no other field names that. */
function withOwnState(delta: NamedDelta, { sources, thin }: Generation): NamedDelta {
  if (thin !== undefined) return delta // it names it already
  const bases = Object.entries(delta.bases).map(([name, states]) => {
    const own = sources[name as SourceName]?.digest
    return [name, own === undefined || states.includes(own) ? states : [...states, own]] as const
  })
  return { ...delta, bases: Object.fromEntries(bases) }
}

/**
 * Exports a delta that builds on the last full bundle, or else on the newest generation. A full bundle is exported when the last one is
 * `bundle.fullDays` old or not on the store any more, a source or a key is new, no state of it is remembered, or the delta since it has
 * become large; then the delta applies to the states since the older one too, so that followers never need the new one.
 */
async function exportWhole(choice: ExportChoice): Promise<ExportedBundles> {
  const { exporter, before } = choice
  const last = before?.generation ?? null
  const fullBase = last === null ? null : exporter.findBase(last.full.digest)
  const base = fullBase ?? (last === null ? null : exporter.findBase(last.digest))
  const spared = [fullBase, base].filter((one) => one !== null)
  const since = base === null ? null : await exporter.exportFile(base, spared)
  const isOld =
    last === null ||
    fullBase === null ||
    bringsSource(since, last) ||
    isOutdated(choice, last.full) ||
    hasNewKey(choice, last) ||
    isLarge(since, last.full) ||
    !(await isStored(choice.store, last.full))
  const full = isOld ? await exporter.exportFile(null, [...spared, ...sequenceOf(since)]) : null
  // A run may have ended between the two exports: the delta leads to the later state.
  const isBehind = full !== null && since !== null && full.manifest.digest !== since.manifest.digest
  const delta = isBehind && base !== null ? await exporter.exportFile(base, [...spared, full.manifest.sequence]) : since
  const files = [full, delta].flatMap((one) => (one === null ? [] : [{ ...one, key: bundleKey(one.sha256) }]))
  const newest = delta ?? full
  if (newest === null) throw new Error('nothing was exported')
  const named = full === null ? last?.full : nameFull(full)
  if (named === undefined) throw new Error('no full bundle is named')
  const namedDelta = delta === null ? null : { ...nameFile(delta), bases: basesOf(delta) }
  return { ...describe(newest), files, full: named, delta: namedDelta, thin: [] }
}

/** Describes the state that a bundle leads to. */
function describe({ manifest }: ExportedFile): Pick<ExportedBundles, 'mirror' | 'digest' | 'sources'> {
  const { mirror, digest, sources } = manifest
  const described = Object.entries(sources).map(([name, { bases: _, ...source }]) => [name, source] as const)
  return { mirror, digest, sources: Object.fromEntries(described) }
}

function sequenceOf(file: ExportedFile | null): number[] {
  return file === null ? [] : [file.manifest.sequence]
}

/** A delta up to this size is never large, bytes: a new full bundle would cost more than it saves. */
const SMALL_BYTES = 4_000_000

/** Reports whether a delta costs every follower so much that one upload of a new full bundle is cheaper. */
function isLarge(delta: ExportedFile | null, full: NamedFull): boolean {
  return delta !== null && delta.size > Math.max(SMALL_BYTES, full.size / 10)
}

/**
 * Whether a delta has a source that the generation before, and so its full bundle, does not have: a mirror with another state
 * of that source could not begin with that full bundle.
 */
function bringsSource(delta: ExportedFile | null, { sources }: Generation): boolean {
  const names = Object.keys(delta?.manifest.sources ?? {}) as SourceName[]
  return names.some((name) => sources[name] === undefined)
}

/** Whether a key did not sign the generation before: mirrors that trust no other one could not begin with its full bundle. */
function hasNewKey({ keys }: ExportChoice, last: Generation): boolean {
  return keys.some(({ id }) => !last.keys.includes(id))
}

function isOutdated({ config, now, reason }: ExportChoice, { createdAt }: NamedFull): boolean {
  const { fullDays } = config.bundle
  if (fullDays === 0) return reason !== 'date'
  return Date.parse(createdAt) + fullDays * DAY_MS <= now()
}

function nameFile({ sha256, size }: ExportedFile): NamedObject {
  return { key: bundleKey(sha256), sha256, size }
}

function nameFull(file: ExportedFile): NamedFull {
  const { digest, createdAt } = file.manifest
  return { ...nameFile(file), digest, createdAt }
}

function basesOf({ manifest }: ExportedFile): Partial<Record<SourceName, string[]>> {
  return Object.fromEntries(Object.entries(manifest.sources).map(([name, { bases }]) => [name, bases]))
}
