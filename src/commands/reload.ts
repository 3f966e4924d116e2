import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Config } from '../config/schema.ts'
import { SETTINGS } from '../config/settings.ts'
import { messageOf, systemCode } from '../errors.ts'
import type { Logger } from '../log.ts'

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

/** Settings that name files which are read at start alone: where what they hold changed, a restart is needed. */
const READ_AT_START = ['upstream.caFile', 'bundle.signingKeys', 'bundle.trustedKeys'] as const

/**
 * What SIGHUP does beside reading files again: reads the settings once more, and says which changed since they were read
 * last, which of these are in force now, and which wait for a restart. No value is quoted. Never throws.
 */
export function createReload(
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

/** Only what comes from a file of its own is followed; a value in the settings file is read at start alone. */
function isFollowed(key: string, { secretFiles }: Config): boolean {
  return FOLLOWED.has(key) && secretFiles?.[key] !== undefined
}

/** What the files hold that are read at start alone; a key given in the settings themselves is its own content. */
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
    return hash('sha256', readFileSync(path))
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
