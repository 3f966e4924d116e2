import type { ImportedBundle } from '../store/bundle-ledger.ts'
import type { SourceName } from '../store/runs.ts'
import type { Manifest, ManifestSource } from './manifest.ts'
import { refusal } from './refusals.ts'

/** How a source of a bundle is held here. */
export interface HeldSource {
  /** Its state digest. */
  digest: string
  /** Upstream's date of it, unix milliseconds; null: nothing is held. */
  asOf: number | null
  /** The bundle that brought it last; null: none. */
  imported: ImportedBundle | null
}

export type HeldSources = ReadonlyMap<SourceName, HeldSource>

/** What is to be done with a bundle. */
export interface Admission {
  /** `same`: everything in it is held already. */
  verdict: 'apply' | 'same'
  /** It is older than what is held, and is wanted nevertheless. */
  rollback: boolean
}

/** The sources of a manifest. */
export function sourcesOf(manifest: Manifest): [SourceName, ManifestSource][] {
  return Object.entries(manifest.sources) as [SourceName, ManifestSource][] // its keys were checked
}

/**
 * Decides from the manifest and what is held, before anything is touched. Throws `bundle` for a bundle that is older, that
 * contradicts one that was imported, or that builds on what is not here, and says what to do.
 */
export function admit(manifest: Manifest, held: HeldSources, allowRollback: boolean): Admission {
  const given = sourcesOf(manifest)
  if (!allowRollback) refuseSetBack(manifest, held)
  if (given.every(([name, { digest }]) => held.get(name)?.digest === digest))
    return { verdict: 'same', rollback: false }
  const faults = given.flatMap(([name, source]) => olderThan(manifest, name, source, held) ?? [])
  const [fault] = faults
  if (fault !== undefined && !allowRollback)
    throw refusal({ kind: 'older' }, `${fault}. Only --allow-rollback would apply it`)
  refuseGap(manifest, held)
  return { verdict: 'apply', rollback: fault !== undefined }
}

/**
 * A mirror above that was restored from a backup counts on from there. What it exports has a number that is lower than what
 * was imported, or the same for something else, and is newer all the same: passed over for older it would never be missed.
 */
function refuseSetBack(manifest: Manifest, held: HeldSources): void {
  const { mirror, sequence, createdAt } = manifest
  for (const [name, { digest, asOf }] of sourcesOf(manifest)) {
    const last = held.get(name)?.imported ?? null
    if (last === null || last.mirror !== mirror) continue
    const newer =
      Date.parse(createdAt) > last.createdAt || Date.parse(asOf) > (held.get(name)?.asOf ?? 0)
    const twin = sequence === last.sequence && last.sources[name] !== digest
    if (!twin && !(sequence < last.sequence && newer)) continue
    const why = twin
      ? `another bundle with the same sequence ${sequence} was imported`
      : `it was made later than bundle ${last.sequence}, which was imported, and has the lower sequence ${sequence}`
    throw refusal(
      { kind: 'set back' },
      `the mirror above was set back (restored from a backup), or two export under one identity (a copied data folder): ${why}. ` +
        'Run "patchmirror identity --new" above the gap and export a full bundle; --allow-rollback takes this one as it is',
    )
  }
}

/** Why a source of a bundle is older than what is held of it, or contradicts it; null when it is not. */
function olderThan(
  { mirror, sequence }: Manifest,
  name: SourceName,
  { digest, asOf }: ManifestSource,
  held: HeldSources,
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

function refuseGap({ kind, base, sources }: Manifest, held: HeldSources): void {
  if (kind === 'full' || base === null) return
  for (const [name, { digest, bases }] of sourcesOf({ sources } as Manifest)) {
    const here = held.get(name)
    if (here === undefined || here.digest === digest || bases.includes(here.digest)) continue
    const last = here.imported
    const is = last === null ? 'none was imported' : `the last imported has ${last.sequence}`
    const { sequence } = base
    const [since, first] =
      sequence === null
        ? ['a state that it was asked for', '']
        : [`bundle ${sequence}`, `bundle ${sequence} or a later one first, or `]
    throw refusal(
      { kind: 'base', sequence },
      `it only has what changed since ${since}, which is missing here (${is}; ${name} is in another state). ` +
        `Import ${first}a full one; or run "patchmirror need FILE" here and "patchmirror export OUT --for FILE" above the gap`,
    )
  }
}
