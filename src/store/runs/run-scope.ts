import { sha256Hex } from '../../base/digest.ts'
import type { Config } from '../../config/schema.ts'
import { type SourceName, activeSources, maySync } from '../../base/domain/sources.ts'
import type { Db } from '../database/open.ts'
import { IN_PART } from './run-dates.ts'

/** The settings that decide what of a source is mirrored, by their keys. */
function decidingSettings(config: Config, source: SourceName): Readonly<Record<string, unknown>> {
  const { osv, feeds, catalog, identity, upstream, views } = config
  const isNarrowed = osv.scope.length > 0
  switch (source) {
    case 'osv':
      return {
        'osv.scope': osv.scope,
        // The name of a vendor counts only where some records are out of scope.
        ...(isNarrowed && { 'views.vendors': views.vendors }),
      }
    case 'feeds':
      return { 'feeds.extraPaths': feeds.extraPaths }
    case 'catalog':
      return {
        'catalog.scope': catalog.scope,
        'catalog.patterns': catalog.patterns,
        'catalog.personalData': catalog.mirrorApiKeys,
        'upstream.catalogUrl': upstream.catalogUrl !== null,
      }
    case 'identity':
      return { 'catalog.personalData': identity.mirrorUsers, 'identity.apiUrl': identity.apiUrl }
  }
}

/**
 * Returns the settings that decide what of a source is mirrored, each as its key and a digest of its value. A run of everything
 * has them in its facts.
 */
export function settingDigests(config: Config, source: SourceName): string[] {
  return Object.entries(decidingSettings(config, source)).map(([key, value]) => {
    const text = JSON.stringify(Array.isArray(value) ? value.toSorted() : value) // the order of a list means nothing
    return `${key} ${sha256Hex(text).slice(0, 12)}`
  })
}

/** Returns the keys of the settings that decide what of a source is mirrored. */
export function scopeKeys(config: Config, source: SourceName): string[] {
  return Object.keys(decidingSettings(config, source))
}

/** Returns the fact of a run with the scope of its snapshot, for when another one is stored; none where everything is in scope. */
export function scopeFact(snapshot: { readonly scope: string | null } | null): { readonly scope?: string } {
  return snapshot === null || snapshot.scope === null ? {} : { scope: snapshot.scope }
}

/** The last run that published everything of a source, and by which settings. */
interface ScopedRun {
  readonly id: number
  readonly settings: readonly string[]
}

/** Creates the read of the settings with which runs published; usable on any connection. */
export function createRunScope(db: Db) {
  const last = db
    .prepare<[string], [id: number, settings: string | null]>(
      `SELECT id, facts ->> '$.scopeSettings' FROM run
       WHERE source = ? AND state IN ('complete', 'partial') AND NOT ${IN_PART} ORDER BY id DESC LIMIT 1`,
    )
    .raw()
  return {
    /** The last run of everything that published; null: there is none, or it did not record its settings (an import). */
    readScopedRun(source: SourceName): ScopedRun | null {
      const [id, settings] = last.get(source) ?? [0, null]
      return settings === null ? null : { id, settings: JSON.parse(settings) as string[] }
    },
  }
}

/** Settings of which a run used other values. */
interface ChangedScope {
  readonly run: number
  /** Their keys. */
  readonly keys: readonly string[]
}

/**
 * Returns the settings that decide what of a source is mirrored and that the last run which published had with other values: they were
 * changed since, or the run was a command with other settings. Null: none, it is not known, or this mirror does not sync the source.
 */
export function changedScope(
  runs: ReturnType<typeof createRunScope>,
  config: Config,
  source: SourceName,
): ChangedScope | null {
  if (!maySync(config) || !activeSources(config).includes(source)) return null
  const run = runs.readScopedRun(source)
  if (run === null) return null
  const keys = otherSettings(run.settings, config, source)
  return keys.length === 0 ? null : { run: run.id, keys }
}

/** Returns the keys of the settings that had other values when these digests of a source were taken. */
export function otherSettings(digests: readonly string[], config: Config, source: SourceName): string[] {
  const before = new Map(digests.map(pairOf))
  return settingDigests(config, source)
    .map(pairOf)
    .filter(([key, digest]) => before.has(key) && before.get(key) !== digest)
    .map(([key]) => key)
}

function pairOf(setting: string): [key: string, digest: string] {
  const [key = '', digest = ''] = setting.split(' ')
  return [key, digest]
}

/** Says which other settings a run used: "run 12 used another catalog.patterns". */
export function describeChanged({ run, keys }: ChangedScope): string {
  return `run ${run} used another ${keys.join(', ')}`
}

/** Says with which other settings a source is stored, and until when; null: with these. */
export function changedScopeText(...asked: Parameters<typeof changedScope>): string | null {
  const changed = changedScope(...asked)
  return changed === null
    ? null
    : `${describeChanged(changed)} than this mirror has; what is stored follows it until a run with these settings is published`
}
