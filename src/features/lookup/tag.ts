import { fillPath, canonicalPath } from '../../base/domain/path-templates.ts'
import { RESOURCES } from '../../base/domain/resources.ts'
import { type ArtifactSignature, plainResult, signatureText } from '../../base/domain/artifacts/signature.ts'
import { type Fields, fieldsOf } from '../../base/json/objects.ts'
import { leftOutOfScope } from '../../server/catalog/not-found.ts'
import { notSynced, scopeToCome } from '../../server/snapshot/not-ready.ts'
import { isNone } from '../../store/catalog/answers.ts'
import { namesOfTag } from '../../sync/catalog/new-tags.ts'
import { upstreamJson } from '../../cli/context.ts'
import { table, visible } from '../../cli/output.ts'
import type { LookupResult, LookupCall } from './snapshot.ts'

/** The reason of a path that a bundle brought as missing. */
const NO_REASON = 'the reason is not stored here; "patchmirror runs" on the mirror that syncs names it'

const ARTIFACTS = RESOURCES.find(({ name }) => name === 'tags')?.artifacts ?? []

/** How much of an artifact of a tag is stored. */
interface Artifact {
  readonly kind: string
  readonly path: string
  readonly state:
    | 'stored'
    | 'the service has none'
    | 'refused by the service'
    | 'could not be fetched'
    | 'not fetched yet'
    | 'not in scope'
  /** What the verification of its signatures came to; null: it was not verified. */
  readonly signature: ArtifactSignature | null
  /** Why it is not stored; null where it is, or where this mirror does not know. */
  readonly why: string | null
  readonly documents: readonly { readonly digest: string; readonly type: string; readonly size: number }[]
}

/** Returns a listed tag: its names, its dates and its artifacts. */
export function tagFinding(stored: LookupCall, id: string, body: Buffer): LookupResult {
  const text = body.toString('utf8')
  const item = fieldsOf(JSON.parse(text))
  const { repository, tag, digest } = namesOfTag({ ...item })
  const artifacts = ARTIFACTS.map(({ path, document }) => artifactOf(stored, id, path, document))
  const facts = [
    ['id', id],
    ['digest', digest ?? 'none named'],
    ...Object.entries(item).flatMap(([name, value]) =>
      /_?at$|date|time/i.test(name) && typeof value === 'string' ? [[name, value]] : [],
    ),
    ...otherFacts(item),
  ]
  return {
    json: { kind: 'tag', id, repository, name: tag, digest, item: upstreamJson(text), artifacts },
    lines: [
      visible([repository, tag].filter((part) => part !== null).join(':')),
      ...facts.map(([name = '', value = '']) => `${name.padEnd(12)} ${visible(value)}`),
      '',
      table(['artifact', 'state', 'documents'], artifacts.map(rowOf)),
      ...signaturesOf(artifacts),
      ...reasonsOf(artifacts),
    ],
  }
}

/** Yes-or-no fields of the item, such as whether the tag is remediated. */
function otherFacts(item: Fields): string[][] {
  return Object.entries(item).flatMap(([name, value]) => {
    if (typeof value !== 'boolean') return []
    return [[name, value ? 'yes' : 'no']]
  })
}

function artifactOf({ config, reads }: LookupCall, id: string, template: string, kind: string): Artifact {
  const { catalog } = reads
  const filled = fillPath(template, { id })
  const path = canonicalPath(filled) ?? filled
  const answer = catalog.readAnswer(path)
  const named = { kind, path, documents: [], why: null, signature: null }
  const missing = catalog.readMissingPath(path)
  if (missing?.status === 403) return { ...named, state: 'refused by the service', why: missing.reason ?? NO_REASON }
  if (answer === null) {
    if (missing !== null) return { ...named, state: 'could not be fetched', why: missing.reason ?? NO_REASON }
    if (catalog.hasAnswers(`tags/${id}`)) return { ...named, state: 'not fetched yet' }
    const changed = scopeToCome(reads, config, 'catalog')
    return changed === null
      ? { ...named, state: 'not in scope', why: leftOutOfScope(config).message }
      : { ...named, state: 'not fetched yet', why: notSynced('catalog', 'this', changed).message }
  }
  if (isNone(answer)) return { ...named, state: 'the service has none' }
  const documents = answer.links.flatMap(({ digest, type }) => {
    const document = catalog.readDocument(digest)
    return document === null ? [] : [{ digest, type: type ?? document.type, size: document.size }]
  })
  const stored = catalog.readSignature(path, answer)
  return { ...named, state: 'stored', documents, signature: stored && plainResult(stored) }
}

/** Returns what the verification of the signatures came to, a line for each artifact. */
function signaturesOf(artifacts: readonly Artifact[]): string[] {
  const lines = artifacts.flatMap(({ kind, signature }) =>
    signature === null ? [] : [`signature of ${kind}: ${visible(signatureText(signature))}`],
  )
  return lines.length === 0 ? [] : ['', ...lines]
}

/** Returns each reason once, after the artifacts that it is about. */
function reasonsOf(artifacts: readonly Artifact[]): string[] {
  const reasons = Map.groupBy(
    artifacts.filter(({ why }) => why !== null),
    ({ why }) => why,
  )
  const lines = [...reasons].map(([why, about]) => `${about.map(({ kind }) => kind).join(', ')}: ${visible(why ?? '')}`)
  return lines.length === 0 ? [] : ['', ...lines]
}

function rowOf({ kind, state, documents }: Artifact): string[] {
  const texts = documents.map(({ type, size, digest }) => `${type}, ${size} bytes, ${digest.slice(0, 12)}`)
  return [kind, state, texts.length === 0 ? '-' : texts.join('; ')]
}
