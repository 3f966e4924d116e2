import type { IncomingMessage } from 'node:http'
import { HOUR_MS } from '../../base/time.ts'
import type { Config } from '../../config/schema.ts'
import type { PinnedReads } from '../../store/reads.ts'
import { clientNetwork } from '../../base/connections/network.ts'
import { type TrustedProxies, isLoopbackAddress } from '../http/client-address.ts'
import { type Attempts, createAttempts } from './throttle.ts'
import {
  type Credential,
  readCredential,
  MAKE_KEY,
  missingKey,
  noKeyYet,
  tooManyFailures,
  wrongKey,
} from './credentials.ts'
import type { ServerLog, Problem } from '../http/problems.ts'
import { isForwarded, isHost, readForwarding } from '../http/forwarded.ts'
import { type FoundKey, createKeyring } from './keyring.ts'
import { noteKey } from './request-log.ts'

/** Who may read the private paths. */
export interface Access {
  /** Null: let in. Else what to answer. Throws when the store cannot be read. */
  judge(request: IncomingMessage): Problem | null
  /** Reports whether a request brings a valid key. Nothing is counted or logged by it. Throws when the store cannot be read. */
  readonly hasKey: (request: IncomingMessage) => boolean
  /** Logs who may read the private paths; for the start, once the address is known. */
  readonly announce: () => void
  /** Logs which keys were created and revoked, and by whom. */
  readonly look: () => void
}

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
export function createAccess(options: AccessOptions): Access {
  const { reads, settings, log, now, trusted } = options
  const keyring = createKeyring(() => settings.keys, reads, log)
  const attempts = createAttempts(FAILURES, now)
  const logDenial = createThrottledLog(log, now)
  const clientOf = ({ headersDistinct, socket }: IncomingMessage): string =>
    readForwarding(socket.remoteAddress, headersDistinct, trusted).client
  const findKey = (credential: Credential): FoundKey | null =>
    credential.kind === 'key' ? keyring.find(credential.key) : null
  return {
    hasKey: ({ headersDistinct }) => findKey(readCredential(headersDistinct['authorization'])) !== null,
    judge(request) {
      if (isOpenTo(request, options)) return null
      const credential = readCredential(request.headersDistinct['authorization'])
      if (credential.kind === 'none') return keyring.inUse() ? missingKey() : noKeyYet()
      const found = findKey(credential)
      if (found === null) {
        const why = credential.kind === 'unusable' ? credential.why : null
        return countFailure(attempts, clientOf(request), why, log)
      }
      noteKey(request, found.title)
      logDenial(found, request, clientOf)
      return null
    },
    look() {
      try {
        keyring.look()
      } catch {
        // A store that cannot be read is reported by the requests that need a key.
      }
    },
    announce() {
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
  if (socket !== null) return 'server.socket is set, and its connections have no address'
  const address = listeningOn()
  if (address === null || !isLoopbackAddress(address))
    return 'the mirror listens to more than this machine (server.host)'
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
function createThrottledLog(log: ServerLog | null, now: () => number) {
  const loggedAt = new Map<string, number>()
  return ({ title }: FoundKey, request: IncomingMessage, clientOf: (r: IncomingMessage) => string) => {
    const at = now()
    if (Math.abs(at - (loggedAt.get(title) ?? -Infinity)) < LOG_INTERVAL_MS) return
    loggedAt.set(title, at)
    const client = clientOf(request)
    log?.info({ client }, `${title} is in use, by ${client}`)
  }
}
