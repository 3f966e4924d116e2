import { writeSync } from 'node:fs'
import { type Logger, pino, stdTimeFunctions } from 'pino'
import pretty from 'pino-pretty'
import type { Config } from '../config/schema.ts'
import { systemCode } from './errors.ts'
import { hasColor } from './terminal.ts'

export type { Logger }

/** Paths redacted from every logged object. */
const REDACT = ['*.authorization', '*.proxy', '*.headers.authorization', 'config.upstream.proxy']

/** Creates the program's log on standard error: JSON lines, or readable ones on a terminal (`log.format`). */
export function createLog(config: Pick<Config['log'], 'level' | 'format'>): Logger {
  const options = {
    level: config.level,
    redact: { paths: REDACT, censor: '********' },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  }
  const readable = config.format === 'pretty' || (config.format === 'auto' && process.stderr.isTTY)
  if (!readable) return pino(options, { write: (line) => writeLine(line) })
  const format = pretty.prettyFactory({
    colorize: hasColor(process.stderr),
    ignore: 'pid,hostname',
    translateTime: 'SYS:HH:MM:ss',
  })
  return pino(options, { write: (line) => writeLine(format(line)) })
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
