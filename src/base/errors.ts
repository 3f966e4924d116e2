/**
 * Error codes of every failure that the program reports. The tables below map a code to an HTTP status and an exit code.
 * `cause` keeps the original error for the log.
 */
export type ErrorCode =
  | 'usage' // the command line is wrong
  | 'config' // a setting is wrong
  | 'locked' // another process uses the data folder
  | 'schema' // the database was written by a newer program, or is not as this one makes it
  | 'corrupt' // the database is damaged
  | 'storage' // the disk is full or not writable
  | 'upstream_unreachable' // no connection, a reset, a stall, a deadline
  | 'upstream_status' // an unexpected HTTP status
  | 'upstream_not_found' // 404 or 410
  | 'upstream_auth' // 401 or 403
  | 'upstream_shape' // a response that does not match the contract
  | 'upstream_secret' // a response that contains the upstream credential
  | 'upstream_too_large' // a response over its size limit
  | 'archive' // a malformed or hostile zip
  | 'bundle' // a refused bundle: damaged, untrusted, expired, or not applicable to the stored data
  | 'fleet' // the fleet's object store cannot be reached or refuses, or its content is refused
  | 'proof' // the stored data does not match what the run was to store
  | 'not_found' // a local path or id that is not mirrored
  | 'not_ready' // nothing mirrored yet
  | 'stale' // older than the settings allow to be served
  | 'bad_request' // an invalid local request
  | 'not_supported' // a local request that only upstream can answer
  | 'aborted' // the program is shutting down
  | 'internal' // a defect of this program

/** An error with a code. `message` is safe to show to an operator: no secrets, no stack. */
export class MirrorError extends Error {
  readonly code: ErrorCode
  /** What the message names, for programs that read JSON. */
  readonly fields?: Readonly<Record<string, string>>
  constructor(
    code: ErrorCode,
    message: string,
    options?: { cause?: unknown; fields?: Readonly<Record<string, string>> },
  ) {
    super(message, options)
    this.name = 'MirrorError'
    this.code = code
    if (options?.fields !== undefined) this.fields = options.fields // a log has every field that is there
  }
}

const EXIT: Partial<Record<ErrorCode, number>> = {
  usage: 2,
  config: 2,
  locked: 2,
  schema: 2,
  not_ready: 3,
  stale: 3,
}

/** Exit codes of the `patchmirror` command: 0 complete, 1 failed, 2 usage or configuration, 3 partial or not known, 4 quarantined. */
export function exitCode(error: unknown): number {
  return error instanceof MirrorError ? (EXIT[error.code] ?? 1) : 1
}

const STATUS: Partial<Record<ErrorCode, number>> = {
  not_found: 404,
  not_ready: 503,
  stale: 503,
  bad_request: 400,
  not_supported: 501,
  storage: 503,
  corrupt: 503,
}

/** Returns the HTTP status for an error while serving a request. Unknown errors are 500 with a fixed text. */
export function httpStatus(error: unknown): number {
  return error instanceof MirrorError ? (STATUS[error.code] ?? 500) : 500
}

/** Returns the message of any thrown value, for a log line or a run row. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Returns Node's or SQLite's error code (`ENOSPC`, `SQLITE_FULL`), if the thrown value has one. */
export function systemCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}

const UNREADABLE: Partial<Record<string, string>> = {
  ENOENT: 'there is no such file: check the path',
  ENOTDIR: 'a part of its path is not a folder: check the path',
  EISDIR: 'it is a folder: name a file',
  EACCES: 'this user may not read it: change its owner or its mode',
  EPERM: 'this user may not read it: change its owner or its mode',
}

/** Returns why a file that the operator named cannot be read, and what to do; the caller names the file. */
export function whyUnreadable(error: unknown, otherwise = messageOf(error)): string {
  return UNREADABLE[systemCode(error) ?? ''] ?? otherwise
}
