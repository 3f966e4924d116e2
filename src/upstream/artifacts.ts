import { isIP } from 'node:net'
import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import type { Trusted } from '../base/connections/network.ts'
import { MirrorError, systemCode } from '../base/errors.ts'
import { isPrivateAddress } from './http/destinations.ts'
import { discardBody, hasEnd, isPlain, metaOf, networkError } from './http/response.ts'
import { type Retrying, withDeadline } from './http/retry.ts'
import type { StopSignal } from './http/stop-signal.ts'
import { documentError, readErrorBody } from './http/errors.ts'
import type { SecretSearch } from './secret-search.ts'
import { type RawAnswer, type Transport, through } from './http/transport.ts'

/** Options for fetching documents behind pre-signed URLs. */
export interface ArtifactOptions {
  /** Transport that refuses private addresses that are not trusted. */
  transport: Transport
  /** Hosts for which http and private addresses are allowed too. */
  isTrusted: Trusted
  /** Cap on a document, bytes. */
  maxBytes: number
  /** Deadline of a document, milliseconds. */
  timeoutMs: number
  userAgent: string
  /** Finds the service's credentials in responses. */
  secrets: SecretSearch
  now: () => number
  /** Counters, updated for failed requests too. */
  cost: { requests: number; bytes: number }
}

/** Receives the chunks of a document. */
export interface ArtifactSink {
  /** Starts an attempt; discards what earlier attempts wrote. `isEnded`: the response shows where its body ends. */
  begin(type: string, isEnded: boolean): Promise<void> | void
  write(bytes: Buffer): Promise<void> | void
}

const MAX_REDIRECTS = 5

/**
 * Fetches the document behind a pre-signed URL without a credential; every redirect is checked, size and time are
 * bounded. The URL contains a signature, so messages show only its host. Throws `upstream_*`.
 */
export async function fetchArtifact(
  url: string,
  retrying: Retrying,
  signal: AbortSignal,
  options: ArtifactOptions,
  sink: ArtifactSink,
): Promise<void> {
  await retrying(() =>
    withDeadline(options.timeoutMs, signal, async (deadline) => {
      await receive(await follow(url, deadline(), options), options, sink)
    }),
  )
}

async function follow(
  first: string,
  signal: StopSignal,
  options: ArtifactOptions,
): Promise<RawAnswer & { host: string }> {
  let url = checkUrl(first, null, options.isTrusted)
  for (let hop = 0; ; hop++) {
    options.cost.requests++
    const answer = await send(url, signal, options)
    const { status, headers } = answer
    if (status === 200) return { ...answer, host: url.host }
    const location = headers['location']
    if (status < 300 || status >= 400 || typeof location !== 'string') {
      const said = (await readErrorBody(answer.body))?.toString('latin1') ?? ''
      const place = placeOf(url) + through(answer.proxy ?? null)
      throw documentError(status, headers, place, options.now, said)
    }
    await discardBody(answer.body)
    if (hop === MAX_REDIRECTS) throw new MirrorError('upstream_status', `${placeOf(url)}: too many redirects`)
    url = checkUrl(location, url, options.isTrusted)
  }
}

async function send(
  url: URL,
  signal: StopSignal,
  { transport, userAgent, timeoutMs }: ArtifactOptions,
): Promise<RawAnswer> {
  const headers = { 'user-agent': userAgent, accept: '*/*', 'accept-encoding': 'identity' }
  try {
    return await transport.send({ method: 'GET', url, headers, body: null }, signal)
  } catch (error) {
    const reason = privateReason(error)
    if (reason !== null) throw refused(placeOf(url), reason + ALLOW_HINT)
    throw networkError(error, placeOf(url), timeoutMs)
  }
}

async function receive(
  { host, headers, body }: RawAnswer & { host: string },
  { maxBytes, timeoutMs, now, cost, secrets }: ArtifactOptions,
  sink: ArtifactSink,
): Promise<void> {
  const meta = metaOf({ status: 200, headers, body }, now)
  const place = `the document at ${host}`
  try {
    if (!isPlain(meta) && meta.contentEncoding !== 'gzip') {
      throw new MirrorError('upstream_shape', `${place}: content encoding ${String(meta.contentEncoding)}`)
    }
    if (meta.length !== null && meta.length > maxBytes) throw tooLarge(place, meta.length, maxBytes)
    secrets.check(JSON.stringify(meta), place)
    await sink.begin(meta.contentType, hasEnd(meta))
    const search = secrets.stream(place)
    let arrived = 0
    let size = 0
    const count = (bytes: number): void => {
      arrived += bytes
      cost.bytes += bytes
    }
    const take = async (chunk: Buffer): Promise<void> => {
      size += chunk.length
      if (size > maxBytes) throw tooLarge(place, size, maxBytes)
      search(chunk)
      await sink.write(chunk)
    }
    const whole = isPlain(meta) ? body.whole() : null
    if (whole !== null) {
      count(whole.length)
      await take(whole)
    } else {
      const counted = counting(body, count)
      for await (const chunk of isPlain(meta) ? counted : inflated(counted, place)) await take(chunk)
    }
    if (meta.length !== null && arrived !== meta.length)
      throw new MirrorError('upstream_unreachable', `${place}: ${arrived} of ${meta.length} bytes arrived`)
  } catch (error) {
    body.destroy()
    throw networkError(error, `${place} broke off`, timeoutMs)
  }
}

async function* counting(body: AsyncIterable<Buffer>, count: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of body) {
    count(chunk.length)
    yield chunk
  }
}

/**
 * Inflates a chunked body: some object stores send gzip although it was not requested. The size cap on the output
 * bounds the memory.
 */
async function* inflated(body: AsyncIterable<Buffer>, place: string): AsyncGenerator<Buffer> {
  const source = Readable.from(body)
  const gunzip = createGunzip()
  source.once('error', (error) => gunzip.destroy(error)).pipe(gunzip)
  try {
    for await (const chunk of gunzip) yield chunk as Buffer // no encoding is set
  } catch (error) {
    if (systemCode(error)?.startsWith('Z_') !== true) throw error
    throw new MirrorError('upstream_shape', `${place}: the gzip body is damaged`, { cause: error })
  } finally {
    source.destroy()
    gunzip.destroy()
  }
}

function checkUrl(text: string, from: URL | null, isTrusted: Trusted): URL {
  const url = URL.parse(text, from?.href)
  if (url === null) throw refused('a document', 'its address is not a URL')
  const { protocol, hostname, username, password } = url
  const allowPrivate = isTrusted(hostname)
  const schemes = allowPrivate ? ['https:', 'http:'] : ['https:']
  if (!schemes.includes(protocol))
    throw refused(placeOf(url), `it is not an https URL (${protocol})${protocol === 'http:' ? ALLOW_HINT : ''}`)
  if (username !== '' || password !== '') throw refused(placeOf(url), 'the URL contains a credential')
  if (from?.protocol === 'https:' && protocol === 'http:') throw refused(placeOf(url), 'it leads from https to http')
  const address = hostname.replace(/^\[|\]$/g, '')
  if (!allowPrivate && isIP(address) !== 0 && isPrivateAddress(address))
    throw refused(placeOf(url), `${address} is a private address${ALLOW_HINT}`)
  return url
}

function privateReason(error: unknown): string | null {
  for (let at = error; at instanceof Error; at = at.cause) if (at.name === 'PrivateAddressError') return at.message
  return null
}

function placeOf({ protocol, host }: URL): string {
  return host === '' ? `a ${protocol} URL` : `the document at ${host}`
}

/** The largest document that is mirrored, bytes: an SBOM of a large image has tens of megabytes, and the disk is protected. */
export const MAX_ARTIFACT_BYTES = 1_000_000_000

/** Hint for URLs that a setting can allow. */
const ALLOW_HINT = '; to allow it, name the host in network.trusted'

function refused(place: string, why: string): MirrorError {
  return new MirrorError('upstream_shape', `${place} is not fetched: ${why}`)
}

function tooLarge(place: string, size: number, cap: number): MirrorError {
  return new MirrorError(
    'upstream_too_large',
    `${place}: ${size} bytes or more, the most that is mirrored is ${cap}; fetch it from the service itself`,
  )
}
