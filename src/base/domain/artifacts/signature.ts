/** What the verification of an artifact's signatures came to: each of its documents is verified, one failed, or one has none. */
type SignatureState = 'verified' | 'failed' | 'none'

/** The result for one artifact. */
export interface ArtifactSignature {
  readonly state: SignatureState
  /** Who signed, as the verified key or certificate says; null: not verified. */
  readonly signer: string | null
  /** Why it is not verified; null: it is. */
  readonly reason: string | null
  /** The image digest of the catalog, which the signed statement names: of the image, its index or a platform; null: the catalog says none. */
  readonly subject: string | null
}

/** A result as it is stored. */
export interface StoredSignature extends ArtifactSignature {
  /** Whether what is not verified must not be believed (`catalog.signatures: enforce`). */
  readonly isEnforced: boolean
}

/** Numbers of artifacts by their result. */
export type SignatureCounts = Readonly<Record<SignatureState, number>>

/** What of the settings says whether artifacts are verified. */
interface SignatureModeSettings {
  readonly signatures: 'off' | 'warn' | 'enforce' | null
  readonly trustRoot: readonly string[]
}

/** Returns how artifacts are verified: without a setting, they are where something is trusted. */
export function signatureMode(settings: SignatureModeSettings): 'off' | 'warn' | 'enforce' {
  const { signatures, trustRoot } = settings
  return signatures ?? (trustRoot.length > 0 ? 'warn' : 'off')
}

/** The name of the header field with the result. */
const SIGNATURE_HEADER = 'X-Mirror-Signature'

/** Longest text of a signer or a reason in a header or a line, characters. */
const LONGEST = 300

/** Returns whether an artifact must not rule anything out: it is not verified, and the settings enforce signatures. */
export function isDisbelieved(signature: StoredSignature | null | undefined): boolean {
  return signature?.isEnforced === true && signature.state !== 'verified'
}

/** Returns the header field of an artifact's answer as a flat list; empty where signatures are not verified. */
export function signatureFields(signature: ArtifactSignature | null): string[] {
  return signature === null ? [] : [SIGNATURE_HEADER, headerValue(signature)]
}

function headerValue({ state, signer, reason, subject }: ArtifactSignature): string {
  if (state === 'none') return state
  if (state === 'failed') return `failed; reason=${headerText(reason ?? 'unknown')}`
  return `verified; signer=${headerText(signer ?? 'unknown')}; subject=${headerText(subject ?? 'not compared')}`
}

/** Returns a text as it may stand in a header: what is not printable ASCII, or would end the text there, is percent-encoded. */
function headerText(text: string): string {
  const encoded = encodeURI(text.slice(0, LONGEST).toWellFormed())
  return encoded.replaceAll('%20', ' ').replaceAll(';', '%3B').replaceAll(',', '%2C').trim()
}

/** Returns the result in words. */
export function signatureText({ state, signer, reason, subject }: ArtifactSignature): string {
  if (state === 'none') return `not signed: ${reason ?? 'it has no signature'}`
  if (state === 'failed') return `failed: ${reason ?? 'unknown'}`
  const compared = subject === null ? '; the catalog says no image digest to compare' : ''
  return `verified: signed by ${signer ?? 'unknown'}${compared}`
}

/** Returns a stored result as it is shown to users. */
export function plainResult({ state, signer, reason, subject }: ArtifactSignature): ArtifactSignature {
  return { state, signer, reason, subject }
}
