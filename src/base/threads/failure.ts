import { type ErrorCode, MirrorError, messageOf, systemCode } from '../errors.ts'

/** An error as it crosses threads: what a MirrorError or SQLite's own is known by. */
export interface ThreadFailure {
  readonly code: string | null
  readonly named: boolean
  readonly message: string
  readonly stack: string
  /** The database that it is about, and SQLite's own code, where it comes from one. */
  readonly database?: string
  readonly cause?: string
}

/** Returns an error in the form in which it crosses threads. */
export function failureOf(error: unknown): ThreadFailure {
  const named = error instanceof MirrorError
  const code = named ? error.code : (systemCode(error) ?? null)
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  const origin = named ? error.cause : error
  const cause = named ? systemCode(origin) : undefined
  const database = databaseNoted(origin)
  return {
    code,
    named,
    message: messageOf(error),
    stack,
    ...(database !== undefined && { database }),
    ...(cause !== undefined && { cause }),
  }
}

function databaseNoted(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('database' in error)) return undefined
  return typeof error.database === 'string' ? error.database : undefined
}

/** Returns the error of a reply, as if it had been thrown here. */
export function errorOf({ code, named, message, stack, database, cause }: ThreadFailure): Error {
  if (named && cause === undefined) return new MirrorError(code as ErrorCode, message) // it was one of these there
  const error = new Error(message)
  error.stack = stack
  if (database !== undefined) Object.assign(error, { database })
  if (named) {
    const origin = Object.assign(error, { code: cause })
    return new MirrorError(code as ErrorCode, message, { cause: origin })
  }
  return code === null ? error : Object.assign(error, { code })
}
