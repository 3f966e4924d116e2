import { resourceNamed, listPathOf } from '../../base/domain/resources.ts'
import { sha256Hex } from '../../base/digest.ts'
import { MirrorError } from '../../base/errors.ts'
import { counted } from '../../base/text.ts'
import { type SignatureCounts, signatureText } from '../../base/domain/artifacts/signature.ts'
import { digestsInTag } from '../../base/json/forms/tag-digests.ts'
import {
  type GivenDocument,
  type SignatureCheck,
  type SignatureSettings,
  createSignatureCheck,
} from '../../documents/signatures/check.ts'
import { MAX_SIGNED_BYTES } from '../../documents/signatures/envelopes.ts'
import type { FetchedAnswer } from '../../store/catalog/answer-writes.ts'
import type { CatalogLink } from '../../store/catalog/answers.ts'
import { parseItem } from '../../store/catalog/lists.ts'
import { type SignatureRow, type SignedPath, signedState } from '../../store/catalog/signatures.ts'
import { unpackedContent, wholeContent } from '../../store/catalog/whole-content.ts'
import type { Writes } from '../../store/writes.ts'
import type { Task } from './answers/plan.ts'
import type { CatalogContext } from './context.ts'
import { namesOfTag } from './new-tags.ts'

/** Answers whose results are stored in one transaction. */
const STORED_AT_ONCE = 100
/** Artifacts that the run names. */
const NAMED = 20

/**
 * Verifies the signatures of a fetched artifact, and stores the result beside it. Throws `upstream_shape` where the settings
 * enforce signatures and it is not verified: it is refused like a damaged one, and what is stored stays.
 */
export async function judgeFetched(context: CatalogContext, task: Task, answer: FetchedAnswer): Promise<void> {
  const { signatures: check, store } = context
  if (check === null || answer.status !== 200) return
  if (task.document === null || task.document === 'text') return
  const signed = { ...answer, path: task.canonical }
  const row = await judge(store, check, signed, subjectsOf(context, task.owner))
  if (row === null) return
  if (check.isEnforced && row.state !== 'verified')
    throw new MirrorError(
      'upstream_shape',
      `${task.path}: its signature is not accepted: ${signatureText(row)} (catalog.signatures: enforce)`,
    )
  await context.keep(() => store.catalog.putSignature(row, true))
}

/**
 * Brings the stored results to the stored artifacts and the settings: what was verified by other keys, as something else, or not at
 * all, as after an import, is verified again. Returns the numbers; null: nothing is verified.
 */
export async function settleSignatures(store: Writes, settings: SignatureSettings): Promise<SignatureCounts | null> {
  const check = createSignatureCheck(settings, store.catalog.listCarriedTrust())
  if (check === null) {
    if (store.catalog.countSignatures() !== null) await store.exclusive(() => store.catalog.dropSignatures())
    return null
  }
  let rows: SignatureRow[] = []
  const keep = async (): Promise<void> => {
    const kept = rows
    rows = []
    await store.transaction(() => {
      for (const row of kept) store.catalog.putSignature(row, false)
      return Promise.resolve({ commit: true })
    })
  }
  for (const signed of [...store.catalog.eachSignedPath()]) {
    const row = await judge(store, check, signed, storedSubjects(store, signed.owner))
    if (row !== null && !isStored(store, row)) rows.push(row)
    if (rows.length >= STORED_AT_ONCE) await keep()
  }
  if (rows.length > 0) await keep()
  await store.exclusive(() => store.catalog.sweepSignatures())
  return store.catalog.countSignatures()
}

/** Says in a run how many artifacts are not verified, and which first; null: all are, or nothing is verified. */
export async function noteSignatures({ store, config, facts }: CatalogContext): Promise<string | null> {
  const counts = await settleSignatures(store, config.catalog)
  if (counts === null) return null
  const { verified, failed, none } = counts
  facts['signaturesVerified'] = verified
  const disbelieved = [uncomparedIn(store), unsureIn(store)].filter((one) => one !== null)
  if (disbelieved.length > 0) facts['vexNotBelieved'] = disbelieved.reduce((sum, { paths }) => sum + paths.length, 0)
  const texts = disbelieved.map(({ paths, why }) => notBelieved(paths, why))
  if (failed + none === 0) return texts.length === 0 ? null : texts.join('; ')
  facts['signaturesFailed'] = failed
  facts['signaturesNone'] = none
  const wrong = store.catalog.listUnverified(NAMED).map((row) => `${row.path}: ${signatureText(row)}`)
  facts['unverified'] = wrong
  const first = wrong.slice(0, 3).join('; ')
  const text = `signatures: ${counted(failed, 'artifact')} failed, ${none} without one: ${first}`
  return [text, ...texts].join('; ')
}

/** Verified VEX that rules nothing out, and why. */
interface Disbelieved {
  readonly paths: readonly string[]
  readonly why: string
}

/** The VEX of tags of which the catalog names no digest to compare its signed subject with; null: none. */
function uncomparedIn(store: Writes): Disbelieved | null {
  const paths = store.catalog.listUncomparedVex()
  return paths.length === 0 ? null : { paths, why: 'the catalog names no image digest to compare' }
}

/** The verified VEX of tags whose SBOM is not verified as one of the image that the catalog lists; null: none. */
function unsureIn(store: Writes): Disbelieved | null {
  const all = store.vex.listUnsureTags().map((id) => store.catalog.readSignatureRow(`/v1/${TAGS}${id}/vex`))
  const paths = all.flatMap((row) => (row?.state === 'verified' && row.subject !== null ? [row.path] : []))
  return paths.length === 0
    ? null
    : { paths, why: 'the SBOM of the tag is not verified for the digest that the catalog lists' }
}

function notBelieved(paths: readonly string[], why: string): string {
  const named = paths.slice(0, 3).join(', ')
  return `signatures: the VEX of ${counted(paths.length, 'tag')} rules nothing out, because ${why} (catalog.signatures: enforce): ${named}`
}

type Judged = Pick<SignedPath, 'path' | 'status' | 'sha256' | 'links'>

async function judge(
  store: Writes,
  check: SignatureCheck,
  signed: Judged,
  subjects: readonly string[],
): Promise<SignatureRow | null> {
  const { path, links } = signed
  const answer = signedState(signed)
  if (answer === null) return null
  const before = store.catalog.readSignatureRow(path)
  const basis = sha256Hex(JSON.stringify([check.basis, subjects]))
  if (before?.answer === answer && before.basis === basis) return before
  const result = await check.judge(documentsOf(store.catalog, links), subjects)
  return { ...result, path, answer, basis, isEnforced: check.isEnforced }
}

function isStored(store: Writes, { path, answer, basis }: SignatureRow): boolean {
  const row = store.catalog.readSignatureRow(path)
  return row?.answer === answer && row.basis === basis
}

/** Returns the image digests of a tag as the run lists it; none for what is no tag, and for one without a digest. */
function subjectsOf({ store }: CatalogContext, owner: string): string[] {
  const id = tagOf(owner)
  if (id === null) return []
  const list = listPathOf(resourceNamed('tags'))
  return digestsIn(store.catalog.staging.readStaged(list, id) ?? store.catalog.readTagItem(id))
}

function storedSubjects(store: Writes, owner: string): string[] {
  const id = tagOf(owner)
  return id === null ? [] : digestsIn(store.catalog.readTagItem(id))
}

const TAGS = 'tags/'

function tagOf(owner: string): string | null {
  return owner.startsWith(TAGS) ? owner.slice(TAGS.length) : null
}

/** Returns the digest of a tag, then those of its index and platforms: what is signed for one of these is the tag's. */
function digestsIn(item: Buffer | null): string[] {
  if (item === null) return []
  const fields = parseItem(item)
  const { digest } = namesOfTag(fields)
  const all = digestsInTag(fields).map((one) => one.digest)
  return [...new Set([...(digest === null ? [] : [digest.toLowerCase()]), ...all])]
}

/** Iterates over the documents of an artifact, one in memory at a time; of a gzip file what is in it. */
function* documentsOf(
  reader: Parameters<typeof wholeContent>[0],
  links: readonly CatalogLink[],
): Generator<GivenDocument> {
  for (const { digest } of links) yield contentOfDocument(reader, digest)
}

function contentOfDocument(reader: Parameters<typeof wholeContent>[0], digest: string): GivenDocument {
  const stored = wholeContent(reader, digest, MAX_SIGNED_BYTES)
  if (typeof stored === 'string') return unreadable(stored)
  if (sha256Hex(stored) !== digest) return unreadable('incomplete')
  const content = unpackedContent(stored, MAX_SIGNED_BYTES)
  return typeof content === 'string' ? unreadable(content) : content
}

function unreadable(why: 'absent' | 'too large' | 'incomplete'): GivenDocument {
  if (why === 'too large') return { unreadable: `it has more than ${MAX_SIGNED_BYTES} bytes, and is not verified` }
  return { unreadable: 'its stored document is damaged or missing' }
}
