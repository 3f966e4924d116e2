import { existsSync } from 'node:fs'
import type { Readiness } from '../../base/reports/readiness.ts'
import type { Config } from '../../config/schema.ts'
import { messageOf } from '../../base/errors.ts'
import { isLocked, servingDaemon } from '../../store/database/lock.ts'
import { type DaemonAnswer, askDaemon, daemonUrl, withTakenPort } from '../daemon-client.ts'
import { type GlobalOptions, isServed, print, printJson, settings } from '../context.ts'

const TIMEOUT_MS = 5_000

/** Options of `patchmirror status --live` and `--ready`. */
interface HealthOptions extends GlobalOptions {
  ready?: boolean
  json?: boolean
}

/**
 * `patchmirror status --live`, `--ready`: asks the daemon of these settings and prints its state in one line, or the daemon's own answer as
 * JSON; exits with 0 when it is healthy and, if the data folder is readable here, when it serves this data folder. For container
 * health checks.
 */
export async function healthCommand(options: HealthOptions): Promise<number> {
  const { config: given } = settings(options, false, [])
  let config = given
  const fail = (message: string): number => {
    if (options.json === true) printJson({ status: 'failed', message })
    else print(message)
    return 1
  }
  try {
    config = withTakenPort(given)
    if (config.server.port === 0 && config.server.socket === null)
      return fail(`no daemon serves ${config.data.dir} (data.dir): start it ("patchmirror serve")`)
    const health = await askDaemon(config, '/-/health', TIMEOUT_MS)
    const stranger = strangerIn(config, health.instance)
    if (stranger !== null) return fail(`${stranger} on ${daemonUrl(config.server)} (server.listen)`)
    const answer = options.ready === true ? await askDaemon(config, '/-/ready', TIMEOUT_MS) : health
    const url = daemonUrl(config.server)
    print(options.json === true ? answer.text : describe(answer, url, options.ready === true))
    return isFine(answer) ? 0 : 1
  } catch (error) {
    const next =
      isHere(config) && isServed(config.data.dir)
        ? 'One runs: "patchmirror doctor" says why'
        : 'Start it ("patchmirror serve"), or name its settings with --config FILE'
    return fail(`no daemon answers on ${daemonUrl(config.server)} (server.listen): ${messageOf(error)}. ${next}`)
  }
}

function isFine({ status }: DaemonAnswer): boolean {
  return status >= 200 && status < 300
}

/** One line about an answer: the state, why, and what to do. */
function describe(answer: DaemonAnswer, url: string, asksReady: boolean): string {
  const readiness = asksReady ? readinessOf(answer.text) : null
  if (readiness !== null) return describeReadiness(readiness)
  return isFine(answer)
    ? `healthy: the daemon on ${url} answers; "patchmirror status --ready" says whether its data is fresh enough`
    : `not healthy: the daemon on ${url} answers with HTTP ${answer.status}: its log says why`
}

/** The verdict in an answer; null where the daemon could not judge, or is another version. */
function readinessOf(text: string): Readiness | null {
  try {
    const found = JSON.parse(text) as Partial<Readiness>
    return Array.isArray(found.sources) && found.storage !== undefined ? (found as Readiness) : null
  } catch {
    return null
  }
}

function describeReadiness({ ready, sources, storage, views, fleet }: Readiness): string {
  const parts = [
    ...sources.map((one) => ({ ready: one.ready, text: `${one.name}: ${one.reason}` })),
    ...(views === undefined ? [] : [{ ready: false, text: views.reason }]),
    ...(fleet === undefined ? [] : [{ ready: fleet.ready, text: `fleet: ${fleet.reason}` }]),
    ...(storage.ready ? [] : [{ ready: false, text: storage.reason ?? 'the data folder cannot be written to' }]),
  ]
  const reasons = parts.filter((one) => one.ready === ready).map(({ text }) => text)
  const why = reasons.join('; ').replace(/\s*\n\s*/g, ' ')
  if (ready) return `ready: ${why === '' ? 'no source is mirrored' : why}`
  return `not ready: ${why}; "patchmirror status" says what the last runs did, "patchmirror doctor" what to do`
}

/** Who answers instead of the mirror of this data folder; null when it may be that. */
function strangerIn({ data }: Config, instance: string | null): string | null {
  if (instance === null) return 'something that is no Patchmirror answers'
  if (!isHere({ data })) return null
  const serving = servingDaemon(data.dir)
  const isOther = serving === null ? !isLocked(data.dir, 'serve') : serving.instance !== instance
  return isOther ? `the mirror of another data folder than ${data.dir} (data.dir) answers` : null
}

/** A folder that is not here, as on another machine, or is closed to this user ("/.") shows nothing. */
function isHere({ data }: Pick<Config, 'data'>): boolean {
  return existsSync(`${data.dir}/.`)
}
