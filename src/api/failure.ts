import type { IncomingMessage, ServerResponse } from 'node:http'
import type { SnapshotOrigin } from './origin.ts'
import { type ProblemForm, type Problem, problemOf, sendProblem } from './problem.ts'

/** What the API needs of a pino logger. */
export interface ServerLog {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  isLevelEnabled(level: string): boolean
}

/** What becomes of anything thrown while answering. */
export interface Failures {
  /** The problem to answer with; a fault of ours is logged, with its cause. */
  readonly problem: (error: unknown, request: IncomingMessage) => Problem
  /** Answers on Node's own response; cuts the connection when part of another answer is out already. */
  readonly answer: (
    error: unknown,
    request: IncomingMessage,
    response: ServerResponse,
    manner?: Manner,
  ) => void
}

/** What a problem takes over from the path that it is about. */
export interface Manner {
  readonly origin?: SnapshotOrigin | null
  readonly form?: ProblemForm
}

/** The boundary where everything thrown while answering ends: one line in the log, a safe text to the client. */
export function createFailures(dataDir: string, log: ServerLog | null): Failures {
  const problem = (error: unknown, request: IncomingMessage): Problem => {
    const found = problemOf(error, dataDir)
    const path = request.url?.split('?', 1)[0]
    if (found.fault) log?.error({ err: error, method: request.method, path }, 'a request failed')
    return found
  }
  return {
    problem,
    answer(error, request, response, { origin = null, form } = {}) {
      const found = problem(error, request)
      if (response.headersSent) response.destroy()
      else sendProblem(request, response, { origin, ...found }, form)
    },
  }
}
