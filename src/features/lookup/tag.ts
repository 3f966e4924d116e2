import {
  type Answer,
  type Fact,
  type Part,
  type Table,
  type Value,
  bytesValue,
  codeValue,
  linkValue,
  textValue,
} from './answers/answer.ts'
import { type ArtifactSignature, plainResult, signatureText } from '../../base/domain/artifacts/signature.ts'
import { type DocumentKind, RESOURCES } from '../../base/domain/resources.ts'
import { MirrorError, messageOf } from '../../base/errors.ts'
import { type Fields, isObject } from '../../base/json/objects.ts'
import { clip } from '../../base/text.ts'
import type { Config } from '../../config/schema.ts'
import { sbomPathOf } from '../../documents/sboms/mirrored.ts'
import { requestedPath, unaskedArtifact } from '../../server/catalog/not-found.ts'
import { nameOfTag } from './reads/tag-names.ts'
import { notReady } from '../../server/snapshot/not-ready.ts'
import { isNone } from '../../store/catalog/answers.ts'
import { NO_SBOM } from '../../store/findings/words.ts'
import type { Reads } from '../../store/reads.ts'
import type { NotJudged } from './change-tables.ts'

/** The reason of a path that a bundle brought as missing. */
const NO_REASON = 'the reason is not stored here; "patchmirror runs" on the mirror that syncs names it'
/** Fields of an item that are shown as they are. */
const MOST_FIELDS = 40

/** Kinds of artifacts that a tag, or a set of artifacts of an AVR, has. */
export type ArtifactKind = Exclude<DocumentKind, 'text'>

/** How much of an artifact is stored. */
export interface Artifact {
  readonly kind: ArtifactKind
  /** The path of the mirror that answers for it. */
  readonly path: string
  readonly documents: readonly { readonly digest: string; readonly type: string; readonly size: number }[]
  /** Why it is not stored, or of an earlier time; null where it is, or where this mirror does not know. */
  readonly why: string | null
  /** What the verification of its signatures came to; null: it was not verified. */
  readonly signature: ArtifactSignature | null
  readonly state:
    | 'stored'
    | 'the service has none'
    | 'refused by the service'
    | 'could not be fetched'
    | 'not fetched yet'
    | 'not in scope'
    | 'not asked for'
}

/** What artifacts are read from. */
interface ArtifactReads {
  readonly config: Config
  readonly reads: Reads
}

/** Returns the artifacts of a tag or an AVR, in the order of their kinds. */
export function readArtifacts(call: ArtifactReads, owner: 'tags' | 'avrs', id: string): Artifact[] {
  const { artifacts = [] } = RESOURCES.find(({ name }) => name === owner) ?? {}
  return artifacts.flatMap(({ path, document }) =>
    document === 'text' ? [] : [artifactOf(call, `${owner}/${id}`, requestedPath(path, { id }), document)],
  )
}

function artifactOf(call: ArtifactReads, owner: string, path: string, kind: ArtifactKind): Artifact {
  const named = { kind, path, documents: [], why: null, signature: null }
  return answeredArtifact(call, owner, path, kind) ?? { ...named, ...whyNotAsked(call.config, call.reads, owner) }
}

/** Returns an artifact of what was asked for; null where nothing of its owner was. */
function answeredArtifact(
  { reads }: Pick<ArtifactReads, 'reads'>,
  owner: string,
  path: string,
  kind: ArtifactKind,
): Artifact | null {
  const { catalog } = reads
  const answer = catalog.readAnswer(path)
  const named = { kind, path, documents: [], why: null, signature: null }
  const missing = catalog.readMissingPath(path)
  if (missing?.status === 403) return { ...named, state: 'refused by the service', why: missing.reason ?? NO_REASON }
  if (answer === null) {
    if (missing !== null) return { ...named, state: 'could not be fetched', why: missing.reason ?? NO_REASON }
    if (catalog.hasAnswers(owner)) return { ...named, state: 'not fetched yet' }
    return null
  }
  if (isNone(answer)) return { ...named, state: 'the service has none' }
  const documents = answer.links.flatMap(({ digest, type }) => {
    const document = catalog.readDocument(digest)
    return document === null ? [] : [{ digest, type: type ?? document.type, size: document.size }]
  })
  const stored = catalog.readSignature(path, answer)
  const why = missing === null ? null : `what is stored is of an earlier time: ${missing.reason ?? NO_REASON}`
  return { ...named, state: 'stored', documents, why, signature: stored && plainResult(stored) }
}

/**
 * Creates what says why a tag is not judged, by its id and the reason that is kept: where nothing of its SBOM is stored, in the words
 * of its artifacts.
 */
export function createWhyNotJudged(call: ArtifactReads) {
  let unasked: Artifact['state'] | null = null // the same for all tags
  return (id: string, refusal: string): string => {
    if (refusal !== NO_SBOM) return refusal
    const owner = `tags/${id}`
    const sbom = answeredArtifact(call, owner, sbomPathOf(id), 'sbom')
    const state = sbom?.state ?? (unasked ??= whyNotAsked(call.config, call.reads, owner).state)
    return state === 'stored' ? 'its SBOM came after the last judgement' : `${NO_SBOM}: ${state}`
  }
}

/** Returns why tags are not judged, the most frequent reasons first; `refused`: each of them with the reason that is kept. */
export function reasonsNotJudged(
  call: ArtifactReads,
  refused: readonly { readonly owner: string; readonly refusal: string }[],
  most: number,
): NotJudged[] {
  const why = createWhyNotJudged(call)
  const groups = [...Map.groupBy(refused, ({ owner, refusal }) => why(owner, refusal))]
  const reasons = groups.map(([reason, { length: tags }]) => ({ reason, tags }))
  const order = (one: NotJudged, other: NotJudged): number =>
    other.tags - one.tags || (one.reason < other.reason ? -1 : 1)
  return reasons.sort(order).slice(0, most)
}

/** Returns why nothing of an owner was asked for: the scope leaves it out, or whether it does is still to be known. */
function whyNotAsked(config: Config, reads: Reads, owner: string): Pick<Artifact, 'state' | 'why'> {
  try {
    const why = unaskedArtifact(config, reads, owner, 'this').message
    return { state: owner.startsWith('tags/') ? 'not in scope' : 'not asked for', why }
  } catch (error) {
    if (!(error instanceof MirrorError) || error.code !== 'not_ready') throw error
    return { state: 'not fetched yet', why: messageOf(error) }
  }
}

/** Returns the answer about a listed tag; `path`: of its details, which only a page leads to. */
export function tagAnswer(
  call: ArtifactReads,
  id: string,
  item: Fields,
  artifacts: readonly Artifact[],
  path: string | null,
): Answer {
  const name = nameOfTag(item)
  const json: Fact[] = path === null ? [] : [['as JSON', codeValue(path, { kind: 'path', name: path })]]
  const own: Fact[] = item['id'] === id ? [] : [['id', textValue(id)]]
  return {
    title: name === '' ? id : name,
    parts: [
      { kind: 'facts', rows: [...json, ...own, ...itemFacts(item)] },
      ...artifactParts(call, artifacts, path !== null),
    ],
  }
}

/** Returns the fields of an item with short values, those of its objects by `outer.inner`. */
function itemFacts(item: Fields): Fact[] {
  const rows = Object.entries(item).flatMap(([name, value]): Fact[] =>
    isObject(value)
      ? Object.entries(value).map(([inner, one]) => [clip(`${name}.${inner}`, 80), fieldValue(one)])
      : [[clip(name, 80), fieldValue(value)]],
  )
  return rows.slice(0, MOST_FIELDS)
}

function fieldValue(value: unknown): Value {
  if (typeof value === 'boolean') return textValue(value ? 'yes' : 'no')
  return textValue(value)
}

/** Returns a table of artifacts, a row for each document, and why others are not stored; `withLinks`: for a page. */
export function artifactParts(
  { reads }: Pick<ArtifactReads, 'reads'>,
  artifacts: readonly Artifact[],
  withLinks: boolean,
): Part[] {
  const reasons = reasonsOf(reads, artifacts)
  const table: Table = {
    kind: 'table',
    title: 'artifacts',
    columns: ['artifact', 'state', 'type', 'size', 'SHA-256', 'signature', ...(withLinks ? ['from this mirror'] : [])],
    rows: artifacts.flatMap((one) => artifactRows(one, withLinks)),
    empty: 'there are no artifacts',
  }
  if (reasons.length === 0) return [table]
  const isOld = artifacts.some(({ state, why }) => state === 'stored' && why !== null)
  const title = `why they are not stored${isOld ? ', or not those of now' : ''}`
  return [table, { kind: 'facts', title, rows: reasons }]
}

function artifactRows(artifact: Artifact, withLinks: boolean): (Value | Value[])[][] {
  const { kind, path, state, documents, signature } = artifact
  const answer = codeValue(path, { kind: 'path', name: path })
  const none = textValue(null)
  if (documents.length === 0) {
    const signed = signature === null ? none : signatureValue(signature)
    const row = [textValue(kind), textValue(state), none, none, none, signed]
    return [withLinks ? [...row, answer] : row]
  }
  return documents.map(({ digest, type, size }, number) => {
    const signed = number === 0 ? signatureValue(signature) : none
    const row = [
      textValue(kind),
      textValue(state),
      textValue(type),
      bytesValue(size),
      codeValue(digest.slice(0, 16)),
      signed,
    ]
    const download = linkValue('download', { kind: 'document', part: 'file', artifact: kind, number })
    const show =
      documents.length > 1 ? [linkValue('show', { kind: 'document', part: 'contents', artifact: kind, number })] : []
    return withLinks ? [...row, [download, ...show, answer]] : row
  })
}

const SIGNATURE_TONES = { verified: 'good', failed: 'bad', none: 'warn' } as const

/** What the verification of the signatures of an artifact came to. */
function signatureValue(signature: ArtifactSignature | null): Value {
  if (signature === null) return textValue('not verified by this mirror')
  const tone = SIGNATURE_TONES[signature.state]
  return { kind: 'text', text: clip(signatureText(signature), 600), tone }
}

/** Returns each reason once, after the artifacts that it is about. */
function reasonsOf(reads: Reads, artifacts: readonly Artifact[]): Fact[] {
  const known = artifacts.map((one) => ({ kind: one.kind, why: whyWithout(reads, one) }))
  const reasons = Map.groupBy(
    known.filter(({ why }) => why !== null),
    ({ why }) => why,
  )
  return [...reasons].map(([why, about]) => [about.map(({ kind }) => kind).join(', '), textValue(why, 600)])
}

/** Returns why an artifact has no document; null where it has one, or the service has none. */
function whyWithout(reads: Reads, { state, why, documents }: Artifact): string | null {
  if (why !== null) return why
  if (state === 'not fetched yet') return notReady(reads, 'catalog', 'this').message
  return state === 'stored' && documents.length === 0 ? 'the answer of the service names no document' : null
}
