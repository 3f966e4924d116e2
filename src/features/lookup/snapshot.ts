import type { Table } from './answers/answer.ts'
import { csvLines } from './answers/csv.ts'
import { notesBeside } from './answers/terminal.ts'
import { PLAIN_REQUEST } from '../../server/http/request-headers.ts'
import { createReading } from '../../server/reading/reader.ts'
import type { ReadReply } from '../../server/reading/request.ts'
import { createViewsInUse } from '../scanners/routes/generation.ts'
import type { Config } from '../../config/schema.ts'
import { MirrorError } from '../../base/errors.ts'
import type { Reads } from '../../store/reads.ts'
import type { Views } from '../scanners/store/reads.ts'
import { visibleLines } from '../../cli/output.ts'
import { print, printJson, settings } from '../../cli/context.ts'
import { closing } from '../../base/closing.ts'
import { type TriedIndex, needPackageIndex, withPackageIndex } from './package-index.ts'
import { type Freshness, createFreshness } from './freshness.ts'
import { type LookupOptions, openLookup, refuseLookup, refuseTwoForms } from './open.ts'

/** What a lookup reads from: one snapshot of the data folder, whether or not a daemon runs. */
export interface LookupCall extends Freshness {
  readonly config: Config
  readonly reads: Reads
  /** Reads from the index of packages, which is built where it is missing; null where there can be none. */
  readonly views: <T>(use: (views: Views) => T) => T | null
  /** Why there can be none, with what to do; null: that is not known. */
  readonly noViews: string | null
  /** Answers a list as the API does; `path` is the route as declared. */
  readonly readApi: (path: string, params: Params, query: URLSearchParams) => ReadReply
}

type Params = Readonly<Record<string, string>>

/** What was found: its JSON, and the lines for people. */
export interface LookupResult {
  readonly json: object
  readonly lines: readonly string[]
  /** The rows of `--csv`; commands without it have none. */
  readonly table?: Table
}

/**
 * Calls `work` with one snapshot of the data folder and prints what it finds, with the sources that were read and how old
 * they are. An error `not_found` is exit code 1; `not_ready` and `stale`, which say nothing about upstream, are 3.
 */
export async function runLookup(options: LookupOptions, work: (stored: LookupCall) => LookupResult): Promise<number> {
  refuseTwoForms(options)
  const { config } = settings(options, false, [])
  const isJson = options.json === true
  const used: { freshness: Freshness | null } = { freshness: null }
  const onSnapshot = (index: TriedIndex): number => {
    const shortReads = openLookup(config)
    return closing(shortReads, () =>
      shortReads.during(() => {
        const freshness = createFreshness(config, shortReads.reads, Date.now())
        used.freshness = freshness
        const answer = createReading({ config }, shortReads)
        const found = work({
          ...freshness,
          config,
          reads: shortReads.reads,
          views: viewsOf(config, { ...freshness, reads: shortReads.reads }, index),
          noViews: index.missing,
          readApi: (path, params, query) =>
            answer({ ...REQUEST, path, params, query: query.toString(), now: Date.now() }),
        })
        printFound(options, found, freshness)
        return 0
      }),
    )
  }
  try {
    return await withPackageIndex(config, onSnapshot)
  } catch (error) {
    return refuseLookup(error, isJson, used.freshness)
  }
}

/** Prints what was found, in the form that is asked for; beside a CSV, what is to be known of it goes to standard error. */
function printFound(
  { csv, json: isJson }: LookupOptions,
  { json, lines, table }: LookupResult,
  freshness: Freshness,
): void {
  if (isJson === true) return printJson({ found: true, ...json, sources: freshness.used() })
  if (csv !== true || table === undefined)
    for (const line of [...lines, '', ...freshness.lines()]) print(visibleLines(line))
  else {
    print(csvLines(table).join('\n'))
    const notes = [...notesBeside(table), ...freshness.warnings()]
    for (const line of notes) process.stderr.write(`${visibleLines(line)}\n`)
  }
}

const REQUEST = {
  method: 'GET',
  baseUrl: '',
  served: null,
  linkSecret: null,
  requestHeaders: PLAIN_REQUEST,
}

/** Opens the index of packages of the data folder at each read. */
function viewsOf(
  config: Config,
  { reads, useIndex }: Pick<LookupCall, 'reads' | 'useIndex'>,
  index: TriedIndex,
): LookupCall['views'] {
  return (use) => {
    if (index.missing !== null) return null
    needPackageIndex(config, reads, index)
    const inUse = createViewsInUse(config.data.dir, null, null)
    try {
      return closing(inUse, () => {
        useIndex(inUse.current().info.snapshot)
        return use(inUse.current())
      })
    } catch (error) {
      if (error instanceof MirrorError && error.code === 'not_ready') return null
      throw error
    }
  }
}

const MAX_LIMIT = 1000

/** Returns the number that `--limit` gives. Throws `usage`. */
export function limitOf(text: string | undefined, byDefault: number): number {
  if (text === undefined) return byDefault
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MAX_LIMIT) return limit
  throw new MirrorError('usage', `--limit takes a whole number from 1 to ${MAX_LIMIT}, not ${text}`)
}
