import { type KeyObject, sign } from 'node:crypto'
import { type Authority, type Log, SIGNED_AT, entryOf } from './authority.ts'

/** The payload type of in-toto statements. */
export const IN_TOTO = 'application/vnd.in-toto+json'

/** A DSSE envelope. */
export interface Envelope {
  payloadType: string
  payload: string
  signatures: { keyid: string; sig: string }[]
}

/** Returns an in-toto statement about an image, `sha256:…`, as bytes. */
export function statementOf(image: string, predicate: unknown = {}): Buffer {
  const subject = [{ name: 'image', digest: { sha256: image.slice('sha256:'.length) } }]
  const predicateType = 'https://openvex.dev/ns/v0.2.0'
  return Buffer.from(JSON.stringify({ _type: 'https://in-toto.io/Statement/v1', subject, predicateType, predicate }))
}

/** Returns an envelope that each of the keys signed. */
export function envelopeOf(payload: Buffer, keys: readonly KeyObject[], type = IN_TOTO): Envelope {
  const head = Buffer.from(`DSSEv1 ${type.length} ${type} ${payload.length} `)
  const signed = Buffer.concat([head, payload])
  const signatures = keys.map((key) => {
    const algorithm = key.asymmetricKeyType === 'ed25519' ? null : 'sha256'
    return { keyid: '', sig: sign(algorithm, signed, key).toString('base64') }
  })
  return { payloadType: type, payload: payload.toString('base64'), signatures }
}

/** A Sigstore bundle with a certificate. */
export interface KeylessBundle {
  mediaType: string
  verificationMaterial: { certificate: { rawBytes: string }; tlogEntries: object[] }
  dsseEnvelope: Envelope
}

interface KeylessOptions {
  readonly issued?: ReturnType<Authority['issue']>
  readonly log?: Log
  /** When the log took the entry. */
  readonly at?: Date
}

/** Returns a bundle that an identity of an authority signed, and its log took. */
export function keylessBundle(
  authority: Authority,
  payload: Buffer,
  { issued = authority.issue(), log = authority.log, at = SIGNED_AT }: KeylessOptions = {},
): KeylessBundle {
  const dsseEnvelope = envelopeOf(payload, [issued.key])
  const [first] = dsseEnvelope.signatures
  const entry = entryOf(log, { payload: dsseEnvelope.payload, sig: first?.sig ?? '' }, at)
  return {
    mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
    verificationMaterial: {
      certificate: { rawBytes: issued.certificate.toString('base64') },
      tlogEntries: [entry],
    },
    dsseEnvelope,
  }
}
