import { request as httpsRequest } from 'node:https'
import type { Config } from '../../config/schema.ts'
import { http } from '../../base/connections/http.ts'
import { messageOf, systemCode } from '../../base/errors.ts'
import { toIsoOrNull } from '../../base/time.ts'
import type { EdgeTargetStatus } from '../../base/reports/transfer.ts'
import type { ServerLog } from '../../server/http/problems.ts'

/** Dependencies of the purges of shared caches. */
interface PurgeOptions {
  readonly config: Config['edge']
  /** Extra certificate authorities, PEM; undefined: those of the system. */
  readonly ca: string[] | undefined
  /** Pause after which the same tags are purged again, milliseconds. */
  readonly againMs: number
  readonly log: ServerLog | null
  /** Unix milliseconds. */
  readonly now: () => number
  /** Shortest pause after a failure, milliseconds; one second when not given. */
  readonly retryMs?: number
  /** Time of one request, milliseconds; 5 seconds when not given. */
  readonly timeoutMs?: number
}

/** Longest pause after failures in a row, milliseconds. */
const LONGEST_RETRY_MS = 60_000
/** Tags that fit into one header of every product. */
const SEPARATOR = { 'Cache-Tag': ',', xkey: ' ', 'Surrogate-Key': ' ', none: ' ' } as const

/** Creates the purges: one request at a time for each target, retried with growing pauses until it succeeds. */
export function createEdgePurges(options: PurgeOptions) {
  const { config, againMs } = options
  const targets = config.purge.map((url, at) => createTarget(options, url, at + 1))
  const later = new Set<NodeJS.Timeout>()
  const purge = (tags: readonly string[]): void => {
    for (const target of targets) target.add(tags)
  }
  return {
    /**
     * Purges tags in every target, now and again later: an edge may have filled itself meanwhile from a request that was
     * under way, or from a reader that lagged. Returns at once.
     */
    purge: (tags: readonly string[]): void => {
      if (targets.length === 0 || tags.length === 0) return
      purge(tags)
      const timer = setTimeout(() => {
        later.delete(timer)
        purge(tags)
      }, againMs).unref()
      later.add(timer)
    },
    status: (): readonly EdgeTargetStatus[] => targets.map((target) => target.status()),
    close: (): void => {
      for (const timer of later) clearTimeout(timer)
      for (const target of targets) target.close()
    },
  }
}

/** One cache to purge. Tags wait in a set, so they are bounded whatever the cache answers. */
function createTarget(options: PurgeOptions, url: string, number: number) {
  const { log, now, config, retryMs = 1000 } = options
  const waiting = new Set<string>()
  const counts = { purged: 0, failures: 0 }
  const state = { inRow: 0, purgedAt: null as number | null, reason: null as string | null }
  const is = { sending: false, closed: false }
  const isClosed = (): boolean => is.closed
  let timer: NodeJS.Timeout | null = null
  let abort: AbortController | null = null

  const succeed = (): void => {
    counts.purged++
    if (state.inRow > 0) log?.info({ target: number }, `edge ${number} is purged again`)
    Object.assign(state, { inRow: 0, purgedAt: now(), reason: null })
  }
  const fail = (reason: string, tags: readonly string[]): void => {
    counts.failures++
    for (const tag of tags) waiting.add(tag)
    if (state.reason !== reason) {
      const old = `it serves old answers for at most edge.maxAgeSeconds (${config.maxAgeSeconds})`
      log?.warn({ target: number }, `edge ${number} cannot be purged: ${reason}; ${old}. Retrying`)
    }
    Object.assign(state, { inRow: state.inRow + 1, reason })
    const pause = Math.min(retryMs * 2 ** Math.min(state.inRow - 1, 10), LONGEST_RETRY_MS)
    timer = setTimeout(() => void sendAll(), pause * (0.75 + Math.random() / 2)).unref()
  }
  const sendAll = async (): Promise<void> => {
    if (is.sending || is.closed || waiting.size === 0) return
    if (timer !== null) clearTimeout(timer)
    timer = null
    const tags = [...waiting]
    waiting.clear()
    is.sending = true
    abort = new AbortController()
    const reason = await sendPurge(options, url, tags, abort.signal)
    is.sending = false
    if (isClosed()) return
    if (reason === null) succeed()
    else return fail(reason, tags)
    await sendAll() // tags that were added meanwhile
  }
  return {
    add(tags: readonly string[]): void {
      for (const tag of tags) waiting.add(tag)
      // While it fails, the retry sends them: a target that is down gets no request for each publication.
      if (timer === null) void sendAll()
    },
    status: (): EdgeTargetStatus => ({
      id: number,
      state: state.inRow > 0 ? 'failing' : 'ok',
      pending: waiting.size > 0 || is.sending,
      reason: state.reason,
      ...counts,
      purgedAt: toIsoOrNull(state.purgedAt),
    }),
    close(): void {
      is.closed = true
      if (timer !== null) clearTimeout(timer)
      abort?.abort()
    },
  }
}

/**
 * Sends one PURGE with the tags in the tag header; resolves with null when it was answered with 2xx, else with the reason.
 * Never rejects. No redirect is followed, and no body is read.
 */
function sendPurge(
  { config, ca, timeoutMs = 5_000 }: PurgeOptions,
  url: string,
  tags: readonly string[],
  closed: AbortSignal,
): Promise<string | null> {
  const { tagHeader } = config
  const deadline = AbortSignal.timeout(timeoutMs)
  const headers = tagHeader === 'none' ? {} : { [tagHeader]: tags.join(SEPARATOR[tagHeader]) }
  const signal = AbortSignal.any([deadline, closed])
  return new Promise((resolve) => {
    const failed = (error: unknown): void => {
      resolve(deadline.aborted ? `no answer within ${timeoutMs} ms` : reasonOf(error))
    }
    try {
      const isTls = url.startsWith('https:')
      const send = isTls ? httpsRequest : http.request
      const tls = isTls && ca !== undefined ? { ca } : {}
      const sent = send(url, { method: 'PURGE', headers, agent: false, signal, ...tls })
      sent.once('error', failed)
      sent.once('response', (response) => {
        const { statusCode = 0 } = response
        response.once('error', () => undefined).destroy()
        resolve(statusCode >= 200 && statusCode < 300 ? null : `it answered ${statusCode}`)
      })
      sent.end()
    } catch (error) {
      failed(error)
    }
  })
}

/** Without the URL, which may contain a token. */
function reasonOf(error: unknown): string {
  return `no answer (${systemCode(error) ?? messageOf(error).slice(0, 100)})`
}
