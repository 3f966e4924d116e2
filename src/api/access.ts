import type { IncomingMessage } from 'node:http'
import type { Config } from '../config/schema.ts'
import type { PinnedReads } from '../store/pinned.ts'
import { type Trust, clientNetwork, isLoopback } from './addresses.ts'
import { type Attempts, createAttempts } from './attempts.ts'
import { readCredential } from './credentials.ts'
import { MAKE_KEY, missingKey, noKeyYet, tooManyFailures, wrongKey } from './denials.ts'
import type { ServerLog } from './failure.ts'
import { isForwarded, isHost, readForwarding } from './forwarded.ts'
import { type FoundKey, createKeyring } from './keyring.ts'
import type { Problem } from './problem.ts'

/** Who may read the private paths. */
export interface Access {
  /** Null: let in. Else what to answer. Throws when the store cannot be read. */
  judge(request: IncomingMessage): Problem | null
  /** Tells the log how the private paths stand; for the start, once the address is known. */
  readonly announce: () => void
}

/** The settings that access is decided by. */
export type AccessSettings = Pick<Config['server'], 'host' | 'keys' | 'publicUrl' | 'trustProxy'>

/** What access is decided by. */
export interface AccessOptions {
  readonly reads: Pick<PinnedReads, 'live' | 'commits'>
  /** Of its keys only the hashes are kept. */
  readonly settings: AccessSettings
  /** What `trustProxy` amounts to. */
  readonly trusted: Trust
  /** The address that the server is bound to; null while it is not. */
  readonly listeningOn: () => string | null
  readonly log: ServerLog | null
  /** Unix milliseconds. */
  readonly now: () => number
}

/** Wrong keys that one client may send in a minute before it is told to wait. */
const FAILURES = { failures: 10, windowMs: 60_000, clients: 10_000 }
/** A key that is in use is told to the log this often. */
const TELL_MS = 3_600_000

/**
 * Keys are accepted as the service accepts them (credentials.ts). While there never was one, only this machine itself
 * is answered. Wrong keys are counted by client, an IPv6 one by its /64; a right key passes at all times, whoever
 * else sends wrong ones from the same address: keys are too long to be guessed, and a lock-out would only serve whoever
 * wants one. Throws `config` for settings that cannot be.
 */
export function createAccess(options: AccessOptions): Access {
  const { reads, settings, log, now, trusted } = options
  const keyring = createKeyring(() => settings.keys, reads)
  const attempts = createAttempts(FAILURES, now)
  const tell = createTeller(log, now)
  const clientOf = ({ headersDistinct, socket }: IncomingMessage): string =>
    readForwarding(socket.remoteAddress, headersDistinct, trusted).client
  return {
    judge(request) {
      if (!keyring.inUse()) {
        const why = whyClosed(options) ?? whyStranger(request, settings.host)
        return why === null ? null : noKeyYet(why)
      }
      const credential = readCredential(request.headersDistinct['authorization'])
      if (credential.kind === 'none') return missingKey()
      const found = credential.kind === 'key' ? keyring.find(credential.key) : null
      if (found === null) {
        const why = credential.kind === 'unusable' ? credential.why : null
        return countFailure(attempts, clientOf(request), why, log)
      }
      tell(found, request, clientOf)
      return null
    },
    announce() {
      const why = whyClosed(options)
      const private_ = 'the private paths (/v1, /v3, /packages/ecosystems)'
      if (keyring.inUse()) log?.info({}, `${private_} ask for a key (${keyring.count()} valid)`)
      else if (why === null) log?.info({}, `no local key yet: ${private_} answer this machine only`)
      else log?.warn({}, `no local key yet: ${private_} answer 401, because ${why}. ${MAKE_KEY}`)
    },
  }
}

function countFailure(
  attempts: Attempts,
  address: string,
  why: string | null,
  log: ServerLog | null,
): Problem {
  const client = clientNetwork(address)
  const { wait, first } = attempts.fail(client)
  if (first) log?.warn({ client, seconds: wait }, `too many wrong keys from ${client}`)
  return wait > 0 ? tooManyFailures(FAILURES.failures, wait) : wrongKey(why)
}

/** Why nobody is answered without a key; null when this machine itself is. */
function whyClosed({ listeningOn, settings }: AccessOptions): string | null {
  const { publicUrl, trustProxy } = settings
  const address = listeningOn()
  if (address === null || !isLoopback(address))
    return 'the mirror listens to more than this machine'
  if (publicUrl !== null) return 'server.publicUrl says that others reach the mirror'
  if (trustProxy.length > 0) return 'server.trustProxy says that a proxy stands before the mirror'
  return null
}

/** Why this request may not be this machine's own, though it came from a loopback address; null when it is. */
function whyStranger(request: IncomingMessage, ownHost: string): string | null {
  const { headersDistinct, socket } = request
  if (!isLoopback(socket.remoteAddress)) return 'the request comes from another machine'
  if (isForwarded(headersDistinct)) return 'the request came through a proxy'
  // A web page may have its own name resolve to 127.0.0.1 and read what lies there: the name gives it away.
  const [asked = 'localhost', another] = headersDistinct['host'] ?? []
  if (another !== undefined || !isHost(asked))
    return 'the request does not say plainly which host it asks'
  const name = asked.replace(/:\d+$/, '').toLowerCase()
  const local =
    /^(.+\.)?localhost$/.test(name) || isLoopback(name) || name === ownHost.toLowerCase()
  return local ? null : 'the request asks for another host than this machine'
}

/** Logs a key that is used, once an hour: reads write nothing, so this is where its last use is to be found. */
function createTeller(log: ServerLog | null, now: () => number) {
  const told = new Map<string, number>()
  return (
    { title }: FoundKey,
    request: IncomingMessage,
    clientOf: (r: IncomingMessage) => string,
  ) => {
    const at = now()
    if (Math.abs(at - (told.get(title) ?? -Infinity)) < TELL_MS) return
    told.set(title, at)
    const client = clientOf(request)
    log?.info({ client }, `${title} is in use, by ${client}`)
  }
}
