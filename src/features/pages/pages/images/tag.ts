import { clip } from '../../../../base/text.ts'
import { MirrorError } from '../../../../base/errors.ts'
import { requestedPath } from '../../../../server/catalog/not-found.ts'
import { canonicalPath } from '../../../../base/domain/path-templates.ts'
import { type Fields, fieldsOf } from '../../../../base/json/objects.ts'
import { whySbomOld } from '../../../../documents/sboms/mirrored.ts'
import type { DocumentLink, Part } from '../../../lookup/answers/answer.ts'
import { tagFindingsPart } from '../../../lookup/change-tables.ts'
import { type ArtifactKind, artifactParts, createWhyNotJudged, readArtifacts, tagAnswer } from '../../../lookup/tag.ts'
import type { Block } from '../../blocks.ts'
import { answerBlocks } from '../../links.ts'
import { code, link } from '../../../lookup/answers/cells.ts'
import { type PageCall, type PageView, parameter } from '../../page.ts'
import { type ShownArtifact, shownArtifacts } from './artifacts.ts'
import { type Further, contentBlocks } from './contents.ts'
import type { TagFindings } from '../../../../store/findings/reads.ts'
import { NOT_JUDGED, gapWords, tagGaps, whyNoTags } from '../../../../store/findings/words.ts'
import { NOT_LOGGED, changesBlocks, readTagFindings } from '../tags/log.ts'

const ITEM = '/v1/tags/{id}'

/** Loads the page of one tag: its SBOM, VEX, provenance, and the sets of artifacts of AVRs that it names. */
export function loadTag(call: PageCall): PageView {
  const id = requiredId(call, 'tag')
  call.refuseOld('catalog')
  const { item, mentions, isWhole } = readTag(call, id)
  const artifacts = readArtifacts(call, 'tags', id)
  const shown = shownArtifacts(call, 'tags', id, artifacts)
  const further = furtherOf(call, 'tag', id)
  const answer = tagAnswer(call, id, item, artifacts, requestedPath(ITEM, { id }))
  const note = isWhole
    ? { note: 'As the service describes it: counts of vulnerabilities here are its own.' }
    : { note: 'As the list of tags has it: the details are not mirrored.' }
  const blocks = answerBlocks(call, answer, { documentHref: documentHref(shown, further) })
  return {
    title: answer.title,
    blocks: [
      { kind: 'heading', title: 'Tag', ...note },
      ...blocks.slice(0, 1), // its fields
      ...findingsOrWhyNot(call, id),
      ...blocks.slice(1),
      evidenceBlock(call, mentions),
      ...shown.flatMap((one) => contentBlocks(call, one, further)),
    ],
  }
}

/** Changes of findings that are shown of a tag. */
const MOST_CHANGES = 20

/** What records say about the SBOM of a tag; why that is not shown where records are too old to be served. */
function findingsOrWhyNot(call: PageCall, id: string): Block[] {
  try {
    return findingBlocks(call, id)
  } catch (error) {
    if (!(error instanceof MirrorError) || error.code !== 'stale') throw error
    return [{ kind: 'notice', tone: 'warn', title: 'Findings are not shown', text: error.message }]
  }
}

function partOf(call: PageCall, tag: TagFindings, withoutVex: readonly string[]): Part {
  const judged = tag.refusal === null ? tag : createWhyNotJudged(call)(tag.owner, tag.refusal)
  const known = { withoutVex, whySbomOld: (id: string) => whySbomOld(call.reads, id) }
  return tagFindingsPart(judged, gapWords(tagGaps(tag, known)))
}

/** What records say about the SBOM of a tag, or why that is not known; nothing where the settings have no tags judged. */
function findingBlocks(call: PageCall, id: string): Block[] {
  if (whyNoTags(call.config) !== null) return []
  const found = readTagFindings(call, (reads) => ({
    tag: reads.readTag(id),
    changes: reads.listLogOf(id, MOST_CHANGES),
    withoutVex: reads.listTagsWithoutVex(),
  }))
  const tag = found?.tag ?? null
  const part = found === null || tag === null ? tagFindingsPart(NOT_JUDGED, []) : partOf(call, tag, found.withoutVex)
  const blocks = answerBlocks(call, { parts: [part] })
  if (found === null || part.kind === 'notice') return blocks
  const heading: Block = {
    kind: 'heading',
    title: 'Findings of this mirror',
    note: 'What this mirror finds in the SBOM of the tag by its own records; the service may count others.',
  }
  const more: Block = {
    kind: 'facts',
    rows: [
      ['one by one', link('findings of this tag', call.ui('tag-findings', { id }))],
      ['all tags', link('changes of findings', call.ui('tag-changes'))],
    ],
  }
  return [heading, ...blocks, more, ...changesBlocks(call, found.changes, NOT_LOGGED)]
}

/** Loads the page of a set of artifacts: the evidence of an AVR (artifact vulnerability remediation). */
export function loadAvr(call: PageCall): PageView {
  const id = requiredId(call, 'avr')
  call.refuseOld('catalog')
  if (call.reads.snapshots.readSnapshot('catalog') === null)
    throw new MirrorError(
      'not_ready',
      'the catalog is not mirrored here, and which sets of artifacts it has is not known',
    )
  const artifacts = readArtifacts(call, 'avrs', id)
  const shown = shownArtifacts(call, 'avrs', id, artifacts)
  const further = furtherOf(call, 'avr', id)
  const parts = artifactParts(call, artifacts, true)
  return {
    title: `AVR ${id}`,
    ...(artifacts.every(({ documents }) => documents.length === 0) && { status: 404 }),
    blocks: [
      ...answerBlocks(call, { parts }, { documentHref: documentHref(shown, further) }),
      ...shown.flatMap((one) => contentBlocks(call, one, further)),
    ],
  }
}

/** Leads to a document, or to the page that shows its contents. */
function documentHref(shown: readonly ShownArtifact[], further: Further): (link: DocumentLink) => string {
  return ({ part, artifact, number }) => {
    if (part === 'contents') return further({ [artifact]: number })
    return shown.find((one) => one.kind === artifact)?.documents[number]?.href ?? further({})
  }
}

function requiredId({ query }: PageCall, page: string): string {
  const id = parameter(query, 'id')
  if (id !== '') return id
  throw new MirrorError('bad_request', `name the ${page}: ?id=…`)
}

/** Leads to the same page with other rows; which documents are shown stays. */
function furtherOf({ ui, query }: PageCall, page: string, id: string): Further {
  const which = (['sbom', 'vex', 'provenance'] satisfies ArtifactKind[]).map((kind): [string, string] => [
    kind,
    parameter(query, kind),
  ])
  return (parameters) => ui(page, { id, ...Object.fromEntries(which), ...parameters })
}

interface TagFound {
  readonly item: Fields
  /** Ids of AVRs that it names. */
  readonly mentions: readonly string[]
  /** Whether these are its details, and not only its entry in the list. */
  readonly isWhole: boolean
}

/** Reads a tag's details, or its entry in the list where these are not mirrored. Throws with the API's reason. */
function readTag({ reads, readApi }: PageCall, id: string): TagFound {
  const { mentions = [] } = reads.catalog.readAnswer(requestedPath(ITEM, { id })) ?? {}
  const list = reads.catalog.readList(canonicalPath('/v1/tags/') ?? '')
  const entry = list === null ? null : reads.catalog.readEntry(list.id, id)
  const reply =
    entry === null || mentions.length > 0 || reads.catalog.hasAnswers(`tags/${id}`)
      ? readApi(ITEM, { params: { id } })
      : null
  if (reply !== null && 'body' in reply && reply.body !== null) {
    const item: unknown = JSON.parse(Buffer.from(reply.body).toString('utf8'))
    return { item: fieldsOf(item), mentions, isWhole: true }
  }
  if (entry !== null) return { item: fieldsOf(JSON.parse(entry.body.toString('utf8'))), mentions, isWhole: false }
  const problem = reply !== null && 'problem' in reply ? reply.problem : null
  const message = problem?.message ?? `this mirror has no tag ${clip(id)}`
  throw new MirrorError(problem?.status === 503 ? 'not_ready' : 'not_found', message)
}

/** AVRs of a tag that are shown. */
const MOST_EVIDENCE = 100

function evidenceBlock({ ui }: PageCall, mentions: readonly string[]): Block {
  return {
    kind: 'table',
    title: 'Evidence of remediation (AVR)',
    columns: ['Set of artifacts'],
    rows: mentions.slice(0, MOST_EVIDENCE).map((id) => [code(id, ui('avr', { id }))]),
    empty: 'The tag names no set of artifacts.',
  }
}
