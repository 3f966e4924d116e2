import { MirrorError } from '../../base/errors.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import { openThreadReads, type ShortReads } from '../../store/reads.ts'
import { createLinks } from '../access/signed-links.ts'
import { createReadRoutes } from '../catalog/routes.ts'
import { answerChanges } from '../followers/changes.ts'
import { type SnapshotOrigin, readOrigin } from '../http/origin.ts'
import { PRIVATE_CACHING, createHeads } from '../http/response.ts'
import { notReady } from '../snapshot/not-ready.ts'
import { type Origins, SOURCE_NAMES } from '../snapshot/served.ts'
import { type StaleRule, createStaleRule, refuseStale } from '../snapshot/stale.ts'
import type {
  DifferencesRequest,
  PinRequest,
  ReadCall,
  ReadReply,
  ReadRequest,
  ReadingData,
  ReadingRequest,
} from './request.ts'

/** Answers requests for lists and items. */
interface Reader {
  /** Opens the store at the first request. Never throws: an error is part of the reply. */
  readonly read: (request: ReadingRequest) => ReadReply
  readonly close: () => void
}

/** Creates what the reading thread runs. */
export function createReader(data: ReadingData): Reader {
  let opened: Opened | null = null
  const open = (): Opened => {
    const shortReads = openThreadReads(data.config.data.dir)
    return { shortReads, answer: createReading(data, shortReads) }
  }
  return {
    read(request) {
      opened ??= open()
      if ('pin' in request) return pinned(opened.shortReads, request)
      if ('differences' in request) return differences(opened.shortReads, request)
      return opened.answer(request)
    },
    close: () => opened?.shortReads.close(),
  }
}

interface Opened {
  readonly shortReads: ShortReads
  readonly answer: (request: ReadRequest) => ReadReply
}

function pinned(shortReads: ShortReads, { pin }: PinRequest): ReadReply {
  shortReads.repin(pin)
  return { status: 204, headers: [], body: null }
}

function differences(
  shortReads: ShortReads,
  { differences: query, now, latest, served, denied }: DifferencesRequest,
): ReadReply {
  const parts = { reads: shortReads.reads, now, latest, judge: () => denied }
  const answer = shortReads.during(() => answerChanges(parts, new URLSearchParams(query)), served)
  if ('status' in answer) return { problem: answer }
  return { status: 200, headers: [], body: new TextEncoder().encode(JSON.stringify(answer)) }
}

function createOrigins({ reads, commits }: ShortReads, markStale: StaleRule): Origins {
  const known = new Map<SourceName, SnapshotOrigin | null>()
  let seen = -1
  const knownOrigin = (source: SourceName): SnapshotOrigin | null => {
    if (commits() !== seen) known.clear()
    seen = commits()
    const origin = known.get(source) ?? readOrigin(reads, source)
    known.set(source, origin)
    return origin && markStale(source, origin)
  }
  return {
    reads,
    knownOrigin,
    originOf(source) {
      const origin = knownOrigin(source)
      if (origin === null) throw notReady(reads, source, SOURCE_NAMES[source])
      return refuseStale(origin)
    },
  }
}

/** Creates the function that answers requests one after the other, each from one snapshot of the store. */
export function createReading({ config }: ReadingData, shortReads: ShortReads) {
  const clock = { now: 0, linkSecret: null as Uint8Array | null }
  const own = shortReads.reads.secrets.readSecret('links')
  const links = createLinks(
    () => [clock.linkSecret ?? own],
    () => clock.now,
  )
  const served = createOrigins(
    shortReads,
    createStaleRule(config, () => clock.now),
  )
  const { orderings } = shortReads
  const heads = createHeads(PRIVATE_CACHING)
  const routes = createReadRoutes(config, { served, links, heads, orderings })
  const byPath = new Map(routes.map((route) => [route.path, route]))
  return (request: ReadRequest): ReadReply => {
    const { path, method, params, requestHeaders, baseUrl } = request
    clock.now = request.now
    clock.linkSecret = request.linkSecret
    const route = byPath.get(path)
    if (route === undefined) throw new MirrorError('internal', `no route ${path} is read`)
    const sent: { status: number; headers: string[]; body: Uint8Array | null } = {
      status: 0,
      headers: [],
      body: null,
    }
    const outcome: { other: ReadReply | null } = { other: null }
    const response: ReadCall['response'] = {
      writeHead(status, headers) {
        sent.status = status
        sent.headers = flatOf(headers)
        return response
      },
      end(body) {
        sent.body = body ?? null
      },
    }
    const call: ReadCall = {
      request: { method },
      response,
      requestHeaders,
      params,
      query: new URLSearchParams(request.query),
      baseUrl: () => baseUrl,
      refuse: (problem) => (outcome.other = { problem }),
      sendDocument: (document, asOf) => (outcome.other = { document, asOf }),
    }
    shortReads.during(() => route.answer(call), request.served)
    return outcome.other ?? sent
  }
}

function flatOf(headers: Parameters<ReadCall['response']['writeHead']>[1]): string[] {
  if (Array.isArray(headers)) return headers
  return Object.entries(headers).flatMap(([name, value]) => [name, String(value)])
}
