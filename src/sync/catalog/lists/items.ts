import { createHash } from 'node:crypto'
import { MirrorError, messageOf } from '../../../core/errors.ts'
import { readText } from '../../../json/field-names.ts'
import type { Skipped } from '../../../json/envelope.ts'
import type { CatalogResource } from '../../../domain/resources.ts'
import type { StagedEntry } from '../../../store/catalog/list-staging.ts'
import type { WalkedPage } from '../../../upstream/lists/walk.ts'
import type { FacetReader } from './facets.ts'
import { cutMembers } from '../../../json/cut.ts'

/** What no id has that can be told in a line, or asked for as a path. */
const CONTROL = /\p{Cc}/u

/** A thousand items make a page, and a page is in memory. */
const MAX_ITEM_BYTES = 1_000_000

/** What a page of a list holds. */
interface Taken {
  entries: StagedEntry[]
  /** The items that could not be taken; null when all could. */
  refused: Skipped | null
}

/** The items of a page as they are kept. Throws `upstream_shape` when none of them can be: it is no such list. */
export function entriesOf(
  resource: CatalogResource,
  facets: FacetReader,
  { items, number }: Pick<WalkedPage, 'items' | 'number'>,
  path: string,
): Taken {
  const reasons: string[] = []
  const read = items.flatMap((item, at) => {
    try {
      return [readItem(resource, item)]
    } catch (error) {
      if (!(error instanceof MirrorError)) throw error
      reasons.push(`item ${at + 1} of page ${number + 1}: ${error.message}`)
      return []
    }
  })
  for (const { value } of read) facets.learn(value) // all of them before the first is read
  const entries = read.map(({ value, ...entry }) => ({ ...entry, facets: facets.read(value) }))
  const [why] = reasons
  if (why === undefined) return { entries, refused: null }
  if (read.length === 0 && number === 0) throw new MirrorError('upstream_shape', `${path}: ${why}`)
  return { entries, refused: { page: number, count: reasons.length, why: why.slice(0, 300) } }
}

/** An item as upstream's bytes of it, without secrets. */
function readItem(
  resource: CatalogResource,
  item: Buffer,
): Omit<StagedEntry, 'facets'> & { value: Record<string, unknown> } {
  if (item.length > MAX_ITEM_BYTES) {
    const message = `it has ${item.length} bytes, more than ${MAX_ITEM_BYTES}`
    throw new MirrorError('upstream_too_large', message)
  }
  const body = resource.secrets ? withoutSecrets(item, resource.name) : item
  const value = parseItem(body)
  const sha = createHash('sha256').update(body).digest().subarray(0, 16)
  const id = entryIdOf(resource, value)
  if (id !== null && CONTROL.test(id))
    throw new MirrorError('upstream_shape', 'its id has a line break or another control character')
  return {
    id: id ?? `-${sha.toString('hex')}`,
    body: Buffer.from(body), // the item alone, not the page that it is a part of
    sha,
    value,
  }
}

function parseItem(item: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(item.toString('utf8'))
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>
  } catch (error) {
    throw new MirrorError('upstream_shape', `it is not JSON (${messageOf(error)})`)
  }
  throw new MirrorError('upstream_shape', 'it is no object')
}

/** The identifier of an item given as JSON; null when it has none, or is no object. */
export function idOfItem(resource: CatalogResource, item: Buffer): string | null {
  try {
    return entryIdOf(resource, parseItem(item))
  } catch {
    return null // what is wrong with it is reported where it would be stored
  }
}

/** An item's own identifier; null when it has none. */
export function entryIdOf({ ids }: CatalogResource, value: Record<string, unknown>): string | null {
  return readText(value, ids)?.toWellFormed() ?? null // as the database keeps it
}

/** What a member is called that holds key material, whatever stands before it (`webhook_secret`). */
const SECRET = named(
  'secrets?|tokens?|passwords?|passwd|pwd|passcode|passphrase|credentials?|auth|authorization|bearer|jwt|otp',
)
/** Keys and hashes are many things; these are secret ones. */
const KEY = named('(api|private|signing|secret|access|encryption|ssh)_?keys?')
const BARE = /^(key|hash)$/
/** What is key material whatever it is called. */
const MATERIAL = /^"(-----BEGIN [A-Z ]*PRIVATE KEY|(v1a?,)?wh(sec|sk)_)/

/** A name that ends like this, or in the form that the thing is written down in (`secret_value`, `privateKeyPem`). */
function named(what: string): RegExp {
  const form = '_?(value|text|plain|plaintext|raw|data|string|pem|der|base64|b64|hex|hash)'
  return new RegExp(`(^|_)(${what})(${form})?$`)
}

const STRING = 0x22
const LIST = 0x5b
const OBJECT = 0x7b

/**
 * The JSON of an account, a key, a subscription or a user without its key material; that is cut out before anything is
 * stored. Throws `upstream_shape` for JSON that is nested too deep to be looked through.
 */
export function withoutSecrets(json: Buffer, path: string): Buffer {
  try {
    return cutMembers(json, isSecret)
  } catch (error) {
    throw new MirrorError('upstream_shape', `${path}: ${messageOf(error)}`, { cause: error })
  }
}

/** By its name, when it holds a text, or texts; numbers, true and false are no secrets (`tokens: 5`, `secret: true`). */
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
