import type { ProblemCode } from '../../../base/reports/problems.ts'
import { problemsOf } from '../../../server/status/problems.ts'
import { judgeReadiness } from '../../../server/status/readiness.ts'
import type { Status } from '../../../base/reports/status.ts'
import type { Config } from '../../../config/schema.ts'
import { MirrorError } from '../../../base/errors.ts'
import { NO_AGE, type SourceName, servedSources } from '../../../base/domain/sources.ts'
import { hasUnreadDatabase } from '../../../store/database/unread.ts'
import { duration } from '../../../base/time.ts'

type Source = Status['sources'][number]

/**
 * Returns the exit code of `patchmirror status`. With `--max-age` (hours; null: not given) first 3, with a line on
 * standard error for each source that is older or has no data.
 */
export function statusCode(status: Status, config: Config, maxAgeHours: number | null): number {
  if (maxAgeHours === null) return statusExitCode(status, config)
  const limited = withLimit(config, maxAgeHours)
  const active = servedHere(status, config)
  const old = judgeReadiness(status, limited, active).sources.filter(({ ready }) => !ready)
  for (const { name } of old) {
    const source = status.sources.find((one) => one.name === name)
    const what = source === undefined ? 'has no data yet' : ageOf(source)
    const limit = `--max-age allows ${duration(maxAgeHours * 3600)}`
    process.stderr.write(`patchmirror: ${name} ${what}, and ${limit}\n`)
  }
  return old.length > 0 ? 3 : statusExitCode(status, limited)
}

function ageOf({ asOf, ageSeconds }: Source): string {
  if (asOf === null) return 'has no data yet'
  return ageSeconds === null ? `is dated ${asOf}, ${NO_AGE}` : `is ${duration(ageSeconds)} old`
}

/**
 * Prints the message of an error `not_ready` and returns 3, as for a source that is not mirrored yet. Throws every other
 * error, and that of a database that is not migrated: it has data, which this program cannot read yet.
 */
export function codeWithoutData(error: unknown, { data }: Config): number {
  if (!(error instanceof MirrorError) || error.code !== 'not_ready') throw error
  if (hasUnreadDatabase(data.dir)) throw error
  process.stderr.write(`patchmirror: ${error.message}\n`)
  return 3
}

/** The exit code that a problem makes; others make none. */
const CODES: Partial<Record<ProblemCode, number>> = {
  storage: 1,
  damaged: 1,
  unreachable: 1,
  unauthorized: 1,
  no_credential: 1,
  run_failed: 1,
  quarantined: 4,
  rejected: 4,
  partial: 3,
  old: 3,
  age_unknown: 3,
  empty: 3,
  first_run: 3,
  unsynced: 3,
  scope_changed: 3,
}
/** The first of them that a problem makes is the exit code. */
const FIRST = [1, 4, 3]

/**
 * Returns the worst state: 1 when a source failed or the data folder cannot be read or written or is damaged in part, 4 when one is quarantined, 3 when
 * one is partial, stale (`maxAgeHours`), not synced any more, not mirrored yet or stored by earlier settings of its scope, else 0.
 */
export function statusExitCode(status: Status, config: Config): number {
  const codes = problemsOf(status, config, Date.now()).map(({ code }) => CODES[code])
  return FIRST.find((code) => codes.includes(code)) ?? 0
}

function withLimit(config: Config, maxAgeHours: number): Config {
  const { osv, feeds, catalog, identity } = config
  return {
    ...config,
    osv: { ...osv, maxAgeHours },
    feeds: { ...feeds, maxAgeHours },
    catalog: { ...catalog, maxAgeHours },
    identity: { ...identity, maxAgeHours },
  }
}

/** Sources that count: those that the settings ask for or that are stored. */
function servedHere({ sources }: Status, config: Config): SourceName[] {
  return servedSources(config, (name) => sources.some((source) => source.name === name && source.snapshot !== null))
}

const HOURS: Readonly<Record<string, number>> = { s: 1 / 3600, m: 1 / 60, h: 1, d: 24 }
const AGE = /^(\d+(?:\.\d+)?)\s*([smhd])$/

/** Parses an age such as `90m`, `26h` or `7d` into hours. Throws `usage`. */
export function parseMaxAge(text: string): number {
  const [, number = '', unit = ''] = AGE.exec(text.trim().toLowerCase()) ?? []
  const hours = Number(number) * (HOURS[unit] ?? 0)
  if (hours > 0 && Number.isFinite(hours)) return hours
  const allowed = 'a number greater than 0 and a unit, such as 30s, 90m, 26h or 7d'
  throw new MirrorError('usage', `--max-age ${JSON.stringify(text)} is not an age: write ${allowed}`)
}
