import { isObject, parseExactly } from '../../../base/json/objects.ts'
import { sha256Of } from '../../../base/digest.ts'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import { readText } from '../../../base/json/field-names.ts'
import { fieldsOfItem } from '../../../base/json/forms/item-fields.ts'
import type { Skipped } from '../../../base/json/envelope.ts'
import type { CatalogResource } from '../../../base/domain/resources.ts'
import type { StagedEntry } from '../../../store/catalog/list-staging.ts'
import type { WalkedPage } from '../../../upstream/lists/walk.ts'
import type { FacetReader } from './facets.ts'
import { cutMembers } from '../../../base/json/cut.ts'

/** Control characters; an id with one can neither be logged in one line nor requested as a path. */
const CONTROL = /\p{Cc}/u

/** Maximum size of an item, bytes: a page of a thousand items is in memory. */
const MAX_ITEM_BYTES = 1_000_000

/** Entries of one page. */
interface PageEntries {
  entries: StagedEntry[]
  /** Ids of its items that earlier pages have. */
  repeated: ReadonlySet<string>
  /** Whether earlier pages have the ids of all its items. */
  isRepeat: boolean
  /** The skipped items; null when there are none. */
  refused: Skipped | null
}

/**
 * Returns the items of a page as they are stored; `seen` are the digests of the items of earlier pages, by key. Throws
 * `upstream_shape` when no item of the first page is valid: the answer is then not such a list.
 */
export function entriesOf(
  resource: CatalogResource,
  facets: FacetReader,
  { items, number }: Pick<WalkedPage, 'items' | 'number'>,
  path: string,
  seen: ReadonlyMap<string, string>,
): PageEntries {
  const reasons: string[] = []
  const keyed = keyedOnce(resource, seen)
  const ids = new Set<string>()
  const read = items.flatMap((item, at) => {
    try {
      const one = readItem(resource, item)
      ids.add(one.id)
      return [keyed(one)]
    } catch (error) {
      if (!(error instanceof MirrorError)) throw error
      reasons.push(`item ${at + 1} of page ${number + 1}: ${error.message}`)
      return []
    }
  })
  for (const { value } of read) facets.learn(value) // learn all before reading the first
  const entries = read.map(({ value, ...entry }) => ({ ...entry, facets: facets.read(value) }))
  const repeated = new Set([...ids].filter((id) => seen.has(id)))
  const found = { entries, repeated, isRepeat: repeated.size > 0 && repeated.size === ids.size }
  const [why] = reasons
  if (why === undefined) return { ...found, refused: null }
  if (read.length === 0 && number === 0) throw new MirrorError('upstream_shape', `${path}: ${why}`)
  return { ...found, refused: { page: number, count: reasons.length, why: why.slice(0, 300) } }
}

/** An item before its facets are read. */
type ReadItem = Omit<StagedEntry, 'facets'> & { value: Record<string, unknown> }

/**
 * Returns what gives the items of a page their keys: different ones may have one id, as the patches of a ticket. Where an id leads to
 * no path, the later ones are stored by their content. Throws `upstream_shape` where it does: only one of them can be stored.
 */
function keyedOnce(
  { item, artifacts }: CatalogResource,
  seen: ReadonlyMap<string, string>,
): (read: ReadItem) => ReadItem {
  const known = new Map<string, string>()
  return (read) => {
    const digest = digestText(read.sha)
    const before = seen.get(read.id) ?? known.get(read.id) ?? digest
    known.set(read.id, before)
    if (before === digest) return read
    if (item === null && artifacts.length === 0) return { ...read, id: keyOf(read.sha) }
    const where = seen.has(read.id) ? 'an earlier page' : 'the page'
    throw new MirrorError('upstream_shape', `another item of ${where} has its id, ${read.id.slice(0, 80)}`)
  }
}

/** Returns a digest as a text, which takes less memory than a buffer: a walk keeps one of each item. */
export function digestText(sha: Buffer): string {
  return sha.toString('latin1')
}

/** Returns the key of an item without an id of its own. */
function keyOf(sha: Buffer): string {
  return `-${sha.toString('hex')}`
}

/** Returns an item as upstream's bytes, without secrets. */
function readItem(resource: CatalogResource, item: Buffer): ReadItem {
  if (item.length > MAX_ITEM_BYTES) {
    const message = `it has ${item.length} bytes, more than ${MAX_ITEM_BYTES}`
    throw new MirrorError('upstream_too_large', message)
  }
  const body = resource.secrets ? withoutSecrets(item, resource.name) : item
  const value = parseItem(body)
  const sha = sha256Of(body).subarray(0, 16)
  const id = entryIdOf(resource, value)
  if (id !== null && CONTROL.test(id))
    throw new MirrorError('upstream_shape', 'its id has a line break or another control character')
  return {
    id: id ?? keyOf(sha),
    body: Buffer.from(body), // a copy, so that the page's buffer can be freed
    sha,
    value,
  }
}

function parseItem(item: Buffer): Record<string, unknown> {
  try {
    const value: unknown = parseExactly(item.toString('utf8'))
    if (isObject(value)) return value
  } catch (error) {
    throw new MirrorError('upstream_shape', `it is not JSON (${messageOf(error)})`)
  }
  throw new MirrorError('upstream_shape', 'it is not an object')
}

/** Returns the identifier of an item given as JSON; null when it has none, or is not an object. */
export function idOfItem(resource: CatalogResource, item: Buffer): string | null {
  try {
    return entryIdOf(resource, parseItem(item))
  } catch {
    return null // the fault is reported where the item would be stored
  }
}

/** Returns an item's own identifier; null when it has none. */
export function entryIdOf({ ids, name }: CatalogResource, value: Record<string, unknown>): string | null {
  return readText(fieldsOfItem(value, name), ids)?.toWellFormed() ?? null // as the database stores it
}

/** Member names of key material, with any prefix (`webhook_secret`). */
const SECRET = named(
  'secrets?|tokens?|passwords?|passwd|pwd|pass|passcode|passphrase|credentials?|creds?|auth|oauth|authentication|' +
    'authorization|bearer|cookies?|jwt|otp|pat|hmac',
)
/** Member names of secret keys; other names with `key` or `hash` are not secret. */
const KEY = named(
  '(api|private|signing|secret|access|encryption|ssh|client|webhook|master|shared|raw|full|plain|plain_?text|hashed)_?keys?',
)
const BARE = named('key|hash', '')
/** Values that are key material under any name: PEM, webhook secrets, JWTs, values of an Authorization header. */
const MATERIAL =
  /^"(?:\\[nrt]|\s)*(-----BEGIN [A-Z ]*PRIVATE KEY|(v1a?,\s*)?wh(sec|sk)_|eyJ[\w-]{12}|(Basic|Bearer)\s+[\w+/=.~-]{16,}")/i

/**
 * Returns a pattern of names that end with `what`, optionally followed by a format (`secret_value`, `privateKeyPem`).
 * `before` is the pattern of what may precede it.
 */
function named(what: string, before = '.*_'): RegExp {
  const form =
    '_?(value|text|plain|plaintext|plain_text|raw|data|material|header|string|pem|der|base64|b64|hex|hash|digest)'
  return new RegExp(`^(${before})?(${what})(${form})?$`)
}

const STRING = 0x22
const LIST = 0x5b
const OBJECT = 0x7b

/**
 * Removes key material from the JSON of an account, a key, a subscription or a user; call it before anything is
 * stored. Throws `upstream_shape` for JSON that is nested too deep to be checked.
 */
export function withoutSecrets(json: Buffer, path: string): Buffer {
  try {
    return cutMembers(json, isSecret)
  } catch (error) {
    throw new MirrorError('upstream_shape', `${path}: ${messageOf(error)}`, { cause: error })
  }
}

/**
 * Returns whether a member is secret, by its name and type: only strings and containers of them, not numbers or
 * booleans (`tokens: 5`, `secret: true`).
 */
function isSecret(name: string, value: Buffer): boolean {
  const plain = name
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z\d]+/g, '_')
  const first = value[0]
  if (first === STRING && MATERIAL.test(value.toString('latin1', 0, 64))) return true
  if (SECRET.test(plain)) return first === STRING || first === LIST || first === OBJECT
  return (KEY.test(plain) || BARE.test(plain)) && (first === STRING || first === LIST)
}
