import type { Config } from '../config/schema.ts'
import { sha256Hex } from '../core/digest.ts'
import { messageOf } from '../core/errors.ts'
import { matchesPattern } from '../domain/patterns.ts'
import { type ArtifactSignature, signatureMode } from '../domain/artifacts/signature.ts'
import { eachObject, fieldsOf } from '../json/objects.ts'
import { type SignedPart, signedPartsOf } from './envelopes.ts'
import type { VerifiedSigner } from './sigstore.ts'
import { type Trust, readTrust } from './trust.ts'

/** Settings of the verification. */
export type SignatureSettings = Pick<Config['catalog'], 'signatures' | 'signers' | 'trustRoot'>

/** A document of an artifact: its content, or why it cannot be verified. */
export type GivenDocument = Buffer | { readonly unreadable: string }

/** The verification of artifacts by the settings. */
export interface SignatureCheck {
  /** Another one for other settings, keys or rules: what was verified by another one is verified again. */
  readonly basis: string
  readonly isEnforced: boolean
  /** Verifies the documents of an artifact; `subject`: the image digest that the catalog says of it, null for none. */
  judge(documents: Iterable<GivenDocument>, subject: string | null): Promise<ArtifactSignature>
}

/** Changes when the same document would be judged in another way. */
const RULES = 1

/** Creates the verification; null: the settings want none. Throws `config` where a file of the trust root cannot be used. */
export function createSignatureCheck(settings: SignatureSettings): SignatureCheck | null {
  const mode = signatureMode(settings)
  if (mode === 'off') return null
  const trust = readTrust(settings.trustRoot)
  const verify = createVerification(trust)
  const judgeOne = async (content: Buffer, subject: string | null): Promise<Judged> => {
    const found = signedPartsOf(content)
    if (found.state === 'key') return found
    if (found.state === 'none') return { state: 'none', reason: 'it has no signature' }
    if (found.state === 'failed') return found
    const signers = new Set<string>()
    for (const part of found.parts)
      try {
        refuseOtherStatement(part, subject)
        signers.add(nameOf(await verify(part), settings.signers))
      } catch (error) {
        return { state: 'failed', reason: messageOf(error) }
      }
    return { state: 'verified', signers: [...signers] }
  }
  return {
    basis: sha256Hex(JSON.stringify([RULES, mode, settings.signers, trust.digest])),
    isEnforced: mode === 'enforce',
    async judge(documents, subject) {
      const judged: Judged[] = []
      for (const document of documents)
        judged.push(
          Buffer.isBuffer(document)
            ? await judgeOne(document, subject)
            : { state: 'failed', reason: document.unreadable },
        )
      return { ...summaryOf(judged), subject }
    },
  }
}

/** The result for one document; `key`: it is a public key, which says nothing. */
type Judged =
  | { readonly state: 'verified'; readonly signers: readonly string[] }
  | { readonly state: 'failed' | 'none'; readonly reason: string }
  | { readonly state: 'key' }

/** Returns the result for an artifact: the worst of its documents. */
function summaryOf(judged: readonly Judged[]): Omit<ArtifactSignature, 'subject'> {
  for (const state of ['failed', 'none'] as const) {
    const worst = judged.find((one) => one.state === state)
    if (worst !== undefined && 'reason' in worst) return { state, signer: null, reason: worst.reason }
  }
  const signers = new Set(judged.flatMap((one) => ('signers' in one ? one.signers : [])))
  if (signers.size === 0) return { state: 'none', signer: null, reason: 'it has no signed document' }
  return { state: 'verified', signer: [...signers].join(' and '), reason: null }
}

/** Creates the verification of a statement. The library is loaded with the first one. */
function createVerification(trust: Trust): (part: SignedPart) => Promise<VerifiedSigner> {
  let loading: Promise<(part: SignedPart) => VerifiedSigner> | null = null
  const load = async () => {
    const { createSigstore } = await import('./sigstore.ts')
    return createSigstore(trust)
  }
  return async (part) => (await (loading ??= load()))(part)
}

const IN_TOTO = 'application/vnd.in-toto+json'
const STATEMENT = 'https://in-toto.io/Statement/'

/** Throws where the content is no in-toto statement, or is one about another image. */
function refuseOtherStatement({ envelope }: SignedPart, subject: string | null): void {
  const { payload, payloadType } = envelope
  if (payloadType !== IN_TOTO)
    throw new Error(`its payload type is ${JSON.stringify(payloadType.slice(0, 100))}, not ${IN_TOTO}`)
  const { _type: type, subject: subjects } = statementOf(payload)
  if (typeof type !== 'string' || !type.startsWith(STATEMENT))
    throw new Error('its payload is not an in-toto statement')
  if (subject === null) return
  const digests = eachObject(subjects).flatMap(({ digest }) =>
    Object.entries(fieldsOf(digest)).map(([kind, hex]) => `${kind}:${String(hex)}`.toLowerCase()),
  )
  if (digests.includes(subject.toLowerCase())) return
  const [first = 'nothing'] = digests
  throw new Error(`it is about ${first.slice(0, 100)}, not about the image ${subject}`)
}

function statementOf(payload: string) {
  try {
    return fieldsOf(JSON.parse(Buffer.from(payload, 'base64').toString('utf8')))
  } catch (error) {
    throw new Error('its payload is not JSON', { cause: error })
  }
}

/** Returns the name of a verified signer. Throws for an identity that the settings do not name: anyone can have one. */
function nameOf({ key, identity }: VerifiedSigner, expected: readonly string[]): string {
  if (identity === null) return `key sha256:${key}`
  const { subject, issuer } = identity
  const name = `${subject} (issuer ${issuer})`
  const isExpected = expected.some((one) => isSigner(one, subject, issuer))
  if (isExpected) return name
  throw new Error(`it is signed by ${name}, whom catalog.signers does not name`)
}

/** Whether an entry of `catalog.signers`, an issuer and the pattern of a subject, names an identity. */
function isSigner(entry: string, subject: string, issuer: string): boolean {
  const [wanted = '', pattern = ''] = entry.split(' ')
  return issuer === wanted && matchesPattern(pattern, subject)
}
