import type { IncomingMessage, ServerResponse } from 'node:http'
import { sentBytes } from '../../base/connections/sent.ts'
import { type SourceName, isPrivateSource } from '../../base/domain/sources.ts'
import type { Access } from '../access/access.ts'
import { sendProblem } from '../http/problems.ts'
import { type StreamReader, createPlaces } from './places.ts'
import { readSource } from './changes-query.ts'
import {
  type EventLog,
  type FindingsLog,
  formatEvent,
  isContinuous,
  type LoggedEvent,
  type LogPosition,
  readPlace,
  writePlace,
} from './event-log.ts'

/** What the stream of events is fed from, and its bounds. */
export interface EventsOptions {
  readonly snapshots: EventLog
  /** Received and passed on; null: no webhooks here. */
  readonly webhooks: EventLog | null
  /** What changed in the findings of tags; null: they are not judged here. */
  readonly findings: FindingsLog | null
  /** Whether `/-/tags/changes` is served now: until then no event says that there are changes. */
  readonly servesFindings: () => boolean
  readonly access: Pick<Access, 'judge'>
  /** Returns the network of a request's client. */
  readonly addressOf: (request: IncomingMessage) => string
  /** Between two signs of life; 15 seconds when not given. */
  readonly heartbeatMs?: number
  /** Readers at the same time; 100 when not given. */
  readonly maxListeners?: number
}

/** The readers of `/-/events`. */
export interface Events {
  /** Answers with a stream, or refuses. Throws `bad_request`. */
  open(request: IncomingMessage, response: ServerResponse, query: URLSearchParams): void
  /** Sends what is new; cheap when nothing is. */
  look(): void
  /** Ends every stream, and takes no more. */
  close(): void
}

interface Listener extends StreamReader {
  readonly request: IncomingMessage
  readonly only: SourceName | null
  place: LogPosition
  /** What had left by the last heartbeat, in bytes, while something waited; null: nothing waited. */
  stuckAt: number | null
}

const HEARTBEAT_MS = 15_000
const MAX_LISTENERS = 100
/** With more than this waiting for a reader, it gets no more until that has left. */
const WAITING_BYTES = 64 * 1024
const BATCH = 50

const HEAD = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store',
  'X-Accel-Buffering': 'no',
}

/**
 * Server-sent events. Nothing is kept in memory for a reader: its place in the logs is, and it is given more when what it
 * has been given has left. One that takes nothing from one heartbeat to the next is cut off, by what the system has sent to it; its
 * place is in the id of the last event it got, and it may come back with it.
 */
export function createEvents(options: EventsOptions): Events {
  const { heartbeatMs = HEARTBEAT_MS, maxListeners = MAX_LISTENERS } = options
  const places = createPlaces<Listener>(maxListeners)
  let closed = false
  const beat = setInterval(() => {
    for (const listener of places.readers) orEnd(listener, () => keepAlive(options, listener))
  }, heartbeatMs).unref()
  return {
    open(request, response, query) {
      const only = readSource(query)
      const denied = options.access.judge(request)
      // Without any credential the public part is open; with a wrong one the reader would wait for nothing.
      const wantsKey = request.headers.authorization !== undefined
      if (denied !== null && (wantsKey || (only !== null && isPrivateSource(only))))
        return sendProblem(request, response, denied)
      const hasKey = denied === null
      const client = { address: options.addressOf(request), hasKey }
      const listener = {
        request,
        response,
        only,
        ...client,
        place: now(options, hasKey),
        stuckAt: null,
      }
      if (closed) return refuse(request, response, closed)
      if (request.method === 'HEAD') {
        if (places.hasRoom(listener)) response.writeHead(200, HEAD).end()
        else refuse(request, response, closed)
        return
      }
      if (!places.take(listener)) return refuse(request, response, closed)
      response.writeHead(200, HEAD)
      response.on('close', () => places.leave(listener))
      response.on('drain', () => orEnd(listener, () => pump(options, listener)))
      begin(options, listener)
      pump(options, listener)
    },
    look() {
      for (const listener of places.readers) pump(options, listener)
    },
    close() {
      closed = true
      clearInterval(beat)
      for (const { response } of places.readers) response.end()
    },
  }
}

/** Ends the stream when the store cannot be read; the client reconnects with its last event id. */
function orEnd({ response }: Listener, work: () => void): void {
  try {
    work()
  } catch {
    response.destroy() // the next check for snapshots meets the same fault and logs it
  }
}

function refuse(request: IncomingMessage, response: ServerResponse, closed: boolean): void {
  const message = closed
    ? 'the mirror is shutting down'
    : 'too many clients follow the events already: poll /-/changes instead, it returns the same changes'
  const headers = { 'Retry-After': '30' }
  sendProblem(request, response, { status: 503, error: 'busy', message, headers })
}

/** The end of the logs. */
function now({ snapshots, webhooks, findings }: EventsOptions, all: boolean): LogPosition {
  const published = { snapshots: snapshots.last() }
  if (!all) return { ...published, webhooks: null, findings: null }
  return { ...published, webhooks: webhooks?.last() ?? 0, findings: findings?.last() ?? null }
}

/** Resumes after the client's last event id; sends `reset` when entries since then were deleted. */
function begin({ snapshots, webhooks }: EventsOptions, listener: Listener): void {
  const { request, response, place } = listener
  response.write('retry: 5000\n')
  const lastEventId = request.headers['last-event-id']
  if (typeof lastEventId !== 'string' || lastEventId === '') {
    response.write(`id: ${writePlace(place)}\n\n`)
    return
  }
  const asked = readPlace(lastEventId)
  const sound =
    asked !== null &&
    isContinuous(snapshots, asked.snapshots) &&
    (place.webhooks === null ||
      asked.webhooks === null ||
      (webhooks === null ? asked.webhooks === 0 : isContinuous(webhooks, asked.webhooks)))
  if (sound) {
    const from = place.webhooks === null ? null : (asked.webhooks ?? place.webhooks)
    const findings = place.findings === null ? null : (asked.findings ?? place.findings)
    listener.place = { snapshots: asked.snapshots, webhooks: from, findings }
    return
  }
  const reason =
    'the events since then are not stored here (too long ago, or this mirror was restored from a backup): do a full read, then resume from this id'
  response.write(formatEvent('reset', writePlace(place), JSON.stringify({ reason })))
}

/** Gives a reader what is new, as long as it takes it. */
function pump(options: EventsOptions, listener: Listener): void {
  const { response } = listener
  for (;;) {
    if (response.writableEnded || response.destroyed) return
    if (response.writableLength > WAITING_BYTES) return
    const batch = next(options, listener.place)
    if (batch.length === 0) return
    const wanted = batch.filter((event) => isWanted(listener, event))
    // A key may have been revoked since: what it opened is closed with it.
    if (listener.place.webhooks !== null && wanted.some(isPrivate) && !mayRead(options, listener)) {
      response.end()
      return
    }
    for (const event of batch) {
      listener.place = behind(listener.place, event)
      if (event.data === null || !wanted.includes(event)) continue
      response.write(formatEvent(event.name, writePlace(listener.place), event.data()))
      if (response.writableLength > WAITING_BYTES) return
    }
  }
}

function next(options: EventsOptions, place: LogPosition): LoggedEvent[] {
  const { snapshots, webhooks } = options
  const published = snapshots.last() > place.snapshots ? snapshots.list(place.snapshots, BATCH) : []
  if (published.length > 0 || place.webhooks === null) return published
  const isNew = webhooks !== null && webhooks.last() > place.webhooks
  return isNew ? webhooks.list(place.webhooks, BATCH) : changedFindings(options, place)
}

/** One event for all that changed since; none for the first judgement, and none yet while they are not served. */
function changedFindings({ findings, servesFindings }: EventsOptions, { findings: since }: LogPosition): LoggedEvent[] {
  const id = findings?.last() ?? null
  if (findings === null || id === null || id === since) return []
  if (since !== null && !servesFindings()) return []
  const data = since === null ? null : () => findings.since(since)
  return [{ id, name: 'findings', source: 'catalog', data }]
}

function behind(place: LogPosition, event: LoggedEvent): LogPosition {
  if (event.name === 'findings') return { ...place, findings: event.id }
  return event.name === 'snapshot' ? { ...place, snapshots: event.id } : { ...place, webhooks: event.id }
}

function isPrivate({ source }: LoggedEvent): boolean {
  return source === null || isPrivateSource(source)
}

function isWanted({ place, only }: Listener, event: LoggedEvent): boolean {
  if (event.data === null || (only !== null && event.source !== only)) return false
  return place.webhooks !== null || !isPrivate(event)
}

function mayRead({ access }: EventsOptions, { request }: Listener): boolean {
  return access.judge(request) === null
}

function keepAlive(options: EventsOptions, listener: Listener): void {
  const { response, request } = listener
  const left = sentBytes(request.socket)
  const waits = response.writableLength > 0
  if (waits && listener.stuckAt === left) {
    response.destroy()
    return
  }
  listener.stuckAt = waits ? left : null
  if (listener.place.webhooks !== null && !mayRead(options, listener)) response.end()
  else if (!waits) response.write(':\n\n')
}
