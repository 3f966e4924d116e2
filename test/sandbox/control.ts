import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Fault, FAULT_KINDS, FAULT_PARAMETERS } from './faults/fault.ts'
import { missingIn } from './faults/parameters.ts'
import type { FaultTiming } from './faults/schedule.ts'
import { readBody } from './incoming.ts'
import { type NegotiatedAnswer, httpDate, jsonAnswer, refusal } from './http/negotiate.ts'
import { HOSTILE_KINDS } from './faults/hostile-zip.ts'
import type { Context } from './context.ts'
import {
  type DeliveryFault,
  type DeliveryTiming,
  DELIVERY_FAULTS,
  DELIVERY_PARAMETERS,
} from './service/events/delivery-faults.ts'
import type { Service } from './service/service.ts'

const PREFIX = '/-/sandbox/'

/** Whether a path belongs to the control interface, not to the service. */
export function isControl(path: string): boolean {
  return path.startsWith(PREFIX)
}

/**
 * Control over HTTP, for a sandbox started as a command: feed commands, faults, requests, state.
 * Control requests are neither logged nor hit by faults.
 */
export async function handleControl(
  context: Context,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  query: URLSearchParams,
): Promise<void> {
  const body = await readBody(request)
  const answer = control(context, request.method ?? 'GET', path.slice(PREFIX.length), query, body)
  response.writeHead(answer.status, { ...answer.headers, 'Content-Length': answer.length })
  response.end(Buffer.concat([...answer.body()]))
}

function control(
  context: Context,
  method: string,
  name: string,
  query: URLSearchParams,
  body: string,
): NegotiatedAnswer {
  const { feed, faults, requests, service } = context
  if (name === 'fault' && method === 'POST') return setFault(context, body)
  if (name === 'fault' && method === 'DELETE') {
    faults.clear()
    return jsonAnswer(200, { cleared: true })
  }
  if (name === 'requests' && method === 'GET') return jsonAnswer(200, requests.entries)
  if (name === 'requests' && method === 'DELETE') {
    requests.clear()
    return jsonAnswer(200, { cleared: true })
  }
  if (name === 'deliveries' && method === 'GET') return jsonAnswer(200, service?.service.deliveries.records ?? [])
  if (name === 'delivery-fault') return setDeliveryFault(service?.service, method, body)
  if (name === 'state' && method === 'GET') return jsonAnswer(200, state(context))
  const n = Number(query.get('n') ?? 1)
  if (!Number.isInteger(n) || n < 0) return refusal(400, 'n must be a whole number')
  const commands: Record<string, () => string[]> = {
    add: () => feed.add(n),
    change: () => feed.change(n),
    'change-silently': () => feed.changeSilently(n),
    withdraw: () => feed.withdraw(n),
    'lower-fixes': () => feed.lowerFixes(n),
    empty: () => feed.empty(n),
    remove: () => feed.remove(n),
    'move-backwards': () => feed.moveBackwards(n),
    'touch-feeds': () => feed.touchFeeds(),
    'freeze-archive': () => (feed.freezeArchive(), []),
    'thaw-archive': () => (feed.thawArchive(), []),
    'freeze-index': () => (feed.freezeIndex(), []),
    'thaw-index': () => (feed.thawIndex(), []),
    ...(service === undefined ? {} : serviceCommands(service.service, n)),
  }
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (command === undefined) return refusal(404, `no such control: ${name}`)
  if (method !== 'POST') return refusal(405, 'use POST')
  return jsonAnswer(200, { ids: command() })
}

/** Changes go through the things of a kind in the order in which they came, the longest unchanged first. */
function serviceCommands(service: Service, n: number): Record<string, () => string[]> {
  const times = (make: () => string): string[] => Array.from({ length: n }, make)
  const change = (kind: 'tags' | 'packages' | 'tickets'): string[] =>
    oldest(service, kind, n).map((id) => (service.change(kind, id), id))
  return {
    'add-tag': () => times(() => service.addTag()),
    'add-package': () => times(() => service.addPackage()),
    'add-ticket': () => times(() => service.addTicket()),
    'change-tag': () => change('tags'),
    'change-package': () => change('packages'),
    'change-ticket': () => change('tickets'),
  }
}

function oldest(service: Service, kind: 'tags' | 'packages' | 'tickets', n: number): string[] {
  const stamped = service.ids(kind).map((id) => ({ id, at: service.read(kind, id)['updated_at'] }))
  return stamped
    .sort((a, b) => (String(a.at) < String(b.at) ? -1 : 1))
    .slice(0, n)
    .map(({ id }) => id)
}

function state({ source, service }: Context): object {
  const { index, archive } = source.publisher
  const shown = (published: typeof index): object => {
    const { etag, lastModified, size } = published.current()
    return { etag, lastModified: httpDate(lastModified), size, frozen: published.frozen() }
  }
  const feeds = { records: source.count(), index: shown(index), archive: shown(archive) }
  if (service === undefined) return feeds
  const kinds = ['images', 'tags', 'packages', 'tickets', 'subscriptions', 'webhooks'] as const
  const counts = kinds.map((kind) => [kind, service.service.ids(kind).length])
  return { ...feeds, ...service.addresses, counts: Object.fromEntries(counts) as object }
}

/** `{"fault":{"kind":"early","ms":5000},"times":1}`; DELETE takes all of them back and lets hidden tags be found. */
function setDeliveryFault(service: Service | undefined, method: string, body: string): NegotiatedAnswer {
  if (service === undefined) return refusal(404, 'the sandbox has no service')
  const { faults, reveal } = service.deliveries
  if (method === 'DELETE') {
    faults.clear()
    reveal()
    return jsonAnswer(200, { cleared: true })
  }
  if (method !== 'POST') return refusal(405, 'use POST or DELETE')
  const asked = parseObject(body) as (DeliveryTiming & { fault?: DeliveryFault }) | null
  const kind = asked?.fault?.kind
  if (asked?.fault === undefined || kind === undefined || !DELIVERY_FAULTS.includes(kind))
    return refusal(400, `send JSON with "fault": {"kind": …}; known: ${DELIVERY_FAULTS.join(', ')}`)
  const missing = missingIn(DELIVERY_PARAMETERS, asked.fault)
  if (missing !== null) return refusal(400, missing)
  faults.set(asked.fault, asked)
  return jsonAnswer(200, { set: kind })
}

interface FaultRequest extends FaultTiming {
  path: string
  fault: Fault
}

/** `{"path":"/external/osv/*.json","fault":{"kind":"status","status":503},"times":2}`. */
function setFault({ faults }: Context, body: string): NegotiatedAnswer {
  const asked = parse(body)
  if (asked === null) return refusal(400, 'send JSON with "path" and "fault": {"kind": …}')
  if (!FAULT_KINDS.includes(asked.fault.kind)) {
    return refusal(400, `unknown fault; known: ${FAULT_KINDS.join(', ')}`)
  }
  const missing = missingIn(FAULT_PARAMETERS, asked.fault)
  if (missing !== null) return refusal(400, missing)
  if (asked.fault.kind === 'archive' && !HOSTILE_KINDS.includes(asked.fault.archive)) {
    return refusal(400, `unknown archive; known: ${HOSTILE_KINDS.join(', ')}`)
  }
  const { path, fault, ...timing } = asked
  faults.set(path, fault, timing)
  return jsonAnswer(200, { set: fault.kind })
}

function parse(body: string): FaultRequest | null {
  const value = parseObject(body) as Partial<FaultRequest> | null
  if (typeof value?.path !== 'string' || typeof value.fault?.kind !== 'string') return null
  return value as FaultRequest
}

function parseObject(body: string): object | null {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' ? value : null
  } catch {
    return null
  }
}
