/** Why a delivery was refused, for log and metrics only: the sender does not learn it. */
export type HeaderRefusal =
  | 'header_missing' // one of the three headers is not there
  | 'header_repeated' // one of them is there twice, or could be: there are more lines than Node keeps
  | 'header_id' // the id is not of the form that is accepted
  | 'header_timestamp' // the time is not a whole number of seconds
  | 'header_signature' // the list of signatures is too long, or none of them is well-formed
  | 'too_old'
  | 'too_new'
  | 'signature' // no secret and no form fits

/** One signature of version 1: the digest, and how it was written. */
export interface Signature {
  readonly digest: Buffer
  readonly form: 'base64' | 'hex'
}

/** The three headers of a delivery (Standard Webhooks), each there once and well-formed. */
export interface DeliveryHeaders {
  readonly id: string
  /** Unix seconds. */
  readonly timestamp: number
  /** Those of version 1 (HMAC). Dumps show none of them. */
  readonly signatures: () => readonly Signature[]
  /** The bytes of those of version 1a (Ed25519), of which only the first four are read. Other versions are passed over. */
  readonly asymmetric: () => readonly Buffer[]
}

const ID = /^[A-Za-z0-9_:-]{1,256}$/
const SECONDS = /^(0|[1-9]\d{0,11})$/
/** Older releases of Node drop what follows two thousand lines, where a second value could hide; newer ones refuse a request with over a thousand. */
const MAX_LINES = 1000
const MAX_SIGNATURES = 16
const MAX_SIGNATURE_BYTES = 4096
const HEX = /^[0-9a-f]{64}$/
const BASE64 = /^[A-Za-z0-9+/]{43}=$/
const BASE64_OF_64 = /^[A-Za-z0-9+/]{86}==$/
/** Each costs a verification, many times an HMAC; a sender that exchanges its key signs with two. */
const MAX_ASYMMETRIC = 4
const VERSION = /^v\d+[a-z]*$/

/**
 * Reads the headers from the list as it came over the wire (`IncomingMessage.rawHeaders`), where none is joined with or
 * hidden behind another. No dot is accepted in an id: the signed text is joined by dots.
 */
export function readHeaders(rawHeaders: readonly string[]): DeliveryHeaders | HeaderRefusal {
  if (rawHeaders.length > 2 * MAX_LINES) return 'header_repeated'
  const found = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => valuesOf(rawHeaders, name))
  if (found.some((values) => values.length > 1)) return 'header_repeated'
  const [[id] = [], [time] = [], [list] = []] = found
  if (id === undefined || time === undefined || list === undefined) return 'header_missing'
  if (!ID.test(id)) return 'header_id'
  if (!SECONDS.test(time)) return 'header_timestamp'
  const read = readSignatures(list)
  if (read === null) return 'header_signature'
  const { signatures, asymmetric } = read
  const lists = { signatures: () => signatures, asymmetric: () => asymmetric }
  return { id, timestamp: Number(time), ...lists }
}

/** All values of a header, in a flat list of names and values. */
export function valuesOf(rawHeaders: readonly string[], name: string): string[] {
  return rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name)
}

/** The signatures of a list, by version. */
interface SignatureList {
  readonly signatures: readonly Signature[]
  readonly asymmetric: readonly Buffer[]
}

/**
 * `v1,<signature>`, separated by spaces. What is not written as it must be is passed over, as in the reference libraries: it
 * fits nothing. Null when there are too many, or nothing is left.
 */
function readSignatures(list: string): SignatureList | null {
  if (list.length > MAX_SIGNATURE_BYTES) return null
  const entries = list.split(' ').filter((entry) => entry !== '')
  if (entries.length === 0 || entries.length > MAX_SIGNATURES) return null
  const signatures: Signature[] = []
  const asymmetric: Buffer[] = []
  let isReadable = false
  for (const entry of entries) {
    const comma = entry.indexOf(',')
    const version = entry.slice(0, comma)
    if (comma < 0 || !VERSION.test(version)) continue
    const text = entry.slice(comma + 1)
    if (version === 'v1a' && asymmetric.length < MAX_ASYMMETRIC && BASE64_OF_64.test(text))
      asymmetric.push(Buffer.from(text, 'base64'))
    const signature = version === 'v1' ? readSignature(text) : null
    if (signature !== null) signatures.push(signature)
    isReadable ||= version !== 'v1' || signature !== null
  }
  return isReadable ? { signatures, asymmetric } : null
}

/** Canonical base64 or lowercase hex of 32 bytes: one text for each digest, so that nothing can be varied. */
function readSignature(text: string): Signature | null {
  if (HEX.test(text)) return { digest: Buffer.from(text, 'hex'), form: 'hex' }
  if (!BASE64.test(text)) return null
  const digest = Buffer.from(text, 'base64')
  return digest.toString('base64') === text ? { digest, form: 'base64' } : null
}

/** How old, or how far ahead, the time of a delivery may be: the contract's word. It bounds replays of a recorded delivery. */
export const TOLERANCE_SECONDS = 300

/** What is wrong with a time by the receiver's clock (unix milliseconds), or null. */
export function clockFault(timestamp: number, now: number, toleranceSeconds: number): 'too_old' | 'too_new' | null {
  const age = Math.floor(now / 1000) - timestamp
  if (age > toleranceSeconds) return 'too_old'
  return -age > toleranceSeconds ? 'too_new' : null
}
