import type { onRequestHookHandler } from 'fastify'
import { MirrorError } from '../../base/errors.ts'
import { type Failures, sendProblem } from '../http/problems.ts'
import { ignoredField, onlyValue, rawTarget } from '../http/request-target.ts'
import type { PeoplePages } from '../people.ts'
import type { PathOperation } from './openapi.ts'

/** Below it are the mirror's own paths. */
const OWN_ROOT = '/-/'
/** Unknown parameters that a message names, at most. */
const NAMED = 5

interface ParameterOptions {
  /** `server.strictParameters`: false ignores what a path does not take, and names it in a header. */
  readonly strict: boolean
  readonly failures: Failures
  /** Answers for pages, in their own form; undefined where there are no pages. */
  readonly people: Pick<PeoplePages, 'answer'> | undefined
}

/**
 * Creates the hook that checks the query of every route of the mirror's own: it refuses what the schema of the route does not
 * name, and what is given twice, since the answer would look filtered and would not be. Deliveries and signed links are
 * checked where they are verified.
 */
export function createQueryHook({ strict, failures, people }: ParameterOptions): onRequestHookHandler {
  return (request, reply, done) => {
    const { raw: asked, routeOptions } = request
    const { schema, config, url: pattern = '' } = routeOptions
    const { query } = rawTarget(asked.url ?? '')
    const isChecked = pattern.startsWith(OWN_ROOT) && config.takesAnyQuery !== true && config.opensWith !== 'link'
    if (query === '' || !isChecked || request.is404) return done()
    try {
      const { parameters = [] } = schema ?? {}
      const unknown = checkParameters(new URLSearchParams(query), { path: config.path ?? pattern, parameters, strict })
      const [name, names] = ignoredField(unknown)
      if (name !== undefined && names !== undefined) reply.raw.setHeader(name, names)
    } catch (error) {
      const problem = failures.problem(error, asked)
      if (asked.method === 'POST') reply.raw.setHeader('Connection', 'close') // its body is not read
      if (people?.answer(asked, reply.raw, problem) !== true) sendProblem(asked, reply.raw, problem)
      return
    }
    done()
  }
}

interface Taken {
  readonly path: string
  readonly parameters: NonNullable<PathOperation['parameters']>
  readonly strict: boolean
}

/** Returns the names that are ignored. Throws `bad_request` for a parameter that is not known, or is given twice. */
function checkParameters(given: URLSearchParams, { path, parameters, strict }: Taken): string[] {
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
