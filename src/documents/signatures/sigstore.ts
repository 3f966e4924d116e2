import { bundleFromJSON } from '@sigstore/bundle'
import { TrustedRoot } from '@sigstore/protobuf-specs'
import { type TrustMaterial, Verifier, toSignedEntity, toTrustMaterial } from '@sigstore/verify'
import { messageOf } from '../../base/errors.ts'
import { type Fields, eachObject, fieldsOf, isObject } from '../../base/json/objects.ts'
import type { Envelope, SignedPart } from './envelopes.ts'
import type { Trust, TrustedKey } from './trust.ts'

/** Who signed, as a verified certificate says it. */
interface Identity {
  readonly subject: string
  readonly issuer: string
}

/** The verified signer of a statement: a trusted key, or an identity whose certificate and log entry are verified. */
export type VerifiedSigner =
  { readonly key: string; readonly identity: null } | { readonly key: null; readonly identity: Identity }

const MEDIA_TYPE = 'application/vnd.dev.sigstore.bundle.v0.3+json'
const NO_KEYS = { certificateAuthorities: [], timestampAuthorities: [], tlogs: [], ctlogs: [] }

/** Creates the verification of signed statements with what the operator trusts. Nothing of it uses the network. */
export function createSigstore({ keys, roots }: Trust): (part: SignedPart) => VerifiedSigner {
  const parsed = roots.map((root) => TrustedRoot.fromJSON(root))
  const root: TrustMaterial = toTrustMaterial({
    mediaType: '',
    tlogs: parsed.flatMap(({ tlogs }) => tlogs),
    ctlogs: parsed.flatMap(({ ctlogs }) => ctlogs),
    certificateAuthorities: parsed.flatMap((one) => one.certificateAuthorities),
    timestampAuthorities: parsed.flatMap((one) => one.timestampAuthorities),
  })
  return (part) => {
    const material = fieldsOf(part.bundle?.['verificationMaterial'])
    const isKeyless = 'certificate' in material || 'x509CertificateChain' in material
    if (isKeyless && part.bundle !== null) return verifyKeyless(part.bundle, material, root)
    return verifyKeyed(part, material, root, keys)
  }
}

/** Verifies a certificate, its time, its log entry and the signature. Throws with the reason. */
function verifyKeyless(bundle: Fields, material: Fields, root: TrustMaterial): VerifiedSigner {
  if (root.certificateAuthorities.length === 0)
    throw new Error('it is signed with a certificate, and catalog.trustRoot names no trusted_root.json')
  const isLogged = root.tlogs.length > 0
  if (isLogged && eachObject(material['tlogEntries']).length === 0)
    throw new Error('it has no entry of a transparency log')
  const options = {
    timestampThreshold: 1,
    tlogThreshold: isLogged ? 1 : 0,
    ctlogThreshold: root.ctlogs.length > 0 ? 1 : 0,
  }
  const verifier = new Verifier(root, options)
  const signer = inWords(() => verifier.verify(toSignedEntity(bundleFromJSON(bundle))))
  const { subjectAlternativeName: subject = '', extensions } = signer.identity ?? {}
  return { key: null, identity: { subject, issuer: extensions?.issuer ?? '' } }
}

/**
 * Verifies with each trusted key each signature, of which one is enough. The key is the proof: an entry of a transparency log is
 * verified where there is one and the trusted root has logs, and is not demanded.
 */
function verifyKeyed(
  { envelope }: SignedPart,
  material: Fields,
  root: TrustMaterial,
  keys: readonly TrustedKey[],
): VerifiedSigner {
  if (keys.length === 0) throw new Error('it is signed with a key, and catalog.trustRoot names no file of public keys')
  const { payload, payloadType } = envelope
  const entries = root.tlogs.length > 0 ? eachObject(material['tlogEntries']) : []
  const reasons = new Set<string>()
  for (const { sig, keyid } of envelope.signatures.flatMap(formsOf)) {
    const bundle = {
      mediaType: entries.every(hasProof) ? MEDIA_TYPE : OLD_MEDIA_TYPE,
      verificationMaterial: { publicKey: { hint: '' }, tlogEntries: entries },
      dsseEnvelope: { payload, payloadType, signatures: [{ sig, keyid }] },
    }
    for (const { key, fingerprint } of keys)
      try {
        verifyWith(bundle, { ...NO_KEYS, tlogs: root.tlogs, publicKey: finderOf(key) })
        return { key: fingerprint, identity: null }
      } catch (error) {
        reasons.add(messageOf(error))
      }
  }
  throw new Error(reasons.size === 1 ? [...reasons].join() : `no trusted key verifies it (${[...reasons].join('; ')})`)
}

/** Bytes of an ECDSA signature that is two numbers one after the other, by the curves P-256, P-384 and P-521. */
const PLAIN_BYTES: readonly number[] = [64, 96, 132]

/** Returns a signature as it is, and one of two plain numbers (IEEE P1363), as some services send them, in DER as well. */
function formsOf(given: Envelope['signatures'][number]): Envelope['signatures'] {
  const bytes = Buffer.from(given.sig, 'base64')
  if (!PLAIN_BYTES.includes(bytes.length)) return [given]
  const half = bytes.length / 2
  const numbers = [bytes.subarray(0, half), bytes.subarray(half)].map(integerOf)
  const der = Buffer.concat([derHead(0x30, Buffer.concat(numbers).length), ...numbers])
  return [given, { ...given, sig: der.toString('base64') }]
}

/** Returns a number as a positive integer in DER. */
function integerOf(number: Buffer): Buffer {
  const first = number.findIndex((byte) => byte !== 0)
  const digits = first < 0 ? Buffer.alloc(1) : number.subarray(first)
  const isNegative = (digits[0] ?? 0) >= 128
  const content = isNegative ? Buffer.concat([Buffer.alloc(1), digits]) : digits
  return Buffer.concat([derHead(0x02, content.length), content])
}

function derHead(tag: number, length: number): Buffer {
  return Buffer.from(length < 128 ? [tag, length] : [tag, 0x81, length])
}

const OLD_MEDIA_TYPE = 'application/vnd.dev.sigstore.bundle+json;version=0.1'

function hasProof({ inclusionProof }: Fields): boolean {
  return isObject(inclusionProof)
}

function finderOf(publicKey: TrustedKey['key']): TrustMaterial['publicKey'] {
  return () => ({ publicKey, validFor: () => true })
}

function verifyWith(bundle: object, trust: TrustMaterial): void {
  const verifier = new Verifier(trust, { timestampThreshold: 0, tlogThreshold: 0 })
  inWords(() => verifier.verify(toSignedEntity(bundleFromJSON(bundle))))
}

/** What the codes of the library mean. */
const MEANINGS: Readonly<Partial<Record<string, string>>> = {
  CERTIFICATE_ERROR: 'its certificate is not accepted',
  PUBLIC_KEY_ERROR: 'its key is not accepted',
  SIGNATURE_ERROR: 'the signature does not fit the content or the key',
  TIMESTAMP_ERROR: 'the time of its signature is not proved',
  TLOG_BODY_ERROR: 'its log entry is about something else',
  TLOG_ERROR: 'its log entry is not accepted',
  TLOG_INCLUSION_PROMISE_ERROR: 'its log entry is not of a trusted log',
  TLOG_INCLUSION_PROOF_ERROR: 'its log entry is not of a trusted log',
  TLOG_MISSING_INCLUSION_ERROR: 'its log entry proves nothing',
}

/** Does a verification; an error of the library, also one about a form that it cannot read, is thrown in words. */
function inWords<T>(verify: () => T): T {
  try {
    return verify()
  } catch (error) {
    const { code = '', cause } = fieldsOf(error)
    const meaning = MEANINGS[String(code)] ?? 'it cannot be read'
    const why = [messageOf(error), ...(cause instanceof Error ? [messageOf(cause)] : [])]
    throw new Error(`${meaning} (${why.join(': ')})`, { cause: error })
  }
}
