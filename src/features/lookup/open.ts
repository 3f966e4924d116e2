import type { Config } from '../../config/schema.ts'
import { MirrorError } from '../../base/errors.ts'
import { whyUnread } from '../../store/database/unread.ts'
import { openShortReads, type ShortReads } from '../../store/reads.ts'
import { type GlobalOptions, firstStep, printJson } from '../../cli/context.ts'
import { visibleLines } from '../../cli/output.ts'
import type { Freshness } from './freshness.ts'

/** Options of every command that looks something up. */
export interface LookupOptions extends GlobalOptions {
  json?: boolean
  /** Of lists. */
  csv?: boolean
  /** How many of each kind. */
  limit?: string
}

/** Exit codes of lookups that show nothing: the mirror does not have it, and the mirror cannot know. */
const NOT_FOUND = 1
/** Exit code where the mirror cannot know. */
export const UNKNOWN = 3

/** Opens the data folder of the settings for reading. Throws `not_ready` where nothing is mirrored in it. */
export function openLookup(config: Config): ShortReads {
  const { dir } = config.data
  const shortReads = openShortReads(dir)
  if (shortReads !== null) return shortReads
  throw whyUnread(dir, `no snapshot yet: nothing is mirrored in ${dir}: ${firstStep(config)}`)
}

/** Returns the time that is given as an argument or as `--since`. Throws `usage` for both. */
export function sinceGiven(argument: string | undefined, option: string | undefined): string | undefined {
  if (argument !== undefined && option !== undefined)
    throw new MirrorError('usage', `give one time: ${argument}, or --since ${option}`)
  return argument ?? option
}

/** Throws `usage` where two forms of a list are asked for. */
export function refuseTwoForms({ csv, json }: Pick<LookupOptions, 'csv' | 'json'>): void {
  if (csv === true && json === true) throw new MirrorError('usage', '--json and --csv exclude each other')
}

const REASONS = { not_found: 'not_found', not_ready: 'not_mirrored', stale: 'stale' } as const

const DAMAGED = 'a stored item is damaged: "patchmirror doctor --data" names it, and says what repairs it'

/** Prints why nothing is shown and returns the exit code; throws every other error on. */
export function refuseLookup(error: unknown, isJson: boolean, freshness: Freshness | null): number {
  // What a client gives is read with an error of its own: only what is stored is left.
  if (error instanceof SyntaxError) throw new MirrorError('corrupt', `${DAMAGED} (${error.message})`, { cause: error })
  if (!(error instanceof MirrorError)) throw error
  const { code, message, fields } = error
  if (code === 'bad_request') throw new MirrorError('usage', message, { cause: error })
  if (code !== 'not_found' && code !== 'not_ready' && code !== 'stale') throw error
  if (isJson) printJson({ found: false, reason: REASONS[code], message, ...fields, sources: freshness?.used() ?? [] })
  else
    for (const line of [`patchmirror: ${message}`, ...(freshness?.lines() ?? [])])
      process.stderr.write(`${visibleLines(line)}\n`)
  return code === 'not_found' ? NOT_FOUND : UNKNOWN
}
