import { isObject } from '../../base/json/objects.ts'
import { MirrorError } from '../../base/errors.ts'
import { bareName } from '../../base/json/field-names.ts'

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
export function itemIn(path: string, answer: unknown, noun: Noun): Item {
  const value = onlyOf('data', answer)
  const [first, ...others] = objectsIn(value)
  if (first === undefined) throw new MirrorError('upstream_shape', `${path}: the answer is not a JSON object`)
  const marks = (item: Item): number => marksOf(item, noun)
  const best = others.reduce((best, one) => (marks(one) > marks(best) ? one : best), first)
  if (noun === 'delivery' || itemIdOf(best) !== null) return best
  const id = idAround(value, best) ?? idBeside(value) ?? idInLinks(value, noun)
  return id === null ? best : { id, ...best }
}

/** Returns how many fields of a noun an object has; an id that says whose it is counts more, one of a request not at all. */
function marksOf(item: Item, noun: Noun): number {
  const has = (mark: string): boolean => Object.keys(item).some((name) => isNamed(name, mark))
  const others = MARKS[noun].filter((mark) => mark !== 'id' && has(mark)).length
  const isOwn = (MARKS[noun] as readonly string[]).includes('id') && answerIdOf(item) !== null
  const isNoun = isOwn && Object.keys(item).some((name) => NOUN_ID.test(bareName(name)))
  return others + (isOwn ? 1 : 0) + (isNoun ? 0.5 : 0)
}

/** Returns the id at the end of the address of an object itself (`{"links": {"self": "…/webhooks/6"}}`); null: there is none. */
function idInLinks(value: unknown, noun: Noun): string | null {
  const addresses = objectsIn(value).flatMap((item) =>
    Object.entries(item).flatMap(([name, inner]) => {
      if (!/^self(link|url|uri|href)?$/.test(bareName(name))) return []
      return isObject(inner) ? Object.values(inner) : [inner]
    }),
  )
  const form = noun === 'key' ? OF_KEYS : OF_WEBHOOKS
  const found = addresses.map((one) => (typeof one === 'string' ? form.exec(one)?.[1] : undefined))
  return found.find((id) => id !== undefined) ?? null
}

const OF_WEBHOOKS = /(?:webhook|subscription)[\w-]*\/([\w.~-]{1,200})\/?(?:[?#].*)?$/i
const OF_KEYS = /key[\w-]*\/([\w.~-]{1,200})\/?(?:[?#].*)?$/i

/** Objects of a response that are about others: their ids are not the object's. */
const OTHERS = /^(organi[sz]ation|org|account|user|owner|tenant|team|member|creat|updat|request|trace)/

/** Ids of requests, which envelopes have. */
const REQUEST_ID = /^req(uest)?[-_]/i

function answerIdOf(item: Item): string | null {
  const id = itemIdOf(item)
  return id === null || REQUEST_ID.test(id) ? null : id
}

/** Returns the id of the nearest object around another one that has an id. */
function idAround(value: unknown, within: Item): string | null {
  if (!isObject(value) || value === within) return null
  const all = Object.entries(value).map(([name, one]) => onlyOf(name, one))
  const inner = all.find((one) => objectsIn(one).includes(within))
  if (inner === undefined) return null
  return idAround(inner, within) ?? answerIdOf(value)
}

/** Returns the outermost id in a response, without those of others. */
function idBeside(value: unknown, depth = 0): string | null {
  if (!isObject(value)) return null
  const own = answerIdOf(value)
  if (own !== null || depth === MAX_WRAPS) return own
  const inner = Object.entries(value).filter(([name]) => !OTHERS.test(bareName(name)))
  return inner.map(([name, one]) => idBeside(onlyOf(name, one), depth + 1)).find((id) => id !== null) ?? null
}

const OWN_ID = /^((webhook|subscription|webhooksubscription|delivery|apikey|key)?id|uuid)$/
/** Names of an id that may be that of a user, which count where there is no other. */
const LAST_ID = /^(webhook|subscription|webhooksubscription|key)?(uid|uuid|guid)$/
/** Names of an id that say whose it is. */
const NOUN_ID = /^(webhook|subscription|webhooksubscription|apikey|key)(id|uid|uuid|guid)$/

/** Returns whether a field has this name, with or without the noun before it (`webhook_id`). */
function isNamed(name: string, mark: string): boolean {
  const text = bareName(name)
  return mark === 'id' ? OWN_ID.test(text) || LAST_ID.test(text) : text.endsWith(mark)
}

/** Members of an envelope that may have the only object in a list (`{"data": [{…}]}`). */
const OF_ONE = /^(data|results?|items?|records?|response|content|webhooks?|(webhook)?subscriptions?|(api)?keys?)$/

/** Returns the objects of a response, outermost first, without those in lists, but with the only one of an envelope. */
function objectsIn(value: unknown, depth = 0): Item[] {
  if (!isObject(value)) return []
  const inner = depth < MAX_WRAPS ? Object.entries(value) : []
  return [value, ...inner.flatMap(([name, one]) => objectsIn(onlyOf(name, one), depth + 1))]
}

function onlyOf(name: string, value: unknown): unknown {
  const isOne = Array.isArray(value) && value.length === 1 && OF_ONE.test(bareName(name))
  return isOne ? (value as unknown[])[0] : value
}

/** Returns the id of an object as text, that of a request only where it is the only one; null when it has none. */
export function itemIdOf(item: Item): string | null {
  const rank = (name: string): number => name.length + (OWN_ID.test(bareName(name)) ? 0 : 100)
  const ids = Object.keys(item)
    .filter((name) => isNamed(name, 'id'))
    .sort((a, b) => rank(a) - rank(b))
    .map((name) => item[name])
    .filter((id) => typeof id === 'string' || typeof id === 'number')
    .map(String)
  return ids.find((id) => !REQUEST_ID.test(id)) ?? ids[0] ?? null
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
  const texts = objectsIn(onlyOf('data', answer)).flatMap((item) =>
    Object.entries(item).flatMap(([name, value]) =>
      typeof value === 'string' && value !== '' && !sent.includes(value) ? [{ name: spelt(name), value }] : [],
    ),
  )
  const marked = texts.find(({ value }) => /^(v1a?,)?wh(sec|pk)_/.test(value))
  if (marked !== undefined) return marked.value
  for (const [pattern, length] of SECRET_NAMES) {
    const named = texts.find(
      ({ name, value }) => pattern.test(name) && !/(^|_)id$/.test(name) && isOpaque(value, length),
    )
    if (named !== undefined) return named.value
  }
  const left = texts.filter(({ name, value }) => !/(^|_)id$/.test(name) && isOpaque(value, 20))
  return left.length === 1 ? (left[0]?.value ?? null) : null
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Returns whether a text is one word that is not an address, an id or a date. */
function isOpaque(value: string, length: number): boolean {
  return value.length >= length && !/\s|:\/\//.test(value) && !UUID.test(value) && !/^\d{4}-\d\d-\d\d/.test(value)
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
      .filter(([name]) => /status$|^state$/.test(bareName(name)))
      .map(([, value]) => (typeof value === 'string' ? value.trim().toLowerCase() : '')),
  )
  if (states.some((word) => ['failed', 'failure', 'error', 'undelivered'].includes(word))) return 'failed'
  return (['delivered', 'pending'] as const).find((state) => states.includes(state)) ?? null
}

/** `signingKey` as `signing_key`. */
function spelt(name: string): string {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z\d]+/g, '_')
}
