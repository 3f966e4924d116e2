import { describeOverAge, judgeReadiness } from '../../../api/status/readiness.ts'
import type { Status } from '../../../api/status/report.ts'
import type { Config } from '../../../config/schema.ts'
import { MirrorError } from '../../../core/errors.ts'
import { NO_AGE, type SourceName, activeSources, servedSources } from '../../../domain/sources.ts'
import { isOlderFolder } from '../../../store/database/older-folder.ts'
import { duration } from '../../output.ts'

type Source = Status['sources'][number]

/**
 * Returns the exit code of `patchmirror status`. With `--max-age` (hours; null: not given) first 3, with a line on
 * standard error for each source that is older or has no data.
 */
export function statusCode(status: Status, config: Config, maxAgeHours: number | null): number {
  if (maxAgeHours === null) return statusExitCode(status, config)
  const limited = withLimit(maxAgeHours)
  const active = servedHere(status, config)
  const old = judgeReadiness(status, limited, active).sources.filter(({ ready }) => !ready)
  for (const { name } of old) {
    const source = status.sources.find((one) => one.name === name)
    const what = source === undefined ? 'has no data yet' : ageOf(source)
    const limit = `--max-age allows ${duration(maxAgeHours * 3600)}`
    process.stderr.write(`patchmirror: ${name} ${what}, and ${limit}\n`)
  }
  return old.length > 0 ? 3 : codeOfStates(status, limited, active)
}

function ageOf({ asOf, ageSeconds }: Source): string {
  if (asOf === null) return 'has no data yet'
  return ageSeconds === null ? `is dated ${asOf}, ${NO_AGE}` : `is ${duration(ageSeconds)} old`
}

/** Returns a line for each source that is older than its setting allows, or whose age is not known: why the exit code is 3, and what to do. */
export function describeOld(status: Status, config: Config): string[] {
  const active = activeSources(config)
  return status.sources.flatMap(({ name, asOf, ageSeconds }) => {
    const over = asOf === null ? null : describeOverAge(config, name, ageSeconds)
    if (over === null || !servedHere(status, config).includes(name)) return []
    if (ageSeconds === null) return [`${name}: dated ${over}. Set the clock (NTP)`]
    return [`${name}: ${over}: ${renewal(config, name, active.includes(name))}`]
  })
}

/** Says how newer data of a source gets here. */
function renewal({ fleet }: Config, name: SourceName, isSynced: boolean): string {
  if (fleet.url !== null && fleet.role === 'reader')
    return '"patchmirror fleet status" says what the fleet published'
  return isSynced
    ? `"patchmirror sync ${name}", or import a newer bundle`
    : 'import a newer bundle ("patchmirror import FILE")'
}

/**
 * Prints the message of an error `not_ready` and returns 3, as for a source that is not mirrored yet. Throws every other
 * error, and that of a database of an earlier version: it has data, which this program cannot read yet.
 */
export function codeWithoutData(error: unknown, { data }: Config): number {
  if (!(error instanceof MirrorError) || error.code !== 'not_ready') throw error
  if (isOlderFolder(data.dir)) throw error
  process.stderr.write(`patchmirror: ${error.message}\n`)
  return 3
}

/**
 * Returns the worst state: 1 when a source failed or the data folder cannot be read or written, 4 when one is quarantined, 3 when
 * one is partial, stale (`maxAgeHours`), not synced any more, not mirrored yet or stored by earlier settings of its scope, else 0.
 */
export function statusExitCode(status: Status, config: Config): number {
  return codeOfStates(status, config, servedHere(status, config))
}

function codeOfStates(status: Status, limits: Limits, active: readonly SourceName[]): number {
  const own = status.sources.filter(({ name }) => active.includes(name))
  const has = (state: Source['state']): boolean => own.some((source) => source.state === state)
  if (has('failed') || status.storage.state !== 'ok') return 1
  if (has('quarantined')) return 4
  const isOld = judgeReadiness(status, limits, active).sources.some(({ ready }) => !ready)
  const isOther = own.some((one) => one.unsynced !== null || one.scopeChanged !== null)
  return has('partial') || isOld || isOther ? 3 : 0
}

type Limits = { readonly [Name in SourceName]: Pick<Config[Name], 'maxAgeHours'> }

function withLimit(maxAgeHours: number): Limits {
  const limit = { maxAgeHours }
  return { osv: limit, feeds: limit, catalog: limit, identity: limit }
}

/** Sources that count: those that the settings ask for or that are stored. */
function servedHere({ sources }: Status, config: Config): SourceName[] {
  return servedSources(config, (name) =>
    sources.some((source) => source.name === name && source.snapshot !== null),
  )
}

const HOURS: Readonly<Record<string, number>> = { m: 1 / 60, h: 1, d: 24 }
const AGE = /^(\d+(?:\.\d+)?)\s*([mhd])$/

/** Parses an age such as `90m`, `26h` or `7d` into hours. Throws `usage`. */
export function parseMaxAge(text: string): number {
  const [, number = '', unit = ''] = AGE.exec(text.trim().toLowerCase()) ?? []
  const hours = Number(number) * (HOURS[unit] ?? 0)
  if (hours > 0 && Number.isFinite(hours)) return hours
  const allowed = 'a number greater than 0 and a unit, such as 90m, 26h or 7d'
  throw new MirrorError(
    'usage',
    `--max-age ${JSON.stringify(text)} is not an age: write ${allowed}`,
  )
}
