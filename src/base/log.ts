import { closeSync, constants, fchmodSync, openSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Logger, pino, stdTimeFunctions } from 'pino'
import type * as Pretty from 'pino-pretty'
import type { Config } from '../config/schema.ts'
import { MirrorError, messageOf, systemCode } from './errors.ts'
import { hasColor } from './terminal.ts'
import { counted } from './text.ts'

export type { Logger }

const load = createRequire(import.meta.url)

/** Paths redacted from every logged object. */
const REDACT = ['*.authorization', '*.proxy', '*.headers.authorization', 'config.upstream.proxy']

/**
 * Creates the program's log: JSON lines, or readable ones on a terminal (`log.format`). `write` takes its lines; standard error
 * when not given.
 */
export function createLog(config: Pick<Config['log'], 'level' | 'format'>, write?: (line: string) => void): Logger {
  const isTerminal = write === undefined && process.stderr.isTTY
  const out = write ?? ((line: string) => writeLine(line))
  const options = {
    level: config.level,
    redact: { paths: REDACT, censor: '********' },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  }
  const readable = config.format === 'pretty' || (config.format === 'auto' && isTerminal)
  if (!readable) return pino(options, { write: out })
  const { prettyFactory } = load('pino-pretty') as typeof Pretty // for terminals alone
  const format = prettyFactory({
    colorize: hasColor(process.stderr),
    ignore: 'pid,hostname',
    translateTime: 'SYS:HH:MM:ss',
  })
  return pino(options, { write: (line) => out(format(line)) })
}

/** Attempts to write to a full pipe, and the pause between two: its reader has one second. */
const TRIES = 100
const PAUSE_MS = 10

/**
 * Writes a line to standard error. If it cannot be written (the terminal is closed, the reader of the pipe has ended,
 * the disk is full), the line is lost, but the program continues and the next line is tried again.
 */
export function writeLine(line: string, fd = 2): void {
  let rest = Buffer.from(line)
  for (let tries = 0; rest.length > 0 && tries < TRIES;) {
    try {
      rest = rest.subarray(writeSync(fd, rest))
    } catch (error) {
      if (systemCode(error) !== 'EAGAIN') return
      tries++
      pause(PAUSE_MS)
    }
  }
}

function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** A log file that is written line by line. */
export interface LogFile {
  /** Appends a line; one that cannot be written goes to the fallback. Never throws. */
  readonly write: (line: string) => void
  /** Opens the file of this name again, as after it was renamed. */
  readonly reopen: () => void
}

interface LogFileOptions {
  /** Takes lines while the file cannot be written, and a line that says so. */
  readonly fallback: (line: string) => void
}

/** Faults of the settings, which stop the start; any other, such as a full disk, does not. */
const REFUSED: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'EISDIR', 'EACCES', 'EPERM', 'ELOOP'])
/** The mode of a new file: for its owner alone, since lines name clients. One that exists keeps its own, as after logrotate. */
const FILE_MODE = 0o600
/** How often a file that could not be opened is tried again, milliseconds. */
const RETRY_MS = 1_000

/**
 * Opens a log file for appending. While it cannot be written (the disk is full), lines go to the fallback, and the file is
 * tried again with each line. Throws `config` for a path that cannot be a log file of this user.
 */
export function openLogFile(path: string, { fallback }: LogFileOptions): LogFile {
  let fd: number | null = null
  let triedAt = -Infinity
  let isCut = false // the last line was written in part
  let lost = 0
  const fail = (error: unknown): void => {
    if (lost++ > 0) return
    const why = `the log file ${path} (log.file) cannot be written (${messageOf(error)})`
    fallback(`patchmirror: ${why}: lines go to standard error until it can\n`)
  }
  const open = (): void => {
    triedAt = performance.now()
    const opened = openForAppending(path, FILE_MODE)
    if (fd !== null) closeSync(fd)
    fd = opened
    isCut = false
  }
  const append = (line: string): void => {
    if (fd === null && performance.now() - triedAt > RETRY_MS) open()
    if (fd === null) throw new Error('it is not open')
    const resumed =
      lost === 0 ? '' : `patchmirror: ${counted(lost, 'line')} could not be written here and went to standard error\n`
    const bytes = Buffer.from((isCut ? '\n' : '') + resumed + line)
    for (let at = 0; at < bytes.length;) {
      at += writeSync(fd, bytes, at)
      isCut = at < bytes.length
    }
    lost = 0
  }
  try {
    open()
  } catch (error) {
    if (REFUSED.has(systemCode(error) ?? ''))
      throw new MirrorError(
        'config',
        `the log file ${path} cannot be opened (${messageOf(error)}): create its folder, or set log.file to a file in a folder that this user may write`,
        { cause: error },
      )
    fail(error)
  }
  return {
    write(line) {
      try {
        append(line)
      } catch (error) {
        fail(error)
        fallback(line)
      }
    },
    reopen() {
      try {
        open()
      } catch (error) {
        fail(error)
      }
    },
  }
}

/** A FIFO without a reader is refused then, and one whose reader is stuck gives an error: neither stops the program. */
const APPENDING = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK

/** Opens a file for appending; a new one gets this mode, whatever the umask. */
function openForAppending(path: string, mode: number): number {
  try {
    const fd = openSync(path, 'ax', 0o600)
    fchmodSync(fd, mode)
    return fd
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
    return openSync(path, APPENDING, 0o600)
  }
}
