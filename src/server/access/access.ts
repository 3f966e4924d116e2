import type { IncomingMessage } from 'node:http'
import { timingSafeEqual } from 'node:crypto'
import { createDue } from '../../base/pacing.ts'
import { HOUR_MS } from '../../base/time.ts'
import type { Config } from '../../config/schema.ts'
import type { PinnedReads } from '../../store/reads.ts'
import { clientNetwork } from '../../base/connections/network.ts'
import { MirrorError } from '../../base/errors.ts'
import { type LocalKey, hashKey, keyTitle } from '../../store/keys.ts'
import { type TrustedProxies, isLoopbackAddress } from '../http/client-address.ts'
import {
  type Credential,
  MAKE_KEY,
  missingKey,
  noKeyYet,
  readCredential,
  tooManyFailures,
  wrongKey,
} from './credentials.ts'
import type { Problem, ServerLog } from '../http/problems.ts'
import { isForwarded, isHost, readForwarding } from '../http/forwarded.ts'
import { noteKey } from './request-log.ts'

/** Who may read the private paths. */
export type Access = ReturnType<typeof createAccess>

/** The settings that access is decided by. */
type AccessSettings = Pick<Config['server'], 'host' | 'keys' | 'openLoopback' | 'publicUrl' | 'socket' | 'trustProxy'>

/** What access is decided by. */
interface AccessOptions {
  readonly reads: Pick<PinnedReads, 'live' | 'commits'>
  /** Of its keys only the hashes are kept. */
  readonly settings: AccessSettings
  /** What `trustProxy` amounts to. */
  readonly trusted: TrustedProxies
  /** The address that the server is bound to; null while it is not. */
  readonly listeningOn: () => string | null
  readonly log: ServerLog | null
  /** Unix milliseconds. */
  readonly now: () => number
}

/** Wrong keys that one client may send within a minute before it gets 429. */
const FAILURES = { failures: 10, windowMs: 60_000, clients: 10_000 }
/** Interval between two log lines about the same key in use, milliseconds. */
const LOG_INTERVAL_MS = HOUR_MS

/**
 * Accepts keys in the forms that the service accepts (credentials.ts). An address is no credential: a proxy on this machine, or
 * a web page in a browser on it, also connects from a loopback address. Only `server.openLoopback` admits requests without a
 * key, and only requests that show no sign of another origin. Wrong keys are counted per client (per /64 for IPv6). A valid
 * key is always accepted, whatever other requests from the same address sent: keys are too long to be guessed, and a lock-out
 * would only serve an attacker. Throws `config` for contradicting settings.
 */
export function createAccess(options: AccessOptions) {
  const { reads, settings, log, now, trusted } = options
  const keyring = createKeyring(() => settings.keys, reads, log)
  const attempts = createAttempts(FAILURES, now)
  const logUse = createUseLog(log, now)
  const clientOf = ({ headersDistinct, socket }: IncomingMessage): string =>
    readForwarding(socket.remoteAddress, headersDistinct, trusted).client
  const findKey = (credential: Credential): FoundKey | null =>
    credential.kind === 'key' ? keyring.find(credential.key) : null
  return {
    /** Reports whether a request brings a valid key. Nothing is counted or logged by it. Throws when the store cannot be read. */
    hasKey: ({ headersDistinct }: IncomingMessage): boolean =>
      findKey(readCredential(headersDistinct['authorization'])) !== null,
    /** Null: let in. Else what to answer. Throws when the store cannot be read. */
    judge(request: IncomingMessage): Problem | null {
      if (isOpenTo(request, options)) return null
      const credential = readCredential(request.headersDistinct['authorization'])
      if (credential.kind === 'none') return keyring.inUse() ? missingKey() : noKeyYet()
      const found = findKey(credential)
      if (found === null) {
        const why = credential.kind === 'unusable' ? credential.why : null
        return countFailure(attempts, clientOf(request), why, log)
      }
      noteKey(request, found.title)
      logUse(found, request, clientOf)
      return null
    },
    /** Logs which keys were created and revoked, and by whom. */
    look(): void {
      try {
        keyring.look()
      } catch {
        // A store that cannot be read is reported by the requests that need a key.
      }
    },
    /** Logs who may read the private paths; for the start, once the address is known. */
    announce(): void {
      const closed = whyClosed(options)
      if (!settings.openLoopback) log?.info({}, `${PRIVATE} take a key (${keyring.count()} valid)`)
      else if (closed === null)
        log?.warn(
          {},
          `server.openLoopback: ${PRIVATE} answer every program and every proxy on this machine without a key`,
        )
      else log?.warn({}, `server.openLoopback has no effect, because ${closed}: ${PRIVATE} take a key`)
      if (!keyring.inUse()) log?.warn({}, `there is no key yet: ${PRIVATE} answer 401. ${MAKE_KEY}`)
    },
  }
}

const PRIVATE = 'the private paths (/v1, /v3, /packages/ecosystems and the like)'

function countFailure(attempts: Attempts, address: string, why: string | null, log: ServerLog | null): Problem {
  const client = clientNetwork(address)
  const { wait, first } = attempts.fail(client)
  if (first) log?.warn({ client, seconds: wait }, `too many wrong keys from ${client}`)
  return wait > 0 ? tooManyFailures(FAILURES.failures, wait) : wrongKey(why)
}

/** Whether `server.openLoopback` lets this request in without a key. */
function isOpenTo(request: IncomingMessage, options: AccessOptions): boolean {
  const { settings } = options
  return settings.openLoopback && whyClosed(options) === null && isOwn(request, settings.host)
}

/** Why `server.openLoopback` opens nothing; null when it does. */
function whyClosed({ listeningOn, settings }: AccessOptions): string | null {
  const { publicUrl, socket, trustProxy } = settings
  if (socket !== null) return 'server.listen is a socket, whose connections have no address'
  const address = listeningOn()
  if (address === null || !isLoopbackAddress(address))
    return 'the mirror listens to more than this machine (server.listen)'
  if (publicUrl !== null) return 'server.publicUrl is set, so the mirror is reached from other machines'
  if (trustProxy.length > 0) return 'server.trustProxy is set, so a proxy forwards requests to the mirror'
  return null
}

/**
 * Reports whether a request shows no sign of another origin: it comes from a loopback address, carries no forwarding header,
 * and names this machine as its host. The host name exposes a web page whose own name resolves to 127.0.0.1.
 */
function isOwn({ headersDistinct, socket }: IncomingMessage, ownHost: string): boolean {
  if (!isLoopbackAddress(socket.remoteAddress) || isForwarded(headersDistinct)) return false
  const [asked = 'localhost', another] = headersDistinct['host'] ?? []
  if (another !== undefined || !isHost(asked)) return false
  const name = asked.replace(/:\d+$/, '').toLowerCase()
  return /^(.+\.)?localhost$/.test(name) || isLoopbackAddress(name) || name === ownHost.toLowerCase()
}

/** Logs a key that is used, once an hour: reads write nothing, so this is where its last use is to be found. */
function createUseLog(log: ServerLog | null, now: () => number) {
  const isDue = createDue(LOG_INTERVAL_MS, now)
  return ({ title }: FoundKey, request: IncomingMessage, clientOf: (r: IncomingMessage) => string) => {
    if (!isDue(title)) return
    const client = clientOf(request)
    log?.info({ client }, `${title} is in use, by ${client}`)
  }
}

/** A valid key, named as the log may name it. */
interface FoundKey {
  /** Such as `key 3 (build server)`, or `entry 2 of server.keys`. */
  readonly title: string
}

interface Entry extends FoundKey {
  readonly hash: Buffer
}

/** What may be a key in both ways of sending one: visible ASCII, no colon, which would end the Basic user name. */
const SENDABLE = /^[!-9;-~]+$/

/**
 * Finds the keys that open the private paths: those of the settings, and those made by `patchmirror keys create`. Keeps hashes of the settings' keys, made again when the settings have other keys. Throws `config` for one that could not be
 * sent, without repeating it.
 */
function createKeyring(
  settingKeys: () => readonly string[],
  { live, commits }: Pick<PinnedReads, 'live' | 'commits'>,
  log: ServerLog | null,
) {
  const secret = live.secrets.readSecret('keys')
  const fixed = hashed(settingKeys, secret)
  fixed()
  let stored: { readonly entries: readonly Entry[]; readonly had: boolean } | null = null
  let seen = -1
  const logChanges = createKeyLog(log)
  const read = () => {
    const current = commits()
    if (stored !== null && current === seen) return stored
    const entries = live.keys.listKeyHashes().map((key) => {
      return { title: keyTitle(key), hash: key.hash }
    })
    logChanges(live.keys.listKeys())
    stored = { entries, had: live.keys.hadKeys() }
    seen = current
    return stored
  }
  return {
    /** The key that this is; null when it is none, or was revoked. A commit of another process counts at once. */
    find(key: string): FoundKey | null {
      const hash = hashKey(key, secret)
      let found: FoundKey | null = null
      // Compares all keys, by their hashes: the duration reveals nothing about any key.
      for (const entry of [...fixed(), ...read().entries]) if (timingSafeEqual(entry.hash, hash)) found = entry
      return found
    },
    /** Whether keys are in use; also when all of them are revoked, for revoking the last must not open the door. */
    inUse: (): boolean => fixed().length > 0 || read().had,
    /** How many are valid. */
    count: (): number => fixed().length + read().entries.length,
    /** Logs which keys were created and revoked since the last call, and by whom. */
    look: (): void => void read(),
  }
}

/** Logs what changed between two lists of the keys; the first list is what the daemon started with. */
function createKeyLog(log: ServerLog | null): (keys: readonly LocalKey[]) => void {
  let known: ReadonlyMap<number, LocalKey> | null = null
  return (keys) => {
    for (const key of known === null ? [] : keys) {
      const before = known?.get(key.id)
      if (before === undefined) logChange(log, key, 'created', key.createdBy)
      if (key.revokedAt !== null && (before?.revokedAt ?? null) === null) logChange(log, key, 'revoked', key.revokedBy)
    }
    known = new Map(keys.map((key) => [key.id, key]))
  }
}

function logChange(log: ServerLog | null, key: LocalKey, what: string, by: string | null): void {
  const user = by === null ? '' : ` by ${by}`
  log?.info({ key: key.id, by }, `${keyTitle(key)} was ${what}${user}`)
}

/** The entries of the settings' keys; they are hashed once for each list. */
function hashed(keys: () => readonly string[], secret: Buffer): () => readonly Entry[] {
  let seen: readonly string[] | null = null
  let entries: readonly Entry[] = []
  return () => {
    const current = keys()
    if (current === seen) return entries
    entries = current.map((key, at) => settingEntry(key, at + 1, secret))
    seen = current
    return entries
  }
}

function settingEntry(key: string, position: number, secret: Buffer): Entry {
  const title = `entry ${position} of server.keys`
  if (SENDABLE.test(key)) return { title, hash: hashKey(key, secret) }
  const message = `${title} contains a space, a colon or another character that a key may not have: create a valid one with "patchmirror keys create"`
  throw new MirrorError('config', message)
}

/** Account of failures by client. */
type Attempts = ReturnType<typeof createAttempts>

/** How much is too much, and what is kept. */
interface AttemptLimits {
  readonly failures: number
  readonly windowMs: number
  /** Clients kept account of; with more, those that came first are forgotten. */
  readonly clients: number
}

/** Counts failures in windows of fixed length, each begun by a client's first failure. `now` in unix milliseconds. */
export function createAttempts(limits: AttemptLimits, now: () => number) {
  const { failures, windowMs, clients } = limits
  const windows = new Map<string, { count: number; readonly startedAt: number }>()
  const windowOf = (client: string, at: number) => {
    const known = windows.get(client)
    // A clock that went backwards must not make the wait longer than a window.
    if (known !== undefined && at >= known.startedAt && at < known.startedAt + windowMs) return known
    windows.delete(client)
    const oldest = windows.size >= clients ? windows.keys().next().value : undefined
    if (oldest !== undefined) windows.delete(oldest)
    const fresh = { count: 0, startedAt: at }
    windows.set(client, fresh)
    return fresh
  }
  return {
    /** Counts one more failure. `wait`: seconds until the client is heard again, 0 while it is within the limit. */
    fail: (client: string): { readonly wait: number; readonly first: boolean } => {
      const at = now()
      const window = windowOf(client, at)
      window.count++
      if (window.count <= failures) return { wait: 0, first: false }
      const wait = Math.max(1, Math.ceil((window.startedAt + windowMs - at) / 1000))
      return { wait, first: window.count === failures + 1 }
    },
  }
}
