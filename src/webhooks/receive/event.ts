import { type Fields, isObject } from '../../base/json/objects.ts'
import { withVendor } from '../../base/domain/event-types.ts'
import { matchesPattern } from '../../base/domain/patterns.ts'
import type { EventTarget } from '../../base/domain/image-reference.ts'
import { imagesIn } from './event-images.ts'

/** The content of a verified body in any form; a body that is not understood still causes a refresh. */
interface ParsedBody {
  /** The type of the (first) event; null: it states none. */
  readonly type: string | null
  /** What its events name; null: nothing that can be used. */
  readonly target: EventTarget | null
  /** Whether some event of it asks for a refresh: only a stated type that no pattern fits does not. */
  readonly wanted: boolean
}

/** Reports whether a type causes a refresh. `isCloudEvent`: the event claims to be one, so its type is the contract's. */
export type TypeFilter = (type: string, isCloudEvent?: boolean) => boolean

const TYPE = /^[\x21-\x7e]{1,256}$/
/** Where events state their type; only `type` is the contract's (CloudEvents), so any value of the others causes a refresh. */
const TYPE_FIELDS = ['type', 'event_type', 'eventType', 'event_name', 'eventName', 'event', 'topic']
/** Events of one body that are looked at; a refresh finds what changed besides. */
const MAX_EVENTS = 100

/**
 * Reads a verified body: an event in JSON of any envelope, or several, in a list or one a line (wire facts, webhook
 * deliveries). What cannot be read as one has no type and no target, and is as good a reason to look.
 */
export function parseBody(body: Buffer, isWanted: TypeFilter): ParsedBody {
  const all = eventsIn(parse(body))
  const events = all.slice(0, MAX_EVENTS)
  const wanted = events.filter((event) => isWantedEvent(event, isWanted))
  const isRead = events.length > 0 && events.length === all.length
  const read = isRead && wanted.length === 0 ? events : wanted
  const [first] = read
  const targets = read.flatMap(imagesIn).slice(0, MAX_EVENTS)
  return {
    type: first === undefined ? null : typeOf(first),
    target: targetOf(targets),
    wanted: !isRead || wanted.length > 0,
  }
}

/** One target for all: the first, with the others beside it. */
function targetOf(targets: readonly EventTarget[]): EventTarget | null {
  const distinct = [...new Map(targets.map((one) => [JSON.stringify(one), one])).values()]
  const [first, ...others] = distinct
  if (first === undefined) return null
  return others.length === 0 ? first : { ...first, others }
}

function parse(body: Buffer): unknown {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body)
  } catch {
    return null
  }
  const whole = parseJson(text)
  if (whole !== undefined) return whole
  const lines = text.split('\n', MAX_EVENTS + 1).map((line) => parseJson(line))
  return lines.filter((line) => line !== undefined)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The events of a body: the elements of a list, those of lists in a wrapper without a type, or the object itself. */
function eventsIn(value: unknown): Fields[] {
  if (Array.isArray(value)) return (value as unknown[]).filter(isObject)
  if (!isObject(value)) return []
  if (typeOf(value) !== null || 'specversion' in value) return [value]
  const listed = Object.values(value).flatMap((one) => (Array.isArray(one) ? (one as unknown[]) : []))
  const events = listed.filter(isObject).filter((one) => typeOf(one) !== null)
  return events.length > 0 ? events : [value]
}

function typeOf(event: Fields): string | null {
  const stated = TYPE_FIELDS.map((name) => event[name])
  return stated.find((one): one is string => typeof one === 'string' && TYPE.test(one)) ?? null
}

function isWantedEvent(event: Fields, isWanted: TypeFilter): boolean {
  const { type } = event
  if (typeof type !== 'string' || !TYPE.test(type)) return true
  return isWanted(type, typeof event['specversion'] === 'string')
}

/**
 * Makes the filter of types: `*` in a pattern is any characters, `{vendor}` the vendor's word. It judges the types of
 * CloudEvents, and those that begin as a pattern does (`io.…`); of any other vocabulary it knows nothing.
 */
export function createTypeFilter(patterns: readonly string[], vendor: string): TypeFilter {
  const own = patterns.map((pattern) => withVendor(pattern, vendor))
  const heads = new Set(own.map(headOf))
  return (type, isCloudEvent = true) =>
    own.some((pattern) => matchesPattern(pattern, type)) || !(isCloudEvent || heads.has(headOf(type)))
}

function headOf(type: string): string {
  return type.split('.', 1)[0] ?? ''
}
