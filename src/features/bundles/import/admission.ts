import { toIso } from '../../../base/time.ts'
import type { SourceName } from '../../../base/domain/sources.ts'
import type { ImportedBundle, NumberedImport } from '../../../store/replication/ledger.ts'
import type { Manifest, ManifestSource } from '../format/manifest.ts'
import { bundleRefusal } from '../format/refusal.ts'

/** The stored state of a source of a bundle. */
interface StoredSource {
  /** Its state digest. */
  digest: string
  /** Its upstream date, Unix milliseconds; null: nothing is stored. */
  asOf: number | null
  /** The last imported bundle with this source; null: none. */
  imported: ImportedBundle | null
  /** Imports of this source under the bundle's sequence, from the same mirror. */
  numbered: readonly NumberedImport[]
}

export type StoredSources = ReadonlyMap<SourceName, StoredSource>

/** The decision about a bundle. */
export interface Admission {
  /** `same`: everything in it is stored already. */
  verdict: 'apply' | 'same'
  /** It is older than the stored data, and --allow-rollback was given. */
  rollback: boolean
}

/** Returns the sources of a manifest. */
export function manifestSources(manifest: Pick<Manifest, 'sources'>): [SourceName, ManifestSource][] {
  return Object.entries(manifest.sources) as [SourceName, ManifestSource][] // its keys were checked
}

/**
 * Decides from the manifest and the stored state, before anything is written. Throws `bundle`, with what to do, for a
 * bundle that is older, contradicts an imported one, or builds on a state that is not stored.
 */
export function admit(manifest: Manifest, stored: StoredSources, allowRollback: boolean): Admission {
  const given = manifestSources(manifest)
  if (!allowRollback) refuseRestored(manifest, stored)
  if (given.every(([name, { digest }]) => stored.get(name)?.digest === digest))
    return { verdict: 'same', rollback: allowRollback && countsBack(manifest, stored) }
  const faults = given.flatMap(([name, source]) => olderThan(manifest, name, source, stored) ?? [])
  const [fault] = faults
  if (fault !== undefined && !allowRollback)
    throw bundleRefusal({ kind: 'older' }, `${fault}. Only --allow-rollback would apply it`)
  refuseGap(manifest, stored)
  return { verdict: 'apply', rollback: fault !== undefined }
}

/**
 * Refuses bundles of a source mirror that was restored from a backup and reuses its sequence numbers. Such a bundle has
 * a lower sequence than an imported one, or the same for another state, but is newer; taken for an old bundle, it would
 * be skipped silently. It is recognized by the imports in the ledger under its sequence, or, if there is none, by its
 * creation date.
 */
function refuseRestored(manifest: Manifest, stored: StoredSources): void {
  for (const [name, { digest }] of manifestSources(manifest)) {
    const here = stored.get(name)
    const why = here === undefined ? null : whyRestored(manifest, digest, here)
    if (why === null) continue
    throw bundleRefusal(
      { kind: 'restored' },
      `the sequence of the source mirror went backwards (it was restored from a backup, or two mirrors export under one identity, as a copied data folder does): ${why}. ` +
        'Run "patchmirror bundle inspect --new-identity" on the source mirror and export a full bundle; --allow-rollback applies this one',
    )
  }
}

/** Returns why a bundle must come from a restored source mirror; null if nothing indicates that. */
function whyRestored(
  { mirror, sequence, createdAt }: Manifest,
  digest: string,
  { imported: last, numbered }: StoredSource,
): string | null {
  if (last === null || last.mirror !== mirror || sequence > last.sequence) return null
  if (numbered.some((one) => one.digest === digest)) return null // it was imported before
  if (numbered.some((one) => one.current)) return `another bundle with the same sequence ${sequence} was imported`
  // Every export of a mirror is dated later than the one before, whatever its clock shows.
  if (Date.parse(createdAt) <= last.createdAt) return null
  return `it was made later than bundle ${last.sequence}, which was imported, and has the lower sequence ${sequence}`
}

/** Reports whether a bundle has a lower sequence than the last import from its mirror. */
function countsBack({ mirror, sequence, sources }: Manifest, stored: StoredSources): boolean {
  return manifestSources({ sources }).some(([name, { digest }]) => {
    const last = stored.get(name)?.imported ?? null
    if (last === null || last.mirror !== mirror) return false
    return sequence < last.sequence || (sequence === last.sequence && last.sources[name] !== digest)
  })
}

/** Returns why a source of a bundle is older than the stored one, or contradicts it; null if neither. */
function olderThan(
  { mirror, sequence }: Manifest,
  name: SourceName,
  { digest, asOf }: ManifestSource,
  stored: StoredSources,
): string | null {
  const here = stored.get(name)
  if (here === undefined || here.digest === digest || here.asOf === null) return null
  const { imported } = here
  // The source mirror's sequence takes precedence over dates, unless this mirror has changed the source since.
  if (imported?.mirror === mirror && imported.sources[name] === here.digest) {
    return sequence > imported.sequence
      ? null
      : `it is older than the stored data: it has sequence ${sequence}, and ${imported.sequence} was imported`
  }
  if (Date.parse(asOf) >= here.asOf) return null
  const is = toIso(here.asOf)
  return `it is older than the stored data: its ${name} is as of ${asOf}, and here it is as of ${is}`
}

function refuseGap({ kind, base, sources }: Manifest, stored: StoredSources): void {
  if (kind === 'full' || base === null) return
  for (const [name, { digest, bases }] of manifestSources({ sources })) {
    const here = stored.get(name)
    if (here === undefined || here.digest === digest || bases.includes(here.digest)) continue
    const last = here.imported
    const is = last === null ? 'none was imported' : `the last imported has ${last.sequence}`
    const { sequence } = base
    const [since, first] =
      sequence === null
        ? ['the state of the need file', '']
        : [`bundle ${sequence}`, `bundle ${sequence} or a later one first, or `]
    throw bundleRefusal(
      { kind: 'base', sequence },
      `it only has the changes since ${since}, which is missing here (${is}; ${name} is in another state). ` +
        `Import ${first}a full one; or run "patchmirror bundle need FILE" here and "patchmirror bundle export OUT --for FILE" on the source mirror`,
    )
  }
}
