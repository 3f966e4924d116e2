import { watchedTag } from '../../config/kinds/inbox.ts'
import { relayUrls } from '../../config/kinds/relay-targets.ts'
import { createAgent } from '../../daemon/agent.ts'
import type { Feature } from '../../daemon/feature.ts'
import { createReload } from '../../daemon/reload.ts'
import { type LogFile, createLog, openLogFile, writeLine } from '../../base/log.ts'
import { VERSION } from '../../base/version.ts'
import { checkProxies, describeUnusableExceptions } from '../../config/proxies.ts'
import { HIDE_KEYS, warnOfPlainKeys } from '../../config/rules/plain-keys.ts'
import type { LoadedConfig } from '../../config/load.ts'
import type { Config } from '../../config/schema.ts'
import { SETTINGS } from '../../config/settings.ts'
import { isReader } from '../../base/domain/sources.ts'
import { MirrorError, messageOf } from '../../base/errors.ts'
import { goOffline } from '../../base/offline.ts'
import { serviceManager } from '../../base/service-manager.ts'
import { type DaemonSettings, announceSettings } from '../../store/database/daemon-settings.ts'
import { hasImported } from '../../store/database/unread.ts'
import { unsyncedHere } from '../store-reads.ts'
import { type GlobalOptions, loadSettings, settings } from '../context.ts'

/** Options of `patchmirror serve`. */
interface ServeOptions extends GlobalOptions {
  offline?: boolean
}

/** A second signal, or this long after the first, ends the process at once; nothing committed is lost. */
const GRACE_MS = 15_000

/** `patchmirror serve`: the daemon with these features. It resolves when a signal has stopped it cleanly. */
export async function serveCommand(options: ServeOptions, features: readonly Feature[]): Promise<number> {
  const { offline = false } = options
  const { config, unread } = settingsOf(options)
  if (offline) goOffline()
  else checkProxies(config, process.env)
  const logFile = openOwnLog(config.log)
  const log = createLog(config.log, logFile?.write)
  const agent = createAgent({ config, features, version: VERSION, log, offline })
  const stopped = signalled()
  outliveTerminal()
  const warn = (text: string): void => log.warn({}, text)
  for (const text of [...warningsAtStart(config, offline), ...unread.map(describeUnread)]) warn(text)
  const manager = serviceManager({ env: process.env, pid: process.pid, warn })
  const read = (): Config => settingsOf(options).config
  const settingsInUse = createReload({ started: config, read, apply: agent.apply, log })
  let serving = 'starting'
  let announce = (): void => undefined
  process.on('SIGHUP', () => {
    manager.reloading()
    logFile?.reopen()
    agent.reload()
    settingsInUse.reload()
    announce()
    manager.ready(serving)
  })
  const { url, instance } = await agent.start()
  announce = () => announceUsed(config.data.dir, { ...settingsInUse.used(), instance }, warn)
  announce()
  manager.ready((serving = `serving ${url}`))
  manager.watch(() => agent.answers())
  const upstream = offline ? null : config.upstream.apiRoot
  log.info({ url, upstream, data: config.data.dir }, `serving ${url}`)
  if (logFile !== null) writeLine(`patchmirror: serving ${url}; the log is in ${config.log.file} (log.file)\n`)
  if (isReader(config)) log.info({ fleet: config.fleet.url }, 'reader of a fleet: what it publishes is served')
  else if (upstream === null) log.info({}, 'no upstream: nothing is synced, what was imported is served')
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

/** Returns what is not refused, and works otherwise than it may have been meant. */
function warningsAtStart(config: Config, offline: boolean): string[] {
  const plain = warnOfPlainKeys(config)
  return [
    ...(plain === null ? [] : [`${plain}. ${HIDE_KEYS}`]),
    ...(offline ? [] : describeUnusableExceptions(process.env)),
  ]
}

/** Opens the file of `log.file`; null: the log goes to standard error. */
function openOwnLog({ file }: Config['log']): LogFile | null {
  if (file === null) return null
  return openLogFile(file, { fallback: (line) => writeLine(line) })
}

/** Tells other commands which settings are in use. Where the disk is full they do not learn it, and the daemon goes on. */
function announceUsed(dir: string, used: DaemonSettings, warn: (text: string) => void): void {
  try {
    announceSettings(dir, used)
  } catch (error) {
    warn(`"patchmirror config --reload" and "doctor" cannot compare the settings in use: ${messageOf(error)}`)
  }
}

/** What the daemon serves and syncs with. Exports alone need the keys that sign bundles, outside of a fleet. */
const FILES = SETTINGS.map(({ key }) => key).filter((key) => key !== 'bundle.signingKeys')

function describeUnread(problem: string): string {
  return `${problem} Bundles are not exported until that is solved and the daemon restarted.`
}

/** Below an air gap and for a reader there is no upstream to be named; anywhere else its absence is an oversight. */
function settingsOf(options: ServeOptions): LoadedConfig {
  const isAlone = loadSettings(options, false, FILES).config.fleet.url === null
  const files = isAlone ? FILES : undefined
  const loaded = settings(options, false, files)
  const { config } = loaded
  if (options.offline === true) {
    const connecting = connectionIn(config)
    if (connecting === null) return loaded
    throw new MirrorError('usage', `--offline forbids connections, but ${connecting}: remove one or the other`)
  }
  if (config.upstream.apiRoot !== null || isReader(config) || isBelowGap(config)) return loaded
  try {
    return settings(options, true, files)
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    const below =
      'Below an air gap: import a bundle first, set bundle.inbox, or use "serve --offline". ' +
      'In a fleet (fleet.url), a mirror without upstream is a reader: set fleet.role: reader.'
    throw new MirrorError(error.code, `${error.message}\n${below}`, { cause: error })
  }
}

/** Names a setting that has the daemon connect, beside those of upstream, which are left out offline; null: there is none. */
function connectionIn(config: Config): string | null {
  if (config.fleet.url?.startsWith('s3:') === true) return 'fleet.url names a bucket'
  if (watchedTag(config.bundle) !== null)
    return 'bundle.inbox names a registry, and without upstream.apiRoot no service is asked'
  return relayUrls(config.relay).length === 0 ? null : 'relay.targets names receivers'
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
