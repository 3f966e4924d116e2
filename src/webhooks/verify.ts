import { isUtf8 } from 'node:buffer'
import { createHmac, timingSafeEqual } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { DIALECTS } from '../config/webhooks.ts'
import { decodedKey } from '../config/secrets.ts'
import { type DeliveryHeaders, type Refusal, clockFault, readHeaders } from './headers.ts'

/** A form of signature: what the key is made of, and how the signature is written. */
export type Dialect = (typeof DIALECTS)[number]

/** What is signed: the id, the time and the body as it lies, joined by dots. */
export interface SignedContent {
  readonly id: string
  /** Unix seconds. */
  readonly timestamp: number
  readonly body: Buffer
}

/** A secret that can sign, without showing itself: its keys live in closures, out of reach of any dump. */
export interface SigningSecret {
  /** For people and for the inbox; never a part of the secret. */
  readonly label: string
  /** The digest by the key decoded from base64; null when the secret is no base64. */
  readonly decoded: ((content: SignedContent) => Buffer) | null
  /** The digest by the whole secret as the key. */
  readonly whole: (content: SignedContent) => Buffer
}

/** Prepares a secret. It must have been found strong enough before (`webhookSecretFault`). */
export function createSigningSecret(label: string, secret: string): SigningSecret {
  const key = decodedKey(secret)
  return { label, decoded: key && createDigest(key), whole: createDigest(Buffer.from(secret)) }
}

/** Above this the library, which is written in JavaScript, would hold up everybody else for milliseconds. */
const LIBRARY_BYTES = 16 * 1024

/**
 * HMAC-SHA256 by `standardwebhooks`. It takes bodies as text, so what is not UTF-8 would be signed as something else; that,
 * and what is large, goes to Node's own. Its `verify` is not used: it reads times and base64 leniently, knows neither hex
 * nor another clock, and parses.
 */
function createDigest(key: Buffer): (content: SignedContent) => Buffer {
  const library = new Webhook(key, { format: 'raw' })
  return ({ id, timestamp, body }) => {
    if (body.length > LIBRARY_BYTES || !isUtf8(body))
      return createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest()
    const signed = library.sign(id, new Date(timestamp * 1000), body)
    return Buffer.from(signed.slice('v1,'.length), 'base64')
  }
}

const FORMS: Readonly<Record<Dialect, { key: 'decoded' | 'whole'; form: 'base64' | 'hex' }>> = {
  standard: { key: 'decoded', form: 'base64' },
  vendor: { key: 'whole', form: 'hex' },
  'whole-base64': { key: 'whole', form: 'base64' },
  'decoded-hex': { key: 'decoded', form: 'hex' },
}

/** The value of `webhook-signature` for a delivery; null when the dialect needs a key that the secret does not hold. */
export function signDelivery(
  options: SignedContent & { readonly secret: string; readonly dialect: Dialect },
): string | null {
  const { key, form } = FORMS[options.dialect]
  const digest = createSigningSecret('', options.secret)[key]
  return digest && `v1,${digest(options).toString(form)}`
}

/** Which secret and which form a signature fits. */
export interface Match {
  readonly label: string
  readonly dialect: Dialect
}

/**
 * The first secret and form that one of the signatures fits, or null. Digests are compared in constant time, all with all,
 * whatever fits first. The time is not looked at.
 */
export function matchSignatures(
  headers: DeliveryHeaders,
  body: Buffer,
  secrets: readonly SigningSecret[],
  dialects: readonly Dialect[] = DIALECTS,
): Match | null {
  const content = { id: headers.id, timestamp: headers.timestamp, body }
  const signatures = headers.signatures()
  if (signatures.length === 0) return null
  let match: Match | null = null
  for (const secret of secrets) {
    const digests = { decoded: needed('decoded', dialects, secret, content), whole: needed('whole', dialects, secret, content) } // prettier-ignore
    for (const dialect of dialects) {
      const { key, form } = FORMS[dialect]
      const digest = digests[key]
      for (const signature of signatures) {
        const fits = digest !== null && timingSafeEqual(digest, signature.digest)
        if (fits && signature.form === form) match ??= { label: secret.label, dialect }
      }
    }
  }
  return match
}

function needed(
  key: 'decoded' | 'whole',
  dialects: readonly Dialect[],
  secret: SigningSecret,
  content: SignedContent,
): Buffer | null {
  return dialects.some((dialect) => FORMS[dialect].key === key)
    ? (secret[key]?.(content) ?? null)
    : null
}

/** What the verifier judges by. */
export interface VerifierOptions {
  /** Those that are valid at this moment. */
  readonly secrets: () => readonly SigningSecret[]
  readonly dialect: Dialect | 'any'
  readonly toleranceSeconds: number
  /** Unix milliseconds. */
  readonly now: () => number
}

/** The verdict on a delivery. */
export type Verdict =
  | ({ readonly ok: true; readonly id: string; readonly timestamp: number } & Match)
  | { readonly ok: false; readonly reason: Refusal }

/** Judges a delivery by its headers as they came and its body as it lies; nothing is parsed. */
export type Verifier = (rawHeaders: readonly string[], body: Buffer) => Verdict

/** Verification by Standard Webhooks and the vendor's own form (service API, section 6; wire facts). */
export function createVerifier(options: VerifierOptions): Verifier {
  const dialects = options.dialect === 'any' ? DIALECTS : [options.dialect]
  return (rawHeaders, body) => {
    const headers = readHeaders(rawHeaders)
    if (typeof headers === 'string') return { ok: false, reason: headers }
    const { id, timestamp } = headers
    const late = clockFault(timestamp, options.now(), options.toleranceSeconds)
    if (late !== null) return { ok: false, reason: late }
    const match = matchSignatures(headers, body, options.secrets(), dialects)
    return match === null
      ? { ok: false, reason: 'signature' }
      : { ok: true, id, timestamp, ...match }
  }
}
