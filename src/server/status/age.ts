import type { Config } from '../../config/schema.ts'
import { NO_AGE, type SourceName, isPrivateSource } from '../../base/domain/sources.ts'
import type { SourceStatus } from '../../base/reports/sources.ts'
import { HOUR_MS } from '../../base/time.ts'

/** The settings that say how old a source may be. */
type AgeSettings = { readonly [Name in SourceName]: Pick<Config[Name], 'maxAgeHours'> }

/**
 * Says that an age (`ageSecondsOf`) exceeds the limit of a source, and names the setting; null: it does not. An age that is
 * not known is not within a limit.
 */
export function describeOverAge(settings: AgeSettings, source: SourceName, ageSeconds: number | null): string | null {
  if (ageSeconds === null) return NO_AGE
  const { maxAgeHours } = settings[source]
  return ageSeconds > maxAgeHours * 3600 ? `older than sync.maxAgeHours (${maxAgeHours})` : null
}

/** Why a source is not ready: nothing of it is mirrored, or that is too old. */
export type AgeKind = 'old' | 'age_unknown' | 'empty' | 'first_run'

/** Returns why a source is not ready by what is stored of it; null: it is ready. */
export function ageKind(
  source: Pick<SourceStatus, 'name' | 'asOf' | 'ageSeconds' | 'state'>,
  settings: AgeSettings,
): AgeKind | null {
  const { name, asOf, ageSeconds, state } = source
  if (asOf === null) return state === 'running' ? 'first_run' : 'empty'
  if (ageSeconds === null) return 'age_unknown'
  return describeOverAge(settings, name, ageSeconds) === null ? null : 'old'
}

/**
 * Whether a complete sync began hours after the date that it gave its data: the clock here is ahead, or upstream's behind. A catalog
 * may have an older date for other reasons.
 */
export function contradictsClock({ name, asOf, lastRun }: Pick<SourceStatus, 'name' | 'asOf' | 'lastRun'>): boolean {
  if (isPrivateSource(name) || asOf === null || lastRun?.kind !== 'sync' || lastRun.state !== 'complete') return false
  return Date.parse(lastRun.startedAt) - Date.parse(asOf) > HOUR_MS
}
