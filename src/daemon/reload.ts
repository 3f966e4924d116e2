import { afterReload, changedKeys, compareSettings, isFollowed, usedSettings } from '../config/running/compare.ts'
import { LIVE_KEYS } from '../config/running/live.ts'
import type { Config } from '../config/schema.ts'
import { messageOf } from '../base/errors.ts'
import type { Logger } from '../base/log.ts'
import type { DaemonSettings, Reload } from '../store/database/daemon-settings.ts'
import type { Signals } from './signals.ts'

/** What a reload works with. */
interface ReloadOptions {
  readonly started: Config
  /** Reads all settings again; throws for any that cannot be used, and then nothing changes. */
  readonly read: () => Config
  /** Takes over the live settings of these; `changed` has their keys. */
  readonly apply: (next: Config, changed: readonly string[]) => void
  readonly log: Pick<Logger, 'info' | 'warn'>
}

/** Creates what handles SIGHUP. No value is logged. */
export function createReload({ started, read, apply, log }: ReloadOptions) {
  let last = started
  let used = usedSettings(started)
  let reloads = 0
  let found: Reload | null = null
  const readAgain = (): Reload => {
    let next: Config
    try {
      next = read()
    } catch (error) {
      return { problem: messageOf(error), inForce: [], restart: [] }
    }
    const { restart } = compareSettings(used, next)
    const isTakenOver = (key: string): boolean =>
      LIVE_KEYS.has(key) || (isFollowed(key, next) && !restart.includes(key))
    const inForce = changedKeys(last, next).filter(isTakenOver)
    last = next
    used = afterReload(used, next)
    apply(next, inForce)
    return { problem: null, inForce, restart }
  }
  return {
    /** Takes over what can be changed while the daemon runs, and logs what is in force and what requires a restart. Never throws. */
    reload(): void {
      found = readAgain()
      reloads += 1
      logReload(found, log)
    },
    /** Returns what other processes may know of the settings in use. */
    used: (): Omit<DaemonSettings, 'instance'> => ({ ...used, reloads, last: found }),
  }
}

function logReload({ problem, inForce, restart }: Reload, log: ReloadOptions['log']): void {
  if (problem !== null) {
    const stay = 'the settings cannot be used, so those in force stay, all of them'
    return log.warn({}, `SIGHUP: ${stay}. ${problem}`)
  }
  const reread = inForce.length === 0 ? 'no live setting changed' : `read again and in force: ${inForce.join(', ')}`
  const rest =
    restart.length === 0 ? 'no other setting changed' : `changed, and in force after a restart: ${restart.join(', ')}`
  const what = 'settings, key and credential files, webhook secrets and certificates were read again'
  log.info({ reread: inForce, restart }, `SIGHUP: ${what}; ${reread}; ${rest}`)
}

/** What is started again for a live setting. */
interface Restartable {
  readonly signals: Pick<Signals, 'send'>
  gate?: { apply(): void } | null
  jobs?: { restart(): void }
}

/** Puts changed live settings in force that are not read at each use: the log's level, relay and schedule. */
export function applyLive(
  { config, log }: { readonly config: Config; readonly log: Logger },
  on: Restartable,
  changed: readonly string[],
): void {
  if (changed.includes('log.level')) log.level = config.log.level
  if (changed.some((key) => key.startsWith('relay.'))) on.signals.send('relaySettings')
  if (changed.some((key) => key.startsWith('fleet.'))) on.gate?.apply()
  if (!changed.some((key) => /chedule$/.test(key))) return
  on.signals.send('schedules')
  on.jobs?.restart()
}
