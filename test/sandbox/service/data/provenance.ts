import { type KeyObject, createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto'
import { seconds } from '../../feed/generate.ts'
import type { Random } from '../../feed/random.ts'
import { NEWEST } from './tickets.ts'
import { digestFor } from './collection.ts'
import { jsonBytes } from '../replies.ts'

/** The payload type of in-toto statements. */
export const IN_TOTO_TYPE = 'application/vnd.in-toto+json'
/** What PKCS #8 puts before the 32 bytes of an Ed25519 private key. */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex')

/** An in-toto statement with a SLSA provenance in a DSSE envelope, signed with the seed's own key. */
export function provenance(seed: number, random: Random): Buffer {
  const payload = jsonBytes(statement(random))
  const signature = sign(null, authenticated(payload), privateKeyOf(seed))
  const keyid = createHash('sha256').update(publicKey(seed)).digest('hex')
  return jsonBytes({
    payloadType: IN_TOTO_TYPE,
    payload: payload.toString('base64'),
    signatures: [{ keyid, sig: signature.toString('base64') }],
  })
}

/** The public key of a seed's provenances, PEM. Ed25519, because its signatures are the same each time. */
export function publicKey(seed: number): Buffer {
  const pem = createPublicKey(privateKeyOf(seed)).export({ type: 'spki', format: 'pem' })
  return Buffer.from(pem)
}

/** What DSSE signs: the pre-authentication encoding of type and payload. */
export function authenticated(payload: Buffer, type = IN_TOTO_TYPE): Buffer {
  const head = `DSSEv1 ${type.length} ${type} ${payload.length} `
  return Buffer.concat([Buffer.from(head), payload])
}

/** The private key of a seed. */
export function privateKeyOf(seed: number): KeyObject {
  const bytes = createHash('sha256').update(`sandbox provenance key ${seed}`).digest()
  const key = Buffer.concat([PKCS8_HEAD, bytes])
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' })
}

function statement(random: Random): object {
  const digest = (): { sha256: string } => ({ sha256: digestFor(random).slice('sha256:'.length) })
  const at = NEWEST - random.int(300) * 86_400_000
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ name: 'cr.example.com/image', digest: digest() }],
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'https://slsa.example.com/remediation/v1',
        externalParameters: { source: 'git+https://git.example.com/image' },
        internalParameters: {},
        resolvedDependencies: [{ uri: 'git+https://git.example.com/image', digest: digest() }],
      },
      runDetails: {
        builder: { id: 'https://builder.example.com/remediation' },
        metadata: {
          invocationId: String(random.int(2 ** 31)),
          startedOn: seconds(at),
          finishedOn: seconds(at + random.int(3_600_000)),
        },
      },
    },
  }
}
