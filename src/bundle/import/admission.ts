import type { SourceName } from '../../domain/sources.ts'
import type { ImportedBundle, NumberedImport } from '../../store/replication/ledger.ts'
import type { Manifest, ManifestSource } from '../format/manifest.ts'
import { bundleRefusal } from '../format/refusal.ts'

/** How a source of a bundle is held here. */
interface StoredSource {
  /** Its state digest. */
  digest: string
  /** Upstream's date of it, unix milliseconds; null: nothing is held. */
  asOf: number | null
  /** The bundle that brought it last; null: none. */
  imported: ImportedBundle | null
  /** What was imported of this source under the number of the bundle that is judged, from the same mirror. */
  numbered: readonly NumberedImport[]
}

export type StoredSources = ReadonlyMap<SourceName, StoredSource>

/** What is to be done with a bundle. */
export interface Admission {
  /** `same`: everything in it is held already. */
  verdict: 'apply' | 'same'
  /** It is older than what is stored, and --allow-rollback takes it nevertheless. */
  rollback: boolean
}

/** The sources of a manifest. */
export function manifestSources(manifest: Manifest): [SourceName, ManifestSource][] {
  return Object.entries(manifest.sources) as [SourceName, ManifestSource][] // its keys were checked
}

/**
 * Decides from the manifest and what is held, before anything is touched. Throws `bundle` for a bundle that is older, that
 * contradicts one that was imported, or that builds on what is not here, and says what to do.
 */
export function admit(manifest: Manifest, held: StoredSources, allowRollback: boolean): Admission {
  const given = manifestSources(manifest)
  if (!allowRollback) refuseRestored(manifest, held)
  if (given.every(([name, { digest }]) => held.get(name)?.digest === digest))
    return { verdict: 'same', rollback: allowRollback && countsBack(manifest, held) }
  const faults = given.flatMap(([name, source]) => olderThan(manifest, name, source, held) ?? [])
  const [fault] = faults
  if (fault !== undefined && !allowRollback)
    throw bundleRefusal({ kind: 'older' }, `${fault}. Only --allow-rollback would apply it`)
  refuseGap(manifest, held)
  return { verdict: 'apply', rollback: fault !== undefined }
}

/**
 * A source mirror that was restored from a backup gives numbers again that it has given before. What it exports then has
 * a lower number than what was imported, or the same for another state, and is newer all the same: taken for an old bundle
 * it would never be missed. Such a bundle is recognized by what the ledger has under its number; one whose number was never
 * imported, by the order in which the source mirror made them.
 */
function refuseRestored(manifest: Manifest, held: StoredSources): void {
  for (const [name, { digest }] of manifestSources(manifest)) {
    const here = held.get(name)
    const why = here === undefined ? null : whyRestored(manifest, digest, here)
    if (why === null) continue
    throw bundleRefusal(
      { kind: 'restored' },
      `the sequence of the source mirror went backwards (it was restored from a backup, or two mirrors export under one identity, as a copied data folder does): ${why}. ` +
        'Run "patchmirror identity --new" on the source mirror and export a full bundle; --allow-rollback takes this one as it is',
    )
  }
}

/** Why a bundle can only come from a source mirror that was restored; null where nothing says so. */
function whyRestored(
  { mirror, sequence, createdAt }: Manifest,
  digest: string,
  { imported: last, numbered }: StoredSource,
): string | null {
  if (last === null || last.mirror !== mirror || sequence > last.sequence) return null
  if (numbered.some((one) => one.digest === digest)) return null // it was imported before
  if (numbered.some((one) => one.current))
    return `another bundle with the same sequence ${sequence} was imported`
  // Of one mirror, each export is dated later than the one before, whatever its clock does.
  if (Date.parse(createdAt) <= last.createdAt) return null
  return `it was made later than bundle ${last.sequence}, which was imported, and has the lower sequence ${sequence}`
}

/** Whether a bundle has a lower number than what was imported last from its mirror. */
function countsBack({ mirror, sequence, sources }: Manifest, held: StoredSources): boolean {
  return manifestSources({ sources } as Manifest).some(([name, { digest }]) => {
    const last = held.get(name)?.imported ?? null
    if (last === null || last.mirror !== mirror) return false
    return sequence < last.sequence || (sequence === last.sequence && last.sources[name] !== digest)
  })
}

/** Why a source of a bundle is older than what is held of it, or contradicts it; null when it is not. */
function olderThan(
  { mirror, sequence }: Manifest,
  name: SourceName,
  { digest, asOf }: ManifestSource,
  held: StoredSources,
): string | null {
  const here = held.get(name)
  if (here === undefined || here.digest === digest || here.asOf === null) return null
  const { imported } = here
  // The exporter's own count goes before its upstream's clock, unless the mirror has moved on by itself since.
  if (imported?.mirror === mirror && imported.sources[name] === here.digest) {
    return sequence > imported.sequence
      ? null
      : `it is older than what is held: it has sequence ${sequence}, and ${imported.sequence} was imported`
  }
  if (Date.parse(asOf) >= here.asOf) return null
  const is = new Date(here.asOf).toISOString()
  return `it is older than what is held: its ${name} is as of ${asOf}, and here it is as of ${is}`
}

function refuseGap({ kind, base, sources }: Manifest, held: StoredSources): void {
  if (kind === 'full' || base === null) return
  for (const [name, { digest, bases }] of manifestSources({ sources } as Manifest)) {
    const here = held.get(name)
    if (here === undefined || here.digest === digest || bases.includes(here.digest)) continue
    const last = here.imported
    const is = last === null ? 'none was imported' : `the last imported has ${last.sequence}`
    const { sequence } = base
    const [since, first] =
      sequence === null
        ? ['a state that it was asked for', '']
        : [`bundle ${sequence}`, `bundle ${sequence} or a later one first, or `]
    throw bundleRefusal(
      { kind: 'base', sequence },
      `it only has what changed since ${since}, which is missing here (${is}; ${name} is in another state). ` +
        `Import ${first}a full one; or run "patchmirror need FILE" here and "patchmirror export OUT --for FILE" above the gap`,
    )
  }
}
