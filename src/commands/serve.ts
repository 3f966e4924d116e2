import { createAgent } from '../agent.ts'
import { createLog } from '../log.ts'
import { VERSION } from '../version.ts'
import { type GlobalOptions, settings } from './setup.ts'

/** A second signal, or this long after the first, ends the process at once; nothing committed is lost. */
const GRACE_MS = 15_000

/** `patchmirror serve`: the daemon. Resolves when a signal has stopped it cleanly. */
export async function serveCommand(options: GlobalOptions): Promise<number> {
  const { config } = settings(options, true)
  const log = createLog(config.log)
  const agent = createAgent({ config, version: VERSION, log })
  const stopped = signalled()
  const { url } = await agent.start()
  log.info({ url, upstream: config.upstream.apiRoot, data: config.data.dir }, `serving ${url}`)
  const signal = await stopped
  log.info(`${signal}: stopping`)
  setTimeout(() => process.exit(1), GRACE_MS).unref()
  process.once(signal, () => process.exit(1))
  await agent.close()
  log.info('stopped')
  return 0
}

function signalled(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(signal))
  })
}
