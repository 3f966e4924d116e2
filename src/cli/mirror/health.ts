import { existsSync } from 'node:fs'
import type { Config } from '../../config/schema.ts'
import { messageOf } from '../../core/errors.ts'
import { databasePath } from '../../store/database/open.ts'
import { isLocked, servingDaemon } from '../../store/database/lock.ts'
import { askDaemon, daemonUrl, withTakenPort } from '../daemon-client.ts'
import { type GlobalOptions, print, printJson, settings } from '../context.ts'

const TIMEOUT_MS = 5_000

/** Options of `patchmirror health`. The daemon's own answer is JSON always. */
interface HealthOptions extends GlobalOptions {
  ready?: boolean
  json?: boolean
}

/**
 * `patchmirror health [--ready]`: asks the daemon of these settings; exits with 0 when it is healthy and, if the data folder
 * is readable here, when it serves this data folder. For container health checks.
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
    if (stranger !== null)
      return fail(`${stranger} on ${daemonUrl(config.server)} (server.host, server.port)`)
    const { status, text } =
      options.ready === true ? await askDaemon(config, '/-/ready', TIMEOUT_MS) : health
    print(text)
    return status >= 200 && status < 300 ? 0 : 1
  } catch (error) {
    return fail(
      `no daemon answers on ${daemonUrl(config.server)} (server.host, server.port): ${messageOf(error)}. Start it ("patchmirror serve"), ` +
        'or name its settings with --config FILE',
    )
  }
}

/** Who answers instead of the mirror of this data folder; null when it may be that. */
function strangerIn({ data }: Config, instance: string | null): string | null {
  if (instance === null) return 'something that is no Patchmirror answers'
  // A folder that does not exist here, as on another machine, shows nothing.
  if (!existsSync(databasePath(data.dir))) return null
  const serving = servingDaemon(data.dir)
  const isOther = serving === null ? !isLocked(data.dir, 'serve') : serving.instance !== instance
  return isOther ? `the mirror of another data folder than ${data.dir} (data.dir) answers` : null
}
