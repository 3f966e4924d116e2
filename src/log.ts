import { type Logger, pino } from 'pino'
import pretty from 'pino-pretty'
import type { Config } from './config/schema.ts'

export type { Logger }

/** Paths that never reach the log, whatever object carries them. */
const REDACT = ['*.authorization', '*.proxy', '*.headers.authorization', 'config.upstream.proxy']

/** The program's log, on standard error: JSON lines, or readable ones on a terminal (`log.format`). */
export function createLog(config: Config['log']): Logger {
  const options = { level: config.level, redact: { paths: REDACT, censor: '********' } }
  const readable = config.format === 'pretty' || (config.format === 'auto' && process.stderr.isTTY)
  if (!readable) return pino(options, pino.destination({ dest: 2, sync: true }))
  const stream = pretty({
    destination: 2,
    sync: true,
    ignore: 'pid,hostname',
    translateTime: 'SYS:HH:MM:ss',
  })
  return pino(options, stream)
}
