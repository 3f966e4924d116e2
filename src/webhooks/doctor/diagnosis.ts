import { publicKeyBytes } from '../../config/kinds/keys.ts'
import type { Capture } from './capture.ts'
import type { HeaderRefusal } from '../receive/headers.ts'
import { type SignatureDialect, createSigningSecret, createVerifier } from '../receive/signature.ts'
import { type LabelledSecret, type SecretMatch, findMatch, captureHeader, isValidAt, signaturesOf } from './match.ts'
import { AS_CAPTURED } from './forms.ts'

/** Result of checking a captured delivery, and its problems. Contains no secret, no signature, no body. */
export interface Diagnosis {
  /** `accepted`: this mirror takes it at that time. */
  readonly verdict: 'accepted' | 'refused'
  /** What is wrong, worst first, each with what to do. */
  readonly problems: readonly string[]
  /** How the signature was computed; null: none of the secrets gives it in any known form. */
  readonly match: SecretMatch | null
  /** Seconds by which the delivery's time is behind the given clock; null: it has no time. */
  readonly ageSeconds: number | null
}

/** What is judged, and by what. `now` in unix milliseconds. */
export interface Case {
  readonly capture: Capture
  readonly secrets: readonly LabelledSecret[]
  readonly now: number
  readonly toleranceSeconds: number
  readonly dialect: SignatureDialect | 'any'
  /** Whether there is an upstream, with which a secret can be registered. */
  readonly canRegister: boolean
}

/**
 * Checks a delivery exactly as the receiver does, and reports why it is refused: its headers, its time, its signature, in all
 * known forms.
 */
export function diagnose(judged: Case): Diagnosis {
  const { capture, secrets, now, toleranceSeconds } = judged
  const match = findMatch({ capture, secrets })
  const timestamp = captureHeader(capture, 'webhook-timestamp')
  const isTime = CANONICAL_TIME.test(timestamp)
  const ageSeconds = isTime ? Math.floor(now / 1000) - Number(timestamp) : null
  const refusal = verify(judged)
  if (refusal === null) return { verdict: 'accepted', problems: [], match, ageSeconds }
  const other = versionProblems(judged)
  const found = [
    ...headerProblems(capture),
    ...other,
    ...encodingProblems(capture),
    ...timeProblems(ageSeconds, toleranceSeconds),
    ...secretProblems(judged, match, other.length > 0),
    ...(match?.usual === true ? [] : capture.suspicions),
  ]
  const problems = found.length > 0 ? found : [otherwise(judged, refusal, match)]
  return { verdict: 'refused', problems, match, ageSeconds }
}

/** Returns what is wrong by the secrets. `isOther`: signatures are of a version that none of them can check. */
function secretProblems(judged: Case, match: SecretMatch | null, isOther: boolean): readonly string[] {
  const { capture, secrets } = judged
  if (secrets.length === 0) return [noSecret(judged)]
  return isOther ? [] : signatureProblems(capture, match)
}

/** The receiver's own verdict: null, or why it refuses. */
function verify({ capture, secrets, now, toleranceSeconds, dialect }: Case): HeaderRefusal | null {
  const signing = secrets
    .filter((one) => isValidAt(one, now))
    .map(({ label, secret }) => createSigningSecret(label, secret))
  const options = { secrets: () => signing, dialect, toleranceSeconds, now: () => now }
  const verified = createVerifier(options)(capture.headers.flat(), capture.body)
  return verified.ok ? null : verified.reason
}

/** What no single check above explains. */
function otherwise({ dialect, secrets, now }: Case, refusal: HeaderRefusal, match: SecretMatch | null): string {
  const used = secrets.find(({ label }) => label === match?.secret)
  if (used !== undefined && !isValidAt(used, now))
    return `the secret ${used.label} does not count at that time (notBefore, notAfter in webhooks.secretFile)`
  if (refusal === 'signature')
    return `the signature is sound, but not of the form that webhooks.dialect pins (${dialect}): set it to any`
  if (refusal === 'header_signature')
    return 'webhook-signature is malformed around a sound signature: it takes at most 16 of "v1,<signature>", 4 KiB, with spaces and no tabs between'
  return `refused by the receiver: ${refusal}`
}

const CANONICAL_TIME = /^(0|[1-9]\d{0,11})$/

function noSecret({ canRegister }: Case): string {
  const registers = canRegister ? `create one with "patchmirror webhooks register", or ` : ''
  return `the mirror has no secret: ${registers}set one in webhooks.secrets`
}

const HEADERS = ['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const

const SIGNED = ['webhook-id', 'webhook-timestamp'] as const

function headerProblems(capture: Capture): string[] {
  return HEADERS.flatMap((name) => {
    const count = capture.headers.filter(([one]) => one.toLowerCase() === name).length
    if (count > 1) return [`${name} is there ${count} times: a proxy or the sender doubles it`]
    if (count === 1) return formProblems(name, captureHeader(capture, name))
    const twin = capture.headers.find(([one]) => one.toLowerCase().endsWith(name.slice(7)))
    const hint = twin === undefined ? '' : `; ${JSON.stringify(twin[0])} is not read`
    return [`${name} is missing: a proxy drops it, or the sender does not sign${hint}`]
  })
}

/** The receiver answers 415 to what it would have to unpack before its signature could fit. */
function encodingProblems(capture: Capture): string[] {
  const encoding = captureHeader(capture, 'content-encoding')
  if (encoding === '' || encoding.toLowerCase() === 'identity') return []
  return [
    `content-encoding is ${JSON.stringify(encoding)}: deliveries come uncompressed, or are signed as they are sent`,
  ]
}

function formProblems(name: (typeof HEADERS)[number], value: string): string[] {
  if (name === 'webhook-id' && !/^[\w:-]{1,256}$/.test(value))
    return ['webhook-id is malformed: 1 to 256 of A-Z a-z 0-9 _ : - are allowed']
  if (name === 'webhook-timestamp' && !CANONICAL_TIME.test(value))
    return [`webhook-timestamp is malformed: ${timeFault(value)}; it is unix seconds in digits`]
  if (name !== 'webhook-signature') return []
  if (value.trim() === '') return ['webhook-signature is empty']
  const versions = versionsOf(value)
  if (!versions.includes('v1') && !versions.includes('v1a'))
    return [
      'webhook-signature has no part that begins with "v1," (HMAC) or "v1a," (Ed25519): no other version is known',
    ]
  return []
}

function versionsOf(value: string): string[] {
  return value.split(/[ \t]+/).map((part) => part.split(',')[0] ?? '')
}

/** Reports signatures of a version that no stored secret can check: secrets are for `v1`, public keys for `v1a`. */
function versionProblems({ capture, secrets }: Case): string[] {
  const versions = versionsOf(captureHeader(capture, 'webhook-signature'))
  const hmac = versions.includes('v1')
  const asymmetric = versions.includes('v1a')
  const keys = secrets.filter(({ secret }) => publicKeyBytes(secret) !== null).length
  if (asymmetric && !hmac && secrets.length > 0 && keys === 0)
    return [
      'webhook-signature is "v1a," alone (Ed25519), and the mirror has no public key: add the whpk_… of the sender to ' +
        'webhooks.secrets or webhooks.secretFile',
    ]
  if (hmac && !asymmetric && keys > 0 && keys === secrets.length)
    return [
      'webhook-signature is "v1," alone (HMAC), and the mirror has public keys only (whpk_…): add the signing secret ' +
        '(whsec_…) to webhooks.secrets or webhooks.secretFile',
    ]
  return []
}

function timeFault(value: string): string {
  if (/^\d{13}$/.test(value)) return 'it looks like milliseconds'
  if (/^\d+\.\d+$/.test(value)) return 'it has a fraction'
  if (!Number.isNaN(Date.parse(value))) return 'it is a date in words'
  return 'it is not a plain number'
}

function timeProblems(age: number | null, tolerance: number): string[] {
  if (age === null || Math.abs(age) <= tolerance) return []
  const side = age > 0 ? 'old' : 'ahead'
  const limit = `the time of the delivery is ${Math.abs(age)} s ${side}, ${tolerance} s are allowed`
  if (age > 0) {
    return [`${limit}: judge an old capture by its own time (--at), else compare the two clocks`]
  }
  return [`${limit}: the clock of this machine is behind, or the sender's ahead`]
}

function signatureProblems(capture: Capture, match: SecretMatch | null): string[] {
  if (match?.usual === true) return []
  if (match !== null) return unusual(match)
  if (captureHeader(capture, 'webhook-signature').trim() === '') return []
  if (signaturesOf(capture).length === 0)
    return ['no part of webhook-signature is 32 bytes in base64 or hex, or 64 in base64: it was cut or changed']
  // Without the signed id and time, secrets cannot be checked.
  if (SIGNED.some((name) => captureHeader(capture, name) === '')) return []
  return [
    'no stored secret gives this signature in any known form: it is another ' +
      "subscription's secret, or webhook-id, webhook-timestamp or the body was changed on the way. Compare " +
      '"patchmirror webhooks list" with the sender, and capture the request as bytes',
  ]
}

function unusual({ key, encoding, content, body }: SecretMatch): string[] {
  const found: string[] = []
  if (body !== AS_CAPTURED) {
    found.push(
      `the signature is for the body ${body}: something between sender and file has changed it. ` +
        'Pass the raw bytes on',
    )
  }
  if (content !== 'id.timestamp.body')
    found.push(`the sender signs ${content}, not id.timestamp.body: it is not Standard Webhooks`)
  if (found.length === 0) found.push(`the sender uses ${key} as the key and ${encoding}: the mirror does not take that`)
  return found
}
