import { type KeyObject, generateKeyPairSync, sign } from 'node:crypto'
import { jsonBytes } from '../replies.ts'
import { IN_TOTO_TYPE, authenticated, privateKeyOf } from './provenance.ts'

/** What is wrong with a signed document. */
export type SigningFault =
  /** The signature is of a key that the service does not publish. */
  | 'wrongKey'
  /** The statement is about another image. */
  | 'otherSubject'
  /** The payload was changed after it was signed. */
  | 'altered'
  /** The envelope says another type of payload; it is signed with that. */
  | 'payloadType'
  /** The list of signatures is empty. */
  | 'noSignature'

/** What to sign, for which image, and how. */
interface SigningOptions {
  readonly seed: number
  /** The document in JSON. */
  readonly predicate: unknown
  readonly predicateType: string
  /** Digest of the image, `sha256:…`. */
  readonly digest: string
  readonly fault: SigningFault | null
}

const OTHER_DIGEST = 'f'.repeat(64)

/** Returns a document as an in-toto statement in a DSSE envelope, signed with the seed's own key, with a fault if one is asked for. */
export function signedDocument(options: SigningOptions): Buffer {
  const { seed, fault } = options
  const type = fault === 'payloadType' ? 'application/json' : IN_TOTO_TYPE
  const payload = jsonBytes(statementOf(options))
  const key: KeyObject =
    fault === 'wrongKey' ? generateKeyPairSync('ed25519').privateKey : privateKeyOf(seed)
  const sig = sign(null, authenticated(payload, type), key).toString('base64')
  const sent = fault === 'altered' ? alteredPayload(payload) : payload
  return jsonBytes({
    payloadType: type,
    payload: sent.toString('base64'),
    signatures: fault === 'noSignature' ? [] : [{ keyid: '', sig }],
  })
}

function statementOf({ predicate, predicateType, digest, fault }: SigningOptions): object {
  const sha256 = fault === 'otherSubject' ? OTHER_DIGEST : digest.slice('sha256:'.length)
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ name: 'cr.example.com/image', digest: { sha256 } }],
    predicateType,
    predicate,
  }
}

/** The same statement with one more member. */
function alteredPayload(payload: Buffer): Buffer {
  const statement = JSON.parse(payload.toString()) as object // made above
  return jsonBytes({ ...statement, altered: true })
}

const PREDICATE_TYPES = {
  sbom: 'https://cyclonedx.org/bom',
  vex: 'https://openvex.dev/ns/v0.2.0',
  provenance: 'https://slsa.dev/provenance/v1',
} as const

/** Returns what a statement says, of a document as the sandbox made it: of one that is signed already, its predicate. */
export function statedIn(
  kind: keyof typeof PREDICATE_TYPES,
  document: Buffer,
): Pick<SigningOptions, 'predicate' | 'predicateType'> {
  const value = JSON.parse(document.toString()) as { payload?: string } // the sandbox's own
  const predicateType = PREDICATE_TYPES[kind]
  if (value.payload === undefined) return { predicate: value, predicateType }
  const statement = JSON.parse(Buffer.from(value.payload, 'base64').toString()) as { predicate: unknown }
  return { predicate: statement.predicate, predicateType }
}
