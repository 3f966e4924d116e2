import { relayUrls } from '../config/relay.ts'
import { createAgent } from '../agent.ts'
import { createLog } from '../log.ts'
import { VERSION } from '../version.ts'
import { checkProxies } from '../config/proxies.ts'
import type { Config } from '../config/schema.ts'
import { MirrorError } from '../errors.ts'
import { goOffline } from '../offline.ts'
import { hasImported } from '../store/unread.ts'
import { createReload } from './reload.ts'
import { unsyncedHere } from './setup.ts'
import { type GlobalOptions, settings } from './settings.ts'

/** Options of `patchmirror serve`. */
export interface ServeOptions extends GlobalOptions {
  offline?: boolean
}

/** A second signal, or this long after the first, ends the process at once; nothing committed is lost. */
const GRACE_MS = 15_000

/** `patchmirror serve`: the daemon. Resolves when a signal has stopped it cleanly. */
export async function serveCommand(options: ServeOptions): Promise<number> {
  const { offline = false } = options
  const { config } = settingsOf(options)
  if (offline) goOffline()
  else checkProxies(config, process.env)
  const log = createLog(config.log)
  const agent = createAgent({ config, version: VERSION, log, offline })
  const stopped = signalled()
  outliveTerminal()
  const reload = createReload(config, () => settings(options, false).config)
  process.on('SIGHUP', () => {
    agent.reload()
    reload(log)
  })
  const { url } = await agent.start()
  const upstream = offline ? null : config.upstream.apiRoot
  log.info({ url, upstream, data: config.data.dir }, `serving ${url}`)
  if (upstream === null) log.info({}, 'no upstream: nothing is synced, what was imported is served')
  else for (const text of unsyncedHere(config)) log.warn({}, text)
  const signal = await stopped
  log.info(`${signal}: stopping`)
  setTimeout(() => process.exit(1), GRACE_MS).unref()
  process.once(signal, () => process.exit(1))
  await agent.close()
  log.info('stopped')
  return 0
}

/** Below an air gap there is no upstream to be named; anywhere else its absence is an oversight. */
function settingsOf(options: ServeOptions): ReturnType<typeof settings> {
  const loaded = settings(options, false)
  const { config } = loaded
  if (options.offline === true) {
    if (relayUrls(config.relay).length === 0) return loaded
    throw new MirrorError(
      'usage',
      '--offline, and relay.targets or relay.chatTargets are to be told: give one or the other',
    )
  }
  if (config.upstream.apiRoot !== null || isBelowGap(config)) return loaded
  try {
    return settings(options, true)
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    const below =
      'Below an air gap: import a bundle first, set bundle.inbox, or use "serve --offline".'
    throw new MirrorError(error.code, `${error.message}\n${below}`, { cause: error })
  }
}

function isBelowGap({ bundle, data }: Config): boolean {
  return bundle.inbox !== null || hasImported(data.dir)
}

/** The terminal that the daemon was started from may be closed: what is written to it from then on is lost, no more. */
function outliveTerminal(): void {
  process.stdout.removeAllListeners('error').on('error', () => undefined)
  process.stderr.removeAllListeners('error').on('error', () => undefined)
}

function signalled(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(signal))
  })
}
