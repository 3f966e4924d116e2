import { randomBytes } from 'node:crypto'
import { type Setting, type Parsed, type CheckContext, list, textSetting } from './base.ts'
import { readPemFile } from './pem-files.ts'

/** A credential for the service. Only its form can be checked here: one word that fits into a header. */
export function credentialText(what: string, example: string): Setting<string> {
  return textSetting(`${what}: visible ASCII characters, no spaces`, example, (value) => {
    const word = value.trim()
    if (/^(bearer|basic)\s/i.test(word)) return { fault: 'begins with Bearer or Basic: give what follows it' }
    return /^[\x21-\x7e]+$/.test(word)
      ? { value: word }
      : { fault: 'contains spaces or characters that a header must not contain' }
  })
}

const MIN_KEY = 16
const COMMON = /pass(word|wort)?|secret|changeme|example|patchmirror|mirror|admin|qwerty|letmein|key/gi

/** A key that opens this mirror: long enough not to be guessed, and no colon, for Basic cuts there. */
export function localKey(): Setting<string> {
  const allowed = 'keys of at least 16 visible ASCII characters that are hard to guess, no : or ,'
  const example = randomBytes(20).toString('base64url') // a fixed one would be copied, and be known to all
  return textSetting(allowed, `"${example}"`, (value): Parsed<string> => {
    const key = value.trim()
    if (!/^[\x21-\x7e]+$/.test(key) || /[:,]/.test(key))
      return { fault: 'contains a space, a colon, a comma or a character outside ASCII' }
    if (key.length < MIN_KEY) return { fault: `is shorter than ${MIN_KEY} characters` }
    return isGuessable(key) ? { fault: 'is easy to guess' } : { value: key }
  })
}

/** One piece over and over, few characters, a row on the keyboard, or common words with a little around them. */
function isGuessable(key: string): boolean {
  if (new Set(key).size < 6 || /^(.{1,8}?)\1+$/.test(key)) return true
  if (key.replace(COMMON, '').length < MIN_KEY / 2) return true
  const codes = Array.from(key, (letter) => letter.codePointAt(0) ?? 0)
  const near = codes.slice(1).filter((code, at) => Math.abs(code - (codes[at] ?? 0)) <= 1)
  return near.length > key.length / 2
}

/** How Standard Webhooks marks its secrets; what follows is the key in base64. */
const SECRET_PREFIX = 'whsec_'
/** How Standard Webhooks marks the public key of an Ed25519 pair, which verifies `v1a` signatures. */
const PUBLIC_PREFIX = 'whpk_'
/** How it marks the private key, which belongs to the sender alone. */
const PRIVATE_PREFIX = 'whsk_'

/** Returns a secret without what a dashboard prints around it: `v1,whsec_…` is `whsec_…`. */
export function plainSecret(text: string): string {
  return text.trim().replace(/^v1a?,(?=wh(?:sec|pk|sk)_)/, '')
}

/**
 * What is wrong with a webhook secret, as a phrase that does not repeat it; null when it will do. A public key is no secret:
 * an HMAC keyed with its text could be made by everybody, so it is taken as the key of `v1a` signatures only, and a text
 * that merely looks like a key of a pair is refused. Private keys are refused: no receiver needs one.
 */
export function webhookSecretFault(secret: string): string | null {
  if (secret === '') return 'is empty'
  if (secret.startsWith(PUBLIC_PREFIX) && keyBytes(secret, PUBLIC_PREFIX)?.length === 32)
    return isUniform(secret) ? 'is a public key that cannot be used (its bytes are all alike)' : null
  if (/whpk_/i.test(secret))
    return `is no public key (${PUBLIC_PREFIX} and 32 bytes in base64), and a public key cannot be an HMAC secret`
  if (/whsk_/i.test(secret))
    return `is the sender's private key (${PRIVATE_PREFIX}): a receiver takes the public key (${PUBLIC_PREFIX})`
  const key = secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret
  if (key === '') return `contains only the prefix ${SECRET_PREFIX}`
  if (/[\s,\p{Cc}\p{Cf}\p{Cs}]/u.test(secret)) return 'contains a space, a comma or an invisible character'
  if (Array.from(key).length < MIN_KEY)
    return `is shorter than ${MIN_KEY} characters (a prefix ${SECRET_PREFIX} not counted)`
  return isGuessable(key) ? 'is easy to guess' : null
}

/** The bytes behind a prefix, in canonical base64 with or without its padding; null when there are none. */
function keyBytes(secret: string, prefix: string): Buffer | null {
  const text = secret.startsWith(prefix) ? secret.slice(prefix.length) : secret
  const key = Buffer.from(text, 'base64')
  const whole = key.toString('base64')
  const same = text === whole || text === whole.replace(/=+$/, '')
  return same && key.length > 0 ? key : null
}

/** A placeholder such as 32 zero bytes: with a point of low order as the key, everybody can make signatures that fit. */
function isUniform(secret: string): boolean {
  return new Set(keyBytes(secret, PUBLIC_PREFIX)).size < 6
}

/**
 * Returns the key of a secret by Standard Webhooks: the part after the prefix, decoded. Null when that is not
 * canonical base64 (with or without its padding), because such a secret can only be used as a whole; and for keys of a pair.
 */
export function decodedKey(secret: string): Buffer | null {
  return keyBytes(secret, SECRET_PREFIX)
}

/** The 32 bytes of an Ed25519 public key (`whpk_…`); null for everything else. */
export function publicKeyBytes(secret: string): Buffer | null {
  return secret.startsWith(PUBLIC_PREFIX) ? keyBytes(secret, PUBLIC_PREFIX) : null
}

/** The seed of an Ed25519 private key (`whsk_…`): 32 bytes, or 64 with the public key behind it. Null for everything else. */
export function privateKeySeed(secret: string): Buffer | null {
  const key = secret.startsWith(PRIVATE_PREFIX) ? keyBytes(secret, PRIVATE_PREFIX) : null
  return key !== null && (key.length === 32 || key.length === 64) ? key.subarray(0, 32) : null
}

/** Setting for what verifies the service's deliveries: the HMAC secret returned at registration, or its public key. */
export function webhookSecrets(): Setting<readonly string[]> {
  const setting = list(
    secretText(
      'signing secrets as the service returned them at registration (whsec_…, at least 16 characters that are hard to guess), ' +
        'or its Ed25519 public keys (whpk_…)',
      webhookSecretFault,
    ),
  )
  // The comma of "v1,whsec_…" belongs to the secret.
  const ends = /(?<!(?:^|[,\r\n])\s*v1a?),|[\r\n]/
  const fromText = (value: string): unknown =>
    value.split(ends).flatMap((entry) => (entry.trim() === '' ? [] : [entry.trim()]))
  return { ...setting, fromText }
}

/** An HMAC secret to sign with; keys of a pair are refused. */
export function signingSecret(): Setting<string> {
  const allowed = 'a signing secret (whsec_… and base64), at least 16 characters that are hard to guess'
  return secretText(allowed, (secret) =>
    publicKeyBytes(secret) === null ? webhookSecretFault(secret) : 'is a public key, which cannot be an HMAC secret',
  )
}

function secretText(allowed: string, faultOf: (secret: string) => string | null): Setting<string> {
  const example = SECRET_PREFIX + randomBytes(24).toString('base64')
  return textSetting(allowed, `"${example}"`, (value): Parsed<string> => {
    const secret = plainSecret(value)
    const fault = faultOf(secret)
    return fault === null ? { value: secret } : { fault }
  })
}

const MASK = '********'

/** Returns the text shown for a secret: only whether it is set. */
export function maskSecret<T>(value: T): T | string {
  const unset = value === null || (Array.isArray(value) && value.length === 0)
  return unset ? value : MASK
}

/** The 32 bytes of an Ed25519 public key in base64, behind the name of the algorithm. */
const INLINE_KEY = /^ed25519:([A-Za-z\d+/]{43}=)$/
/** The same bytes without that name. */
const BARE_KEY = /^[A-Za-z\d+/]{43}=$/

function readPublicKey(value: string, context: CheckContext): Parsed<string> {
  const given = value.trim()
  if (INLINE_KEY.test(given)) return { value: given }
  if (given.startsWith('ed25519:'))
    return { fault: 'is no public key: "ed25519:" and 32 bytes in base64 (44 characters)' }
  const read = readPemFile(given, context, (pem) => {
    if (/-----BEGIN ([A-Z]+ )*PRIVATE KEY-----/.test(pem))
      return 'is a private key: give the public half; this one stays on the mirror that signs'
    return pem.includes('-----BEGIN PUBLIC KEY-----') ? null : 'contains no PEM public key (no "BEGIN PUBLIC KEY" line)'
  })
  return 'fault' in read && BARE_KEY.test(given)
    ? { fault: 'may be a key: "ed25519:" goes before it, as "patchmirror bundle keygen" prints it' }
    : read
}

/** What stands before the id of a key that is refused. */
const NOT = '!'

/**
 * A public key that bundles may be signed with, as a PEM file, made absolute, or as `ed25519:` and base64; or `!` and the id of a
 * key that is refused, as `patchmirror bundle keygen` and `inspect` print it.
 */
export function trustedKey(): Setting<string> {
  const allowed = 'files with a PEM public key, or ed25519:BASE64; with "!" the 16 hex digits of a key that is refused'
  return textSetting(allowed, '/etc/patchmirror/bundle.pub.pem', (value, context) => {
    const text = value.trim()
    if (!text.startsWith(NOT)) return readPublicKey(text, context)
    const id = text.slice(NOT.length)
    return /^[\da-f]{16}$/i.test(id) ? { value: NOT + id.toLowerCase() } : { fault: 'is no key id behind "!"' }
  })
}

/** Returns the keys that are trusted, and the ids of those that are refused whatever is trusted. */
export function splitKeys(entries: readonly string[]) {
  return {
    trustedKeys: entries.filter((entry) => !entry.startsWith(NOT)),
    revokedKeys: entries.filter((entry) => entry.startsWith(NOT)).map((entry) => entry.slice(NOT.length)),
  }
}
