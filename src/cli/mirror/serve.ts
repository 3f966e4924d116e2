import { relayUrls } from '../../config/kinds/urls.ts'
import { createAgent } from '../../daemon/agent.ts'
import { type Logger, createLog } from '../../core/log.ts'
import { VERSION } from '../../core/version.ts'
import { checkProxies } from '../../config/proxies.ts'
import type { Config } from '../../config/schema.ts'
import { MirrorError, messageOf, systemCode } from '../../core/errors.ts'
import { goOffline } from '../../core/offline.ts'
import { serviceManager } from '../../core/service-manager.ts'
import { hasImported } from '../../store/database/older-folder.ts'
import { unsyncedHere } from '../runner.ts'
import { type GlobalOptions, settings } from '../context.ts'
import { readFileSync } from 'node:fs'
import { sha256Hex } from '../../core/digest.ts'
import { SETTINGS } from '../../config/settings.ts'

/** Options of `patchmirror serve`. */
interface ServeOptions extends GlobalOptions {
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
  const warn = (text: string): void => log.warn({}, text)
  const manager = serviceManager({ env: process.env, pid: process.pid, warn })
  let serving = 'starting'
  process.on('SIGHUP', () => {
    manager.reloading()
    agent.reload()
    reload(log)
    manager.ready(serving)
  })
  const { url } = await agent.start()
  manager.ready((serving = `serving ${url}`))
  manager.watch(() => agent.answers())
  const upstream = offline ? null : config.upstream.apiRoot
  log.info({ url, upstream, data: config.data.dir }, `serving ${url}`)
  if (upstream === null) log.info({}, 'no upstream: nothing is synced, what was imported is served')
  else for (const text of unsyncedHere(config)) log.warn({}, text)
  const signal = await stopped
  log.info(`${signal}: stopping`)
  manager.stopping()
  setTimeout(() => process.exit(1), GRACE_MS).unref()
  process.once(signal, () => process.exit(1))
  await agent.close()
  await manager.close()
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
      '--offline forbids connections, but relay.targets or relay.chatTargets name receivers: remove one or the other',
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

/** Secrets whose files a running daemon follows by itself: where one changed, the new value is in force. */
const FOLLOWED: ReadonlySet<string> = new Set([
  'upstream.apiKey',
  'upstream.token',
  'upstream.clientSecret',
  'identity.apiKey',
  'identity.token',
  'identity.clientSecret',
  'server.keys',
  'webhooks.secrets',
])

/** Settings that name files which are only read at start: a change of their content requires a restart. */
const READ_AT_START = ['upstream.caFile', 'bundle.signingKeys', 'bundle.trustedKeys'] as const

/**
 * Handles SIGHUP beside reading files again: reads the settings once more and logs which changed since they were read
 * last, which of these are in force now, and which require a restart. No value is logged. Never throws.
 */
function createReload(
  started: Config,
  read: () => Config,
): (log: Pick<Logger, 'info' | 'warn'>) => void {
  let last = started
  const atStart = digestsOf(started)
  return (log) => {
    let found: Config
    try {
      found = read()
    } catch (error) {
      const text = `SIGHUP: the settings cannot be read, so those in force stay. ${messageOf(error)}`
      return log.warn({}, text)
    }
    const inForce = changed(last, found).filter((key) => isFollowed(key, found))
    const now = digestsOf(found)
    const rewritten = READ_AT_START.filter((key) => atStart[key] !== now[key])
    const others = changed(started, found).filter((key) => !isFollowed(key, found))
    const waiting = [...new Set([...others, ...rewritten])]
    last = found
    const reread =
      inForce.length === 0
        ? 'no secret changed in its file'
        : `read again and in force: ${inForce.join(', ')}`
    const rest =
      waiting.length === 0
        ? 'no other setting changed'
        : `changed, and in force after a restart: ${waiting.join(', ')}`
    const what =
      'key and credential files, webhook secrets and the webhook certificate were read again'
    log.info({ reread: inForce, restart: waiting }, `SIGHUP: ${what}; ${reread}; ${rest}`)
  }
}

/** Reports whether a changed value is applied without a restart: only a value in a file of its own is. */
function isFollowed(key: string, { secretFiles }: Config): boolean {
  return FOLLOWED.has(key) && secretFiles?.[key] !== undefined
}

/** Returns digests of files that are only read at start; a key given in the settings themselves is its own content. */
function digestsOf({ upstream, bundle }: Config): Record<(typeof READ_AT_START)[number], string> {
  const of = (paths: readonly string[]): string => JSON.stringify(paths.map(digestOf))
  return {
    'upstream.caFile': of(upstream.caFile === null ? [] : [upstream.caFile]),
    'bundle.signingKeys': of(bundle.signingKeys),
    'bundle.trustedKeys': of(bundle.trustedKeys),
  }
}

function digestOf(path: string): string {
  try {
    return sha256Hex(readFileSync(path))
  } catch (error) {
    return systemCode(error) ?? messageOf(error)
  }
}

/** The keys of the settings whose values differ. */
function changed(one: Config, other: Config): string[] {
  return SETTINGS.filter(({ section, name }) => {
    return JSON.stringify(valueOf(one, section, name)) !== JSON.stringify(valueOf(other, section, name)) // prettier-ignore
  }).map(({ key }) => key)
}

function valueOf(config: Config, section: string, name: string): unknown {
  const sections: Readonly<Record<string, object>> = { ...config }
  return Object.entries(sections[section] ?? {}).find(([key]) => key === name)?.[1]
}
