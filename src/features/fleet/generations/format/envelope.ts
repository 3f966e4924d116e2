import { MirrorError, messageOf } from '../../../../base/errors.ts'
import type { KeyTrust, SigningKey } from '../../../bundles/format/keys.ts'
import { judgeSignatures } from '../../../bundles/format/signatures.ts'
import { recordOf, shape, textField } from '../../../../base/json/shapes.ts'
import {
  GENERATION_CAPS,
  type Generation,
  type KnownGeneration,
  digestOfObject,
  parseGeneration,
} from './generation.ts'
import { refuseGeneration } from './refusals.ts'

/** What is signed is this line and then the payload, so that no signature of another kind of text fits. */
const PURPOSE = 'patchmirror-generation\n'

/** Signatures in base64, by the id of their key. */
export type Signatures = Partial<Record<string, string>>

interface Envelope {
  payload: string
  signatures: Signatures
}

const oneSignature = textField(/^[\w+/]{86}==$/, 'a signature in base64')

/** Accepts the signatures of a text. */
export const signaturesField = recordOf(/^[\da-f]{16}$/, oneSignature, GENERATION_CAPS.keys)

const envelope = shape<Envelope>({
  payload: textField({ test: (text) => text.length <= GENERATION_CAPS.bytes }, 'a payload'),
  signatures: signaturesField,
})

/** Returns the object of a generation, signed by these keys. */
export function sealGeneration(
  unsigned: Omit<Generation, 'keys'>,
  keys: readonly SigningKey[],
): { bytes: Buffer } & KnownGeneration {
  const generation: Generation = { ...unsigned, keys: keys.map(({ id }) => id) }
  const payload = JSON.stringify(generation)
  const signatures = Object.fromEntries(keys.map((key) => [key.id, key.sign(signed(payload)).toString('base64')]))
  const bytes = Buffer.from(textOf(payload, signatures))
  return { generation, bytes, sha256: digestOfObject(bytes) }
}

/**
 * Opens the object of a generation: signatures first, then the payload. `vouched`: the SHA-256 of one that was verified when it was
 * taken here, or that a verified one names; its keys may be revoked or forgotten since. Throws `fleet` with the reason `untrusted` or
 * `malformed`.
 */
export function openGeneration(
  bytes: Buffer,
  trust: KeyTrust,
  key: string,
  vouched: string | null = null,
): KnownGeneration {
  const sha256 = digestOfObject(bytes)
  const { payload, signatures } = readEnvelope(bytes, key)
  try {
    if (sha256 !== vouched) judgeSignatures(signed(payload), signatures, trust)
  } catch (error) {
    throw refused('untrusted', key, error)
  }
  try {
    const generation = parseGeneration(payload)
    if (generation.keys.join() !== [...signatures.keys()].join())
      throw new MirrorError('bundle', 'its signatures are not those that its payload names')
    return { generation, sha256 }
  } catch (error) {
    throw refused('malformed', key, error)
  }
}

function readEnvelope(bytes: Buffer, key: string): { payload: string; signatures: Map<string, Buffer> } {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    const { payload, signatures } = envelope(JSON.parse(text), `${key}:`)
    // Its digest is a link of the chain: only who can sign may make another one of the same generation.
    if (textOf(payload, signatures) !== text)
      throw new MirrorError('bundle', 'it is not written as this program writes it')
    return { payload, signatures: bytesOfSignatures(signatures) }
  } catch (error) {
    throw refused('malformed', key, error)
  }
}

function textOf(payload: string, signatures: Envelope['signatures']): string {
  return `${JSON.stringify({ payload, signatures })}\n`
}

/** Returns the bytes of signatures. Throws `bundle` for one that is written otherwise than this program writes it. */
export function bytesOfSignatures(signatures: Signatures): Map<string, Buffer> {
  return new Map(Object.entries(signatures).map(([id, value = '']) => [id, signatureIn(value)]))
}

function signatureIn(base64: string): Buffer {
  const bytes = Buffer.from(base64, 'base64')
  if (bytes.toString('base64') === base64) return bytes
  throw new MirrorError('bundle', 'a signature is not written as this program writes it')
}

function refused(why: 'untrusted' | 'malformed', key: string, error: unknown): MirrorError {
  return refuseGeneration(why, `the generation ${key} is refused: ${messageOf(error)}`, {
    cause: error,
  })
}

function signed(payload: string): Buffer {
  return Buffer.from(PURPOSE + payload)
}
