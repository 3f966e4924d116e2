import { isObject } from '../json/objects.ts'
import { MirrorError } from '../core/errors.ts'

/** An object in the service's own form; its fields are not fixed. */
export type Item = Readonly<Record<string, unknown>>

/** A created object, and the secret in the response to its creation; null: none was found. */
export interface Made {
  readonly item: Item
  readonly secret: string | null
}

/** Plain names of fields that identify the kind of an object. */
const MARKS = {
  webhook: ['id', 'url', 'eventtypes', 'events', 'description'],
  delivery: ['status', 'httpstatus', 'eventid', 'errorreason', 'sentat', 'subscriptionid'],
  key: ['id', 'name', 'role', 'key'],
} as const
type Noun = keyof typeof MARKS

/** Maximum nesting of an object in a response (`{"data": {"webhook": {…}}}`). */
const MAX_WRAPS = 3

/**
 * Returns the object of a response, plain or wrapped (wire facts, /v3 answers): of all objects in it, the one with
 * most of the noun's fields; of equal ones the outermost. Without an id of its own it gets the one that lies around it, or
 * beside it in the response. Throws `upstream_shape` for a response that is not an object.
 */
export function itemIn(path: string, value: unknown, noun: Noun): Item {
  const [first, ...others] = objectsIn(value)
  if (first === undefined)
    throw new MirrorError('upstream_shape', `${path}: the answer is not a JSON object`)
  const marks = (item: Item): number =>
    MARKS[noun].filter((mark) => Object.keys(item).some((name) => isNamed(name, mark))).length
  const best = others.reduce((best, one) => (marks(one) > marks(best) ? one : best), first)
  if (noun === 'delivery' || itemIdOf(best) !== null) return best
  const id = idAround(value, best) ?? idBeside(value)
  return id === null ? best : { id, ...best }
}

/** Objects of a response that are about others: their ids are not the object's. */
const OTHERS =
  /^(organi[sz]ation|org|account|user|owner|tenant|team|member|creat|updat|request|trace)/

/** Ids of requests, which envelopes have. */
const REQUEST_ID = /^req(uest)?[-_]/i

function answerIdOf(item: Item): string | null {
  const id = itemIdOf(item)
  return id === null || REQUEST_ID.test(id) ? null : id
}

/** Returns the id of the nearest object around another one that has an id. */
function idAround(value: unknown, within: Item): string | null {
  if (!isObject(value) || value === within) return null
  const inner = Object.values(value).find((one) => objectsIn(one).includes(within))
  if (inner === undefined) return null
  return idAround(inner, within) ?? answerIdOf(value)
}

/** Returns the outermost id in a response, without those of others. */
function idBeside(value: unknown, depth = 0): string | null {
  if (!isObject(value)) return null
  const own = answerIdOf(value)
  if (own !== null || depth === MAX_WRAPS) return own
  const inner = Object.entries(value).filter(([name]) => !OTHERS.test(plain(name)))
  return inner.map(([, one]) => idBeside(one, depth + 1)).find((id) => id !== null) ?? null
}

const OWN_ID = /^((webhook|subscription|webhooksubscription|delivery|apikey|key)?id|uuid)$/

/** Returns whether a field has this name, with or without the noun before it (`webhook_id`). */
function isNamed(name: string, mark: string): boolean {
  const text = plain(name)
  return mark === 'id' ? OWN_ID.test(text) : text.endsWith(mark)
}

/** Returns the objects of a response, outermost first, without those in lists. */
function objectsIn(value: unknown, depth = 0): Item[] {
  if (!isObject(value)) return []
  const inner = depth < MAX_WRAPS ? Object.values(value) : []
  return [value, ...inner.flatMap((one) => objectsIn(one, depth + 1))]
}

/** Returns the id of an object as text; null when it has none. */
export function itemIdOf(item: Item): string | null {
  const names = Object.keys(item).filter((name) => isNamed(name, 'id'))
  const best = names.sort((a, b) => a.length - b.length)[0]
  const id = best === undefined ? null : item[best]
  return typeof id === 'string' || typeof id === 'number' ? String(id) : null
}

/** Returns a field's text, in any spelling of its name; null when there is none. */
export function textOf(item: Item, name: string): string | null {
  const found = Object.keys(item).find((one) => isNamed(one, name))
  const value = found === undefined ? null : item[found]
  return typeof value === 'string' ? value : null
}

/** Returns a field's list of texts; null when there is none. */
export function itemListOf(item: Item, name: string): string[] | null {
  const found = Object.keys(item).find((one) => isNamed(one, name))
  const value = found === undefined ? null : item[found]
  return Array.isArray(value) ? value.map(String) : null
}

/** Names of fields that contain a secret, the most certain first. */
const SECRET_NAMES: readonly (readonly [name: RegExp, leastLength: number])[] = [
  [/secret/, 1],
  [/(signing|hmac|webhook|verification|api|access|private)_?(key|token)$/, 1],
  [/^(key|token)$/, 1],
  [/key|token|sign|hmac|credential|password/, 16], // not signature_algorithm: hmac-sha256
]

/**
 * Finds the secret in the response to a creation, at any depth and under any name: first by its form, then by the
 * name of its field, then the only remaining unknown text. `sent` are the texts of the request. Null: none.
 */
export function secretIn(answer: unknown, sent: readonly string[]): string | null {
  const texts = objectsIn(answer).flatMap((item) =>
    Object.entries(item).flatMap(([name, value]) =>
      typeof value === 'string' && value !== '' && !sent.includes(value)
        ? [{ name: spelt(name), value }]
        : [],
    ),
  )
  const marked = texts.find(({ value }) => /^(v1a?,)?wh(sec|pk)_/.test(value))
  if (marked !== undefined) return marked.value
  for (const [pattern, length] of SECRET_NAMES) {
    const named = texts.find(({ name, value }) => pattern.test(name) && !/(^|_)id$/.test(name) && isOpaque(value, length)) // prettier-ignore
    if (named !== undefined) return named.value
  }
  const left = texts.filter(({ name, value }) => !/(^|_)id$/.test(name) && isOpaque(value, 20))
  return left.length === 1 ? (left[0]?.value ?? null) : null
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Returns whether a text is one word that is not an address, an id or a date. */
function isOpaque(value: string, length: number): boolean {
  return (
    value.length >= length &&
    !/\s|:\/\//.test(value) &&
    !UUID.test(value) &&
    !/^\d{4}-\d\d-\d\d/.test(value)
  )
}

/** State of a delivery as the service reports it (service API, section 3); null: unknown. */
export type DeliveryState = 'pending' | 'delivered' | 'failed'

/**
 * Returns the state of a delivery in a response: `failed` when any status in it is a failure, because an envelope may
 * report success.
 */
export function deliveryStateIn(answer: unknown): DeliveryState | null {
  const states = objectsIn(answer).flatMap((item) =>
    Object.entries(item)
      .filter(([name]) => /status$|^state$/.test(plain(name)))
      .map(([, value]) => (typeof value === 'string' ? value.trim().toLowerCase() : '')),
  )
  if (states.some((word) => ['failed', 'failure', 'error', 'undelivered'].includes(word)))
    return 'failed'
  return (['delivered', 'pending'] as const).find((state) => states.includes(state)) ?? null
}

/** `deliveryStatus` as `deliverystatus`. */
function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '')
}

/** `signingKey` as `signing_key`. */
function spelt(name: string): string {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z\d]+/g, '_')
}
