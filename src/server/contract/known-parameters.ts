import type { IncomingMessage, ServerResponse } from 'node:http'
import { MirrorError } from '../../base/errors.ts'
import { LEADER_PATH } from '../http/paths.ts'
import { type Failures, sendProblem } from '../http/problems.ts'
import { ignoredField, onlyValue, rawTarget, readablePath } from '../http/request-target.ts'
import type { PeoplePages } from '../people.ts'
import type { PathContract, PathOperation } from './openapi.ts'

/** A path of the contract, and what it takes. */
export type ContractEntry = readonly [path: string, contract: PathContract]

/** Below it are the mirror's own paths. */
const OWN_ROOT = '/-/'
/** Monitors ask for these, and may add a parameter, such as the time. Nothing in the answers can be selected. */
const MONITORED: ReadonlySet<string> = new Set(['/-/health', '/-/ready', LEADER_PATH])
/** The operations of the contract by method; any other method is refused where the path is answered. */
const OPERATIONS: ReadonlyMap<string, 'get' | 'post'> = new Map([
  ['GET', 'get'],
  ['HEAD', 'get'],
  ['POST', 'post'],
])
/** Unknown parameters that a message names, at most. */
const NAMED = 5

interface ParameterOptions {
  readonly entries: readonly ContractEntry[]
  /** `server.strictParameters`: false ignores what a path does not take, and names it in a header. */
  readonly strict: boolean
  readonly failures: Failures
  /** Answers for pages, in their own form; null where there are no pages. */
  readonly people: Pick<PeoplePages, 'answer'> | null
}

/**
 * Creates the check of query parameters that every path of the mirror's own passes: it refuses what the contract of the path
 * does not name, and what is given twice, since the answer would look filtered and would not be. Returns a function that
 * answers such a request with 400; false for any other. Deliveries and signed links are checked where they are verified.
 */
export function createParameterCheck(options: ParameterOptions) {
  const { entries, strict, failures, people } = options
  const find = createLookup(entries)
  return (request: IncomingMessage, response: ServerResponse): boolean => {
    const { url = '', method = '' } = request
    const { query } = rawTarget(url)
    const asked = query === '' ? '' : readablePath(url)
    if (!asked.startsWith(OWN_ROOT)) return false
    const [path, contract] = find(asked) ?? []
    const kind = OPERATIONS.get(method)
    const operation = kind && contract?.[kind]
    if (path === undefined || operation === undefined) return false
    try {
      const unknown = checkParameters(new URLSearchParams(query), { path, operation, strict })
      const [name, names] = ignoredField(unknown)
      if (name !== undefined && names !== undefined) response.setHeader(name, names)
      return false
    } catch (error) {
      const problem = failures.problem(error, request)
      if (method === 'POST') response.setHeader('Connection', 'close') // its body is not read
      if (people?.answer(request, response, problem) !== true) sendProblem(request, response, problem)
      return true
    }
  }
}

/** Finds the declared path of a requested one, decoded; one with a parameter in it by what stands before that. */
function createLookup(entries: readonly ContractEntry[]) {
  const checked = entries.filter(([path]) => path.startsWith(OWN_ROOT) && !MONITORED.has(path))
  const exact = new Map(checked.map((entry) => [entry[0], entry]))
  const open = checked.filter(([path]) => path.includes('{'))
  return (asked: string): ContractEntry | undefined =>
    exact.get(asked) ??
    exact.get(asked.replace(/\/$/, '')) ??
    exact.get(`${asked}/`) ??
    open.find(([path]) => asked.startsWith(path.slice(0, path.indexOf('{'))))
}

interface Asked {
  readonly path: string
  readonly operation: PathOperation
  readonly strict: boolean
}

/** Returns the names that are ignored. Throws `bad_request` for a parameter that is not known, or is given twice. */
function checkParameters(given: URLSearchParams, { path, operation, strict }: Asked): string[] {
  const { parameters = [] } = operation
  // Shared parameters, those with a reference, are fields of the header.
  const known = parameters.flatMap((one) => ('name' in one && one.in === 'query' ? [one.name] : []))
  const unknown = [...new Set(given.keys())].filter((name) => !known.includes(name))
  if (strict && unknown.length > 0) {
    const names = unknown.slice(0, NAMED).map((name) => JSON.stringify(name.slice(0, 80)))
    throw new MirrorError(
      'bad_request',
      `unknown query parameter ${names.join(', ')}: ${path} takes ${known.join(', ') || 'none'}; ` +
        'leave it out, or set server.strictParameters to false to have it ignored',
    )
  }
  for (const name of known) onlyValue(given, name)
  return unknown
}
