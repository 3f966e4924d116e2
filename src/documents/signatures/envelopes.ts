import { messageOf } from '../../base/errors.ts'
import { refuseCostly } from '../../base/json/limits.ts'
import { type Fields, isObject, jsonTextOf } from '../../base/json/objects.ts'

/** A signed statement as a document has it. */
export interface SignedPart {
  /** The Sigstore bundle; null: a DSSE envelope alone, which names no certificate. */
  readonly bundle: Fields | null
  /** The DSSE envelope. */
  readonly envelope: Envelope
}

/** A DSSE envelope whose members have the right types. */
export interface Envelope {
  readonly payloadType: string
  /** Base64. */
  readonly payload: string
  readonly signatures: readonly { readonly sig: string; readonly keyid: string }[]
}

/** What a document has of signatures. */
type SignedParts =
  | { readonly state: 'signed'; readonly parts: readonly SignedPart[] }
  | { readonly state: 'none' }
  /** A public key beside a signed document: it says nothing. */
  | { readonly state: 'key' }
  | { readonly state: 'failed'; readonly reason: string }

/** Largest signed document, bytes: it is in memory as a whole, several times. */
export const MAX_SIGNED_BYTES = 32 * 2 ** 20
/** Signed statements of one document, at most. */
const MAX_PARTS = 64
/** Signatures of one envelope, at most. */
const MAX_SIGNATURES = 16

/** Names that every signed document has one of. A document without them is not parsed. */
const MARKS = ['"dsseEnvelope"', '"payloadType"', '"verificationMaterial"']

const BUNDLE = new Set(['mediaType', 'verificationMaterial', 'dsseEnvelope'])
const ENVELOPE = new Set(['payloadType', 'payload', 'signatures'])
const SIGNATURE = new Set(['sig', 'keyid', 'cert'])
const ATTESTATION = new Set(['predicateType', 'bundle'])

/** What is wrong with the form of a signed document. */
class FormError extends Error {}

/**
 * Returns the signed statements of a document: a Sigstore bundle, a DSSE envelope, several of them as lines, in a list, or in
 * `attestations`. Whatever stands beside a signature in the same document is not signed, and what reads the document could take
 * it for its content: such a document failed.
 */
export function signedPartsOf(content: Buffer): SignedParts {
  if (content.subarray(0, 11).toString('latin1') === '-----BEGIN ') return { state: 'key' }
  if (!MARKS.some((mark) => content.includes(mark))) return { state: 'none' }
  if (content.length > MAX_SIGNED_BYTES) return failed(`it has ${content.length} bytes, more than ${MAX_SIGNED_BYTES}`)
  const costly = refuseCostly(content)
  if (costly !== null) return failed(costly)
  try {
    const values = valuesOf(jsonTextOf(content))
    if (!values.some(isSigned)) return { state: 'none' }
    const parts = values.map(partOf)
    if (parts.length > MAX_PARTS) throw new FormError(`it has more than ${MAX_PARTS} statements`)
    return { state: 'signed', parts }
  } catch (error) {
    return failed(messageOf(error))
  }
}

function failed(reason: string): SignedParts {
  return { state: 'failed', reason }
}

/** Returns the values of a document: the one that it is, those of a list or of `attestations`, or one of each line. */
function valuesOf(text: string): unknown[] {
  const whole = parseOrNull(text)
  if (whole === null) return text.split('\n').filter(isFilled).map(parseLine)
  if (Array.isArray(whole.value)) return whole.value
  return attestationsOf(whole.value) ?? [whole.value]
}

function parseOrNull(text: string): { value: unknown } | null {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return null
  }
}

function isFilled(line: string): boolean {
  return line.trim() !== ''
}

function parseLine(line: string): unknown {
  const parsed = parseOrNull(line)
  if (parsed === null) throw new FormError('it is neither JSON nor JSON lines')
  return parsed.value
}

/** Returns the bundles of the form that package registries give; null for another form. */
function attestationsOf(value: unknown): unknown[] | null {
  if (!isObject(value) || !Array.isArray(value['attestations'])) return null
  refuseOthers(value, new Set(['attestations']))
  return value['attestations'].map((one: unknown) => {
    if (!isObject(one)) throw new FormError('an attestation is not an object')
    refuseOthers(one, ATTESTATION)
    return one['bundle']
  })
}

function isSigned(value: unknown): boolean {
  if (!isObject(value)) return false
  return 'dsseEnvelope' in value || 'payloadType' in value || 'verificationMaterial' in value
}

function partOf(value: unknown): SignedPart {
  if (!isObject(value) || !isSigned(value)) throw new FormError('a part of it is not signed')
  if ('payloadType' in value) return { bundle: null, envelope: envelopeOf(value) }
  refuseOthers(value, BUNDLE)
  const { dsseEnvelope } = value
  if (dsseEnvelope === undefined)
    throw new FormError('it signs a file, not a statement: the bundle has no dsseEnvelope')
  return { bundle: value, envelope: envelopeOf(dsseEnvelope) }
}

function envelopeOf(value: unknown): Envelope {
  if (!isObject(value)) throw new FormError('its envelope is not an object')
  refuseOthers(value, ENVELOPE)
  const { payloadType, payload, signatures } = value
  if (typeof payloadType !== 'string' || typeof payload !== 'string') throw new FormError('its envelope has no payload')
  if (!Array.isArray(signatures) || signatures.length === 0) throw new FormError('its envelope has no signature')
  if (signatures.length > MAX_SIGNATURES) throw new FormError(`its envelope has more than ${MAX_SIGNATURES} signatures`)
  return { payloadType, payload, signatures: signatures.map(signatureOf) }
}

function signatureOf(value: unknown): { sig: string; keyid: string } {
  if (!isObject(value)) throw new FormError('a signature is not an object')
  refuseOthers(value, SIGNATURE)
  const { sig, keyid } = value
  if (typeof sig !== 'string' || sig === '') throw new FormError('a signature is empty')
  return { sig, keyid: typeof keyid === 'string' ? keyid : '' }
}

function refuseOthers(value: Fields, known: ReadonlySet<string>): void {
  const other = Object.keys(value).find((name) => !known.has(name))
  if (other === undefined) return
  throw new FormError(`${JSON.stringify(other.slice(0, 50))} stands beside the signature and is not signed`)
}
