import { isUtf8 } from 'node:buffer'
import { createHmac, createPrivateKey, createPublicKey, sign, timingSafeEqual, verify } from 'node:crypto'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'
import { SIGNATURE_DIALECTS } from '../../config/kinds/webhooks.ts'
import { decodedKey, plainSecret, privateKeySeed, publicKeyBytes } from '../../config/kinds/keys.ts'
import { type DeliveryHeaders, type HeaderRefusal, type Signature, clockFault, readHeaders } from './headers.ts'

/** A form of signature: what the key is made of, and how the signature is written. */
export type SignatureDialect = (typeof SIGNATURE_DIALECTS)[number]

/** What a delivery fitted: a form of HMAC, or Ed25519 (`v1a`). */
export type MatchedForm = SignatureDialect | 'ed25519'

/** The signed content: the id, the time and the unchanged body, joined by dots. */
interface SignedContent {
  readonly id: string
  /** Unix seconds. */
  readonly timestamp: number
  readonly body: Buffer
}

/** A secret or public key that can judge, without showing itself: its keys live in closures, out of reach of any dump. */
export interface SigningSecret {
  /** For people and for the inbox; never a part of the secret. */
  readonly label: string
  /** The digest by the key decoded from base64; null when the secret is no base64, or no secret. */
  readonly decoded: ((content: SignedContent) => Buffer) | null
  /** The digest by the whole secret as the key; null for a public key, whose text everybody may know. */
  readonly whole: ((content: SignedContent) => Buffer) | null
  /** Whether one of the signatures, all base64, is that of the standard dialect; null when the secret is no base64, or no secret. */
  readonly standard: ((content: SignedContent, signatures: readonly Signature[]) => boolean) | null
  /** Whether an Ed25519 signature (64 bytes) fits the public key; null for a secret. */
  readonly verifies: ((content: SignedContent, signature: Buffer) => boolean) | null
}

/** Prepares a secret or a public key. It must have been found sound before (`webhookSecretFault`). */
export function createSigningSecret(label: string, given: string): SigningSecret {
  const secret = plainSecret(given)
  const publicKey = publicKeyBytes(secret)
  if (publicKey !== null) {
    const check = createEd25519Check(publicKey)
    const verifies: SigningSecret['verifies'] = (content, given) => check(bytesOf(content), given)
    return { label, decoded: null, whole: null, standard: null, verifies }
  }
  const key = decodedKey(secret)
  const whole = createDigest(Buffer.from(secret))
  const standard = key && createStandardCheck(key)
  return { label, decoded: key && createDigest(key), whole, standard, verifies: null }
}

/** Checks `v1a` signatures (Standard Webhooks, asymmetric scheme): Ed25519 over id, time and body, joined by dots. */
function createEd25519Check(key: Buffer): (content: Buffer, signature: Buffer) => boolean {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: key.toString('base64url') }
  const publicKey = createPublicKey({ key: jwk, format: 'jwk' })
  return (content, signature) => verify(null, content, publicKey, signature)
}

/** RFC 8410, section 7: the bytes before the 32 bytes of a private Ed25519 key in PKCS #8. */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex')

/** The `v1a` signature of a delivery by a private key (`whsk_…`); null when the secret is none. */
function signAsymmetric(content: SignedContent, secret: string): string | null {
  const seed = privateKeySeed(secret)
  if (seed === null) return null
  const der = Buffer.concat([PKCS8_HEAD, seed])
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  return `v1a,${sign(null, bytesOf(content), key).toString('base64')}`
}

function bytesOf({ id, timestamp, body }: SignedContent): Buffer {
  return Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body])
}

/** Largest body, bytes, for the library: it is written in JavaScript, and a longer body blocks the thread for milliseconds. */
const LIBRARY_BYTES = 16 * 1024

/** The library takes bodies as text, so what is not UTF-8 would be signed as something else. */
function isForLibrary({ body }: SignedContent): boolean {
  return body.length <= LIBRARY_BYTES && isUtf8(body)
}

/** HMAC-SHA256 by `standardwebhooks`; what is not for it goes to Node's own. */
function createDigest(key: Buffer): (content: SignedContent) => Buffer {
  const library = new Webhook(key, { format: 'raw' })
  return (content) => {
    const { id, timestamp, body } = content
    if (!isForLibrary(content)) return createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest()
    const signed = library.sign(id, new Date(timestamp * 1000), body)
    return Buffer.from(signed.slice('v1,'.length), 'base64')
  }
}

/** Age up to which the library verifies, seconds: its own bound, by the system's clock, is five minutes. */
const LIBRARY_AGE = 240

/**
 * Verification of the standard dialect by `standardwebhooks`. The headers were read and the time was judged before, by our rules;
 * where those accept a time that the library would refuse, digests are compared here.
 */
function createStandardCheck(key: Buffer): NonNullable<SigningSecret['standard']> {
  const library = new Webhook(key, { format: 'raw' })
  const digestOf = createDigest(key)
  return (content, signatures) => {
    const age = Math.abs(Date.now() / 1000 - content.timestamp)
    if (isForLibrary(content) && age < LIBRARY_AGE) return verifiesBy(library, content, signatures)
    return isAmong(digestOf(content), signatures)
  }
}

function verifiesBy(
  library: Webhook,
  { id, timestamp, body }: SignedContent,
  signatures: readonly Signature[],
): boolean {
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.map(({ digest }) => `v1,${digest.toString('base64')}`).join(' '),
  }
  try {
    library.verify(body, headers, { jsonParse: false })
    return true
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false
    throw error
  }
}

const FORMS: Readonly<Record<SignatureDialect, { key: 'decoded' | 'whole'; form: 'base64' | 'hex' }>> = {
  standard: { key: 'decoded', form: 'base64' },
  vendor: { key: 'whole', form: 'hex' },
  'whole-base64': { key: 'whole', form: 'base64' },
  'decoded-hex': { key: 'decoded', form: 'hex' },
}

/**
 * Returns the value of `webhook-signature` for a delivery; null when the dialect needs another kind of key. A
 * private key (`whsk_…`) signs with Ed25519 in any dialect; a public one cannot sign.
 */
export function signDelivery(
  options: SignedContent & { readonly secret: string; readonly dialect: SignatureDialect },
): string | null {
  const secret = plainSecret(options.secret)
  if (privateKeySeed(secret) !== null) return signAsymmetric(options, secret)
  const { key, form } = FORMS[options.dialect]
  const digest = createSigningSecret('', secret)[key]
  return digest && `v1,${digest(options).toString(form)}`
}

/** Which secret and which form a signature fits. */
interface SignatureMatch {
  readonly label: string
  readonly dialect: MatchedForm
}

/**
 * Returns the first secret and form that one of the signatures matches, or null. Digests are compared in constant time, all
 * with all. A public key is only tried on `v1a` signatures, in any dialect. The time is not checked.
 */
function matchSignatures(
  headers: DeliveryHeaders,
  body: Buffer,
  secrets: readonly SigningSecret[],
  dialects: readonly SignatureDialect[] = SIGNATURE_DIALECTS,
): SignatureMatch | null {
  const content = { id: headers.id, timestamp: headers.timestamp, body }
  const signatures = headers.signatures()
  let match: SignatureMatch | null = null
  for (const secret of secrets) {
    const dialect =
      secret.verifies === null
        ? matchHmac(content, signatures, secret, dialects)
        : matchEd25519(content, headers.asymmetric(), secret.verifies)
    if (dialect !== null) match ??= { label: secret.label, dialect }
  }
  return match
}

function matchHmac(
  content: SignedContent,
  signatures: readonly Signature[],
  secret: SigningSecret,
  dialects: readonly SignatureDialect[],
): SignatureDialect | null {
  if (signatures.length === 0) return null
  const own = dialects.filter((dialect) => dialect !== 'standard')
  const digests = {
    decoded: needed('decoded', own, secret, content),
    whole: needed('whole', own, secret, content),
  }
  let match: SignatureDialect | null = null
  for (const dialect of dialects) {
    const { key, form } = FORMS[dialect]
    const ofForm = signatures.filter((signature) => signature.form === form)
    const fits = dialect === 'standard' ? secret.standard?.(content, ofForm) === true : isAmong(digests[key], ofForm)
    if (fits) match ??= dialect
  }
  return match
}

/** Compares a digest with all of them, in constant time. */
function isAmong(digest: Buffer | null, signatures: readonly Signature[]): boolean {
  return digest !== null && signatures.filter((one) => timingSafeEqual(digest, one.digest)).length > 0
}

function matchEd25519(
  content: SignedContent,
  signatures: readonly Buffer[],
  verifies: NonNullable<SigningSecret['verifies']>,
): 'ed25519' | null {
  return signatures.some((signature) => verifies(content, signature)) ? 'ed25519' : null
}

function needed(
  key: 'decoded' | 'whole',
  dialects: readonly SignatureDialect[],
  secret: SigningSecret,
  content: SignedContent,
): Buffer | null {
  return dialects.some((dialect) => FORMS[dialect].key === key) ? (secret[key]?.(content) ?? null) : null
}

/** What the verifier judges by. */
interface VerifierOptions {
  /** The secrets that are valid now. */
  readonly secrets: () => readonly SigningSecret[]
  readonly dialect: SignatureDialect | 'any'
  readonly toleranceSeconds: number
  /** Unix milliseconds. */
  readonly now: () => number
}

/** The verdict on a delivery. */
export type SignatureResult =
  ({ readonly ok: true; readonly id: string } & SignatureMatch) | { readonly ok: false; readonly reason: HeaderRefusal }

/** Checks a delivery by its raw headers and its unchanged body; nothing is parsed. */
export type Verifier = (rawHeaders: readonly string[], body: Buffer) => SignatureResult

/** Verification by Standard Webhooks and the vendor's own form (service API, section 6; wire facts). */
export function createVerifier(options: VerifierOptions): Verifier {
  const dialects = options.dialect === 'any' ? SIGNATURE_DIALECTS : [options.dialect]
  return (rawHeaders, body) => {
    const headers = readHeaders(rawHeaders)
    if (typeof headers === 'string') return { ok: false, reason: headers }
    const { id, timestamp } = headers
    const late = clockFault(timestamp, options.now(), options.toleranceSeconds)
    if (late !== null) return { ok: false, reason: late }
    const match = matchSignatures(headers, body, options.secrets(), dialects)
    return match === null ? { ok: false, reason: 'signature' } : { ok: true, id, ...match }
  }
}
