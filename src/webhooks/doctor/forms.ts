import { createHmac } from 'node:crypto'
import { publicKeyBytes } from '../../config/kinds/keys.ts'
import { createEd25519Check } from '../receive/signature.ts'

/** A key that may have been derived from a secret, and its description. */
export interface KeyForm {
  readonly name: string
  /** One of the forms that the mirror takes. */
  readonly usual: boolean
  /** Whether a signature is that of the content under this key. */
  readonly fits: (content: Buffer, signature: Written) => boolean
}

/**
 * The keys that senders derive from a secret, the right ones first, each key once. A public key has one:
 * its text is never tried as an HMAC secret, for everybody may know it.
 */
export function keyForms(secret: string): KeyForm[] {
  const publicKey = publicKeyBytes(secret)
  if (publicKey === null)
    return hmacKeys(secret).map(({ name, key, usual }) => ({
      name,
      usual,
      fits: (content, { version, bytes }) =>
        version === 'v1' && createHmac('sha256', key).update(content).digest().equals(bytes),
    }))
  const check = createEd25519Check(publicKey)
  const fits: KeyForm['fits'] = (content, { version, bytes }) => version === 'v1a' && check(content, bytes)
  return [{ name: 'the Ed25519 public key', usual: true, fits }]
}

interface HmacKey {
  readonly name: string
  readonly key: Buffer
  readonly usual: boolean
}

function hmacKeys(secret: string): HmacKey[] {
  const part = secret.replace(/^whsec_/, '')
  const utf8 = (text: string): Buffer => Buffer.from(text, 'utf8')
  const forms: HmacKey[] = [
    { name: 'the decoded part after whsec_', key: Buffer.from(part, 'base64'), usual: true },
    { name: 'the whole secret as text', key: utf8(secret), usual: true },
    { name: 'the part after whsec_ as text', key: utf8(part), usual: false },
  ]
  const seen = new Set<string>()
  return forms.filter(({ key }) => {
    const known = seen.has(key.toString('hex'))
    seen.add(key.toString('hex'))
    return key.length > 0 && !known
  })
}

/** How a signature is written. */
export interface Written {
  /** `v1`: 32 bytes of an HMAC; `v1a`: 64 bytes of an Ed25519 signature. */
  readonly version: 'v1' | 'v1a'
  readonly encoding: string
  readonly bytes: Buffer
  readonly usual: boolean
}

/** Returns the bytes of a signature, whatever its encoding; null: it is none. */
export function readSignature(text: string): Written | null {
  if (/^[\da-f]{64}$/i.test(text)) {
    const usual = text === text.toLowerCase()
    const encoding = usual ? 'lowercase hex' : 'uppercase hex'
    return { version: 'v1', encoding, bytes: Buffer.from(text, 'hex'), usual }
  }
  const bytes = Buffer.from(text, 'base64')
  if (![32, 64].includes(bytes.length) || !/^[\w+/-]+=*$/.test(text)) return null
  const version = bytes.length === 64 ? 'v1a' : 'v1'
  if (bytes.toString('base64') === text) return { version, encoding: 'base64', bytes, usual: true }
  const encoding = 'base64 in another form (URL-safe letters, padding, spare bits)'
  return { version, encoding, bytes, usual: false }
}

/** A body as it may have been when it was signed. */
interface BodyForm {
  readonly name: string
  readonly body: Buffer
}

/** Name of the body that was not changed. */
export const AS_CAPTURED = 'as captured'

/** The body as captured first, then in the forms in which a proxy, a framework or an editor may have changed it. */
export function bodyForms(body: Buffer): BodyForm[] {
  const text = body.toString('utf8')
  const forms: [string, string][] = [
    ['without the last line end', text.replace(/\r?\n$/, '')],
    ['with a line end after it', `${text}\n`],
    ['with LF in place of CRLF', text.replace(/\r\n/g, '\n')],
    ['with CRLF in place of LF', text.replace(/\r?\n/g, '\r\n')],
    ...reserialised(text),
  ]
  const seen = new Set([body.toString('latin1')])
  const changed = forms.flatMap(([name, form]) => {
    const bytes = Buffer.from(form)
    const known = seen.has(bytes.toString('latin1'))
    seen.add(bytes.toString('latin1'))
    return known ? [] : [{ name, body: bytes }]
  })
  return [{ name: AS_CAPTURED, body }, ...changed]
}

/** Returns the JSON serialized again, as the common languages do it. */
function reserialised(text: string): [string, string][] {
  let value: unknown
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch {
    return []
  }
  const compact = JSON.stringify(value)
  const spaced = JSON.stringify(value, null, 1)
    .replace(/([[{])\n */g, '$1')
    .replace(/\n *([\]}])/g, '$1')
    .replace(/,\n */g, ', ')
  const forms: [string, string][] = [
    ['compact', compact],
    ['with spaces after colons and commas', spaced],
    ['indented by two', JSON.stringify(value, null, 2)],
    ['indented by four', JSON.stringify(value, null, 4)],
    ['indented by tabs', JSON.stringify(value, null, '\t')],
    ['compact with its keys sorted', JSON.stringify(sorted(value))],
  ]
  const named = forms.flatMap(([name, form]): [string, string][] => [
    [`serialized again, ${name}`, form],
    [`serialized again, ${name}, everything outside ASCII escaped`, escaped(form)],
    [`serialized again, ${name}, slashes escaped`, form.replace(/\//g, '\\/')],
  ])
  return named.flatMap(([name, form]): [string, string][] => [
    [name, form],
    [`${name}, with a line end`, `${form}\n`],
  ])
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, one]) => [name, sorted(one)]))
}

function escaped(text: string): string {
  return text.replace(/[\u0080-\uffff]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
