import { randomBytes } from 'node:crypto'
import { sha256Hex } from '../../base/digest.ts'
import { messageOf, systemCode } from '../../base/errors.ts'
import type { Config } from '../schema.ts'
import { SETTINGS } from '../settings.ts'
import { LIVE_KEYS } from './live.ts'
import { readNamedFile } from '../../base/files.ts'

/** Secrets whose files a running daemon follows by itself: where one changed, the new value is in force. */
const FOLLOWED: ReadonlySet<string> = new Set([
  'upstream.apiKey',
  'upstream.token',
  'identity.apiKey',
  'oauth.clientSecret',
  'server.keys',
  'webhooks.secrets',
])

/** Settings that name files which are only read at start: a change of their content requires a restart. */
const READ_AT_START: ReadonlySet<string> = new Set(['upstream.caFile', 'bundle.signingKeys', 'bundle.trustedKeys'])

/** Hex digits of a digest: enough to tell a changed value, too few to confirm a guess of a secret. */
const DIGITS = 4

/** The settings that a daemon uses, as digests by their keys, which say no value. */
interface UsedSettings {
  readonly salt: string
  readonly digests: Readonly<Record<string, string>>
}

/** Settings that differ from those in use, by what puts them in force. */
interface Differences {
  readonly reload: readonly string[]
  readonly restart: readonly string[]
}

/** Returns digests of these settings and of the files that are only read at start. */
export function usedSettings(config: Config, salt: string = randomBytes(16).toString('hex')): UsedSettings {
  const textOf = (key: string, value: unknown): string => {
    if (isFollowed(key, config)) return `file ${config.secretFiles?.[key] ?? ''}`
    return JSON.stringify([value, READ_AT_START.has(key) ? contentsOf(value) : []])
  }
  const of = (key: string, value: unknown): string => sha256Hex(`${salt} ${key} ${textOf(key, value)}`).slice(0, DIGITS)
  const entries = SETTINGS.map((one) => [one.key, of(one.key, valueOf(config, one))] as const)
  return { salt, digests: Object.fromEntries(entries) }
}

/** Returns what a daemon uses after it read these settings again: the live ones of them, all others as before. */
export function afterReload(used: UsedSettings, config: Config): UsedSettings {
  const { digests } = usedSettings(config, used.salt)
  const live = Object.entries(digests).filter(([key]) => LIVE_KEYS.has(key))
  return { ...used, digests: { ...used.digests, ...Object.fromEntries(live) } }
}

/** Compares settings with those in use. */
export function compareSettings(used: UsedSettings, config: Config): Differences {
  const { digests } = usedSettings(config, used.salt)
  const keys = Object.keys(digests).filter((key) => used.digests[key] !== digests[key])
  return {
    reload: keys.filter((key) => LIVE_KEYS.has(key)),
    restart: keys.filter((key) => !LIVE_KEYS.has(key)),
  }
}

/** Returns the keys of the settings whose values differ, the contents of secrets' files included. */
export function changedKeys(one: Config, other: Config): string[] {
  return SETTINGS.filter((setting) => {
    return JSON.stringify(valueOf(one, setting)) !== JSON.stringify(valueOf(other, setting))
  }).map(({ key }) => key)
}

/** Reports whether a running daemon follows the file that this secret is read from. */
export function isFollowed(key: string, { secretFiles }: Config): boolean {
  return FOLLOWED.has(key) && secretFiles?.[key] !== undefined
}

function valueOf(config: Config, { section, name }: { section: string; name: string }): unknown {
  const sections: Readonly<Record<string, object>> = { ...config }
  return Object.entries(sections[section] ?? {}).find(([key]) => key === name)?.[1]
}

/** Digests of the files that a setting names; a key given in the settings themselves is its own content. */
function contentsOf(value: unknown): string[] {
  return pathsIn(value).map((path) => {
    try {
      return sha256Hex(readNamedFile(path))
    } catch (error) {
      return systemCode(error) ?? messageOf(error)
    }
  })
}

function pathsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.map(String)
  return typeof value === 'string' ? [value] : []
}
