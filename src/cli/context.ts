import { randomUUID } from 'node:crypto'
import { MirrorError } from '../base/errors.ts'
import { isReader } from '../base/domain/sources.ts'
import { isObject } from '../base/json/objects.ts'
import { toIso } from '../base/time.ts'
import { type LoadedConfig, loadConfig } from '../config/load.ts'
import { checkProxies, describeUnusableExceptions } from '../config/proxies.ts'
import { isLocked } from '../store/database/lock.ts'
import { cronPeriod } from '../sync/schedule.ts'
import { isCronExpression } from '../sync/planning/cron.ts'

/** Options that every command takes. */
export interface GlobalOptions {
  config?: string
}

/** Characters that act on a terminal or reorder its text; JSON permits some of them in strings. */
const ACTING = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/**
 * Writes a text to standard output. Characters that act on a terminal are escaped as in JSON, so that JSON stays the same value: what
 * commands print contains texts of upstream and names of files.
 */
export function print(text: string): void {
  process.stdout.write(`${text.replace(ACTING, escapeCharacter)}\n`)
}

function escapeCharacter(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
}

const UPSTREAM = Symbol('JSON of upstream')

/** Returns a value that `printJson` writes as this text: valid JSON of upstream, in which nothing is converted. */
export function upstreamJson(text: string): object {
  return { [UPSTREAM]: text.replace(/\r/g, ' ') } // white space here, and an escape sequence once it is printed
}

/** Writes a value as JSON, every time in it (unix milliseconds, by the name of its field) as ISO 8601. */
export function printJson(value: unknown): void {
  const texts: string[] = []
  const mark = randomUUID() // no text of upstream has it
  const text = JSON.stringify(
    value,
    (name, member: unknown) =>
      isObject(member) && UPSTREAM in member
        ? `${mark} ${texts.push(String(member[UPSTREAM])) - 1}`
        : isoTime(name, member),
    2,
  )
  const places = new RegExp(`"${mark} (\\d+)"`, 'g')
  print(text.replace(places, (_, at: string) => texts[Number(at)] ?? 'null'))
}

function isoTime(name: string, value: unknown): unknown {
  const isTime = typeof value === 'number' && /^asOf$|(At|Until|Before|After)$/.test(name)
  return isTime && value > 1e11 ? toIso(value) : value
}

/** Signals that end a command which is not the daemon, in good order: a closed terminal is one of them. */
export const STOPPING: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

/** Calls `work` with what is aborted by such a signal. */
export async function stoppable<T>(work: (stop: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController()
  const abort = (): void => stop.abort(new MirrorError('aborted', 'stopped by a signal'))
  for (const signal of STOPPING) process.once(signal, abort)
  try {
    return await work(stop.signal)
  } finally {
    for (const signal of STOPPING) process.off(signal, abort)
  }
}

/** Prints a warning on standard error; the command continues. */
export function warn(text: string): void {
  process.stderr.write(`patchmirror: warning: ${text}\n`)
}

/** Prints on standard error what a command waits for. */
export function note(text: string): void {
  process.stderr.write(`patchmirror: ${text}\n`)
}

/** What talks to the service needs of the files that settings name. */
export const SERVICE_FILES = ['upstream', 'identity'] as const

/** The files by which the signatures of artifacts are verified. */
const TRUST_ROOT = 'catalog.trustRoot'

/** What of them a sync of these sources needs; none named: all. The public feeds are asked for without a credential. */
export function sourceFiles(sources: readonly string[]): readonly string[] {
  if (sources.length === 0) return [...SERVICE_FILES, TRUST_ROOT]
  const credentials = { catalog: 'upstream', identity: 'identity' } as const
  const used = (['catalog', 'identity'] as const).filter((source) => sources.includes(source))
  const trusted = sources.includes('catalog') ? [TRUST_ROOT] : []
  return ['upstream.caFile', ...used.map((source) => credentials[source]), ...trusted]
}

/**
 * Settings for a command; `upstream` true when it talks to the service. `files`: the settings, or sections, whose files it
 * uses; another that is missing or broken does not stop it. Not given: all. Warnings go to standard error.
 */
export function settings(options: GlobalOptions, upstream: boolean, files?: readonly string[]): LoadedConfig {
  const loaded = loadSettings(options, upstream, files)
  if (upstream) checkProxies(loaded.config, process.env)
  const exceptions = upstream ? describeUnusableExceptions(process.env) : []
  for (const warning of [...loaded.warnings, ...exceptions]) warn(warning)
  return loaded
}

/** Returns the same without printing the warnings, and without a check of the environment's proxies. */
export function loadSettings(options: GlobalOptions, upstream: boolean, files?: readonly string[]): LoadedConfig {
  return loadConfig({
    ...(options.config === undefined ? {} : { file: options.config }),
    env: process.env,
    cwd: process.cwd(),
    requireUpstream: upstream,
    ...(files && {
      needsFile: (key) => files.some((used) => key === used || key.startsWith(`${used}.`)),
    }),
    validateCron: isCronExpression,
    cronPeriod,
  })
}

/** Reports whether a daemon is running on this data folder. */
export function isServed(dataDir: string): boolean {
  return isLocked(dataDir, 'serve')
}

/** How a mirror gets its first data: from its fleet, by a sync where it has an upstream, else by a bundle. */
export function firstStep(config: LoadedConfig['config']): string {
  if (isReader(config))
    return 'run "patchmirror serve", which fetches what the fleet published ("patchmirror fleet status --log" lists it)'
  return config.upstream.apiRoot === null
    ? 'name the settings of the mirror with --config FILE, import a bundle ("patchmirror bundle import FILE"), or set upstream.apiRoot and sync'
    : 'run "patchmirror sync"'
}
