import { readFileSync } from 'node:fs'
import { LIVE_KEYS } from '../config/live.ts'
import type { Config } from '../config/schema.ts'
import { SETTINGS } from '../config/settings.ts'
import { sha256Hex } from '../core/digest.ts'
import { messageOf, systemCode } from '../core/errors.ts'
import type { Logger } from '../core/log.ts'
import type { Schedule } from '../sync/schedule.ts'

/** Secrets whose files a running daemon follows by itself: where one changed, the new value is in force. */
const FOLLOWED: ReadonlySet<string> = new Set([
  'upstream.apiKey',
  'upstream.token',
  'upstream.clientSecret',
  'identity.apiKey',
  'identity.token',
  'identity.clientSecret',
])

/** Settings that name files which are only read at start: a change of their content requires a restart. */
const READ_AT_START = ['upstream.caFile', 'bundle.signingKeys', 'bundle.trustedKeys'] as const

/** What a reload works with. */
interface ReloadOptions {
  readonly started: Config
  /** Reads all settings again; throws for any that cannot be used, and then nothing changes. */
  readonly read: () => Config
  /** Takes over the live settings of these; `changed` has their keys. */
  readonly apply: (next: Config, changed: readonly string[]) => void
  readonly log: Pick<Logger, 'info' | 'warn'>
}

/**
 * Returns what handles SIGHUP: reads the settings once more, takes over what can be changed while the daemon runs, and logs
 * which settings are in force now and which require a restart. No value is logged. Never throws.
 */
export function createReload({ started, read, apply, log }: ReloadOptions): () => void {
  let last = started
  const atStart = digestsOf(started)
  return () => {
    let found: Config
    try {
      found = read()
    } catch (error) {
      const text = `SIGHUP: the settings cannot be used, so those in force stay, all of them. ${messageOf(error)}`
      return log.warn({}, text)
    }
    const inForce = changed(last, found).filter((key) => isTakenOver(key, found))
    const now = digestsOf(found)
    const rewritten = READ_AT_START.filter((key) => atStart[key] !== now[key])
    const others = changed(started, found).filter((key) => !isTakenOver(key, found))
    const waiting = [...new Set([...others, ...rewritten])]
    last = found
    apply(found, inForce)
    const reread =
      inForce.length === 0
        ? 'no live setting changed'
        : `read again and in force: ${inForce.join(', ')}`
    const rest =
      waiting.length === 0
        ? 'no other setting changed'
        : `changed, and in force after a restart: ${waiting.join(', ')}`
    const what =
      'settings, key and credential files, webhook secrets and certificates were read again'
    log.info({ reread: inForce, restart: waiting }, `SIGHUP: ${what}; ${reread}; ${rest}`)
  }
}

/** Reports whether a changed value is in force without a restart: it is live, or in a file that is followed. */
function isTakenOver(key: string, { secretFiles }: Config): boolean {
  return LIVE_KEYS.has(key) || (FOLLOWED.has(key) && secretFiles?.[key] !== undefined)
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

/** What is started again for a live setting. */
interface Restartable {
  relay?: { restart(): void }
  fleet?: { apply(): void } | undefined
  schedule?: Schedule
  startSchedule?: (sync: Config['sync']) => Schedule
}

/** Puts changed live settings in force that are not read at each use: the log's level, relay and schedule. */
export function applyLive(
  { config, log }: { readonly config: Config; readonly log: Logger },
  on: Restartable,
  changed: readonly string[],
): void {
  if (changed.includes('log.level')) log.level = config.log.level
  if (changed.some((key) => key.startsWith('relay.'))) on.relay?.restart()
  if (changed.some((key) => key.startsWith('fleet.'))) on.fleet?.apply()
  if (!changed.some((key) => /chedule$|^sync\./.test(key))) return
  void on.schedule?.stop()
  // What was due at the start of the daemon has run.
  const next = on.startSchedule?.(config.sync)
  if (next !== undefined) on.schedule = next
}
