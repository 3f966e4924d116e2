import { messageOf, MirrorError } from '../../../base/errors.ts'
import type { KeyTrust, SigningKey } from '../../bundles/format/keys.ts'
import { judgeSignatures } from '../../bundles/format/signatures.ts'
import { integerField, orNull, shape } from '../../../base/json/shapes.ts'
import { GENERATION_CAPS } from '../generations/format/generation.ts'
import { type Signatures, bytesOfSignatures, signaturesField } from '../generations/format/envelope.ts'

/** Path at which a mirror of a fleet is notified that a generation is about to be published. */
export const LOOK_PATH = '/-/fleet/look'

/** Most bytes of the message: those of as many signatures as a generation may have. */
export const LOOK_BYTES = 128 * (1 + GENERATION_CAPS.keys)

/** What is signed is this line, then the id of the mirror that is notified, then the number: no signature of another text fits. */
const PURPOSE = 'patchmirror-look\n'

interface Message {
  generation: number
  signatures: Signatures
}

const message = shape<Message>({ generation: integerField(1), signatures: signaturesField })

/** Returns the message that notifies a mirror, by its id, of a generation; signed by these keys. */
export function sealLook(generation: number, mirror: string, keys: readonly SigningKey[]): string {
  const text = signed(generation, mirror)
  const signatures = Object.fromEntries(keys.map((key) => [key.id, key.sign(text).toString('base64')]))
  return JSON.stringify({ generation, signatures } satisfies Message)
}

/** Returns the number in a message to this mirror. Throws `bundle` unless a trusted key signed it for this mirror. */
export function openLook(bytes: Buffer, mirror: string, trust: KeyTrust): number {
  const { generation, signatures } = message(parse(bytes), 'look:')
  judgeSignatures(signed(generation, mirror), bytesOfSignatures(signatures), trust)
  return generation
}

function signed(generation: number, mirror: string): Buffer {
  return Buffer.from(`${PURPOSE}${mirror}\n${generation}`)
}

/** How a mirror took over a generation: from the look that found it until it was ready to be served, and its bundles. */
export interface Takeover {
  ms: number
  bytes: number
}

/** What a mirror answers when it looks for the generation. */
export interface LookAnswer {
  /** The generation that it stores; 0: none, or it cannot follow. */
  generation: number
  /** The slowest of its last takeovers; null: it has had none since its start. */
  took: Takeover | null
}

const answer = shape<LookAnswer>({
  generation: integerField(0),
  took: orNull(shape<Takeover>({ ms: integerField(1), bytes: integerField(1) })),
})

/** Parses the answer of a mirror. Throws `bundle`. */
export function parseLookAnswer(bytes: Buffer): LookAnswer {
  return answer(parse(bytes), 'answer:')
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    throw new MirrorError('bundle', `it is not JSON (${messageOf(error)})`)
  }
}
