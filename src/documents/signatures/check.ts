import type { Config } from '../../config/schema.ts'
import { sha256Hex } from '../../base/digest.ts'
import { messageOf } from '../../base/errors.ts'
import { matchesPattern } from '../../base/domain/patterns.ts'
import { type ArtifactSignature, signatureMode } from '../../base/domain/artifacts/signature.ts'
import { fieldsOf } from '../../base/json/objects.ts'
import { subjectDigests } from '../envelopes.ts'
import { isStatement, membersIn } from '../formats.ts'
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
  /**
   * Verifies the documents of an artifact. `subjects`: the image digests that the catalog says of it, the image's own first, then
   * those of its index and platforms; none: it says none.
   */
  judge(documents: Iterable<GivenDocument>, subjects: readonly string[]): Promise<ArtifactSignature>
}

/** Changes when the same document would be judged in another way. */
const RULES = 2

/**
 * Creates the verification; null: the settings want none. `carried`: the trust root that bundles brought. Throws `config` where
 * a file of the trust root cannot be used.
 */
export function createSignatureCheck(
  settings: SignatureSettings,
  carried: readonly string[] = [],
): SignatureCheck | null {
  const mode = signatureMode(settings)
  if (mode === 'off') return null
  const trust = readTrust(settings.trustRoot, carried)
  const verify = createVerification(trust)
  const judgeOne = async (content: Buffer, subjects: readonly string[]): Promise<Judged> => {
    const found = signedPartsOf(content)
    if (found.state === 'key') return found
    if (found.state === 'none') return { state: 'none', reason: 'it has no signature' }
    if (found.state === 'failed') return found
    const signers = new Set<string>()
    let subject: string | null = null
    for (const part of found.parts)
      try {
        const named = subjectIn(part, subjects)
        signers.add(nameOf(await verify(part), settings.signers))
        subject ??= named
      } catch (error) {
        return { state: 'failed', reason: messageOf(error) }
      }
    return { state: 'verified', signers: [...signers], subject }
  }
  return {
    basis: sha256Hex(JSON.stringify([RULES, mode, settings.signers, trust.digest])),
    isEnforced: mode === 'enforce',
    async judge(documents, subjects) {
      const judged: Judged[] = []
      for (const document of documents)
        judged.push(
          Buffer.isBuffer(document)
            ? await judgeOne(document, subjects)
            : { state: 'failed', reason: document.unreadable },
        )
      const [own = null] = subjects
      const named = judged.find((one) => one.state === 'verified')?.subject ?? null
      const result = summaryOf(judged)
      return { ...result, subject: result.state === 'verified' ? named : own }
    },
  }
}

/** The result for one document; `key`: it is a public key, which says nothing. */
type Judged =
  | { readonly state: 'verified'; readonly signers: readonly string[]; readonly subject: string | null }
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

/**
 * Returns which of an image's digests a statement is about; null where none is known. Throws where the content is no in-toto
 * statement, or is one about another image.
 */
function subjectIn({ envelope }: SignedPart, expected: readonly string[]): string | null {
  const { payload, payloadType } = envelope
  if (payloadType !== IN_TOTO)
    throw new Error(`its payload type is ${JSON.stringify(payloadType.slice(0, 100))}, not ${IN_TOTO}`)
  const statement = statementOf(payload)
  if (!isStatement(membersIn(statement))) throw new Error('its payload is not an in-toto statement')
  const [own] = expected
  if (own === undefined) return null
  const digests = subjectDigests(statement)
  const named = expected.find((one) => digests.includes(one.toLowerCase()))
  if (named !== undefined) return named
  const [first = 'nothing'] = digests
  throw new Error(`it is about ${first.slice(0, 100)}, not about the image ${own}`)
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
