import { clip, nounOf } from '../../../../base/text.ts'
import type { Unreadable } from '../../documents/read.ts'
import { type Material, type Provenance, readProvenance } from '../../documents/provenance.ts'
import { readSboms } from '../../../../documents/sboms/read.ts'
import type { InputSbom, SbomComponent } from '../../../../documents/sboms/sbom.ts'
import type { StatedWords } from '../../../../documents/vex/statement.ts'
import { readVexDocuments } from '../../../../documents/vex/statements.ts'
import type { Block } from '../../blocks.ts'
import type { Tone } from '../../../lookup/answers/answer.ts'
import { type Cell, code, grouped, link, plain, state, withTimes } from '../../../lookup/answers/cells.ts'
import { type PageCall, numberOf, parameter } from '../../page.ts'
import type { ShownArtifact, ShownDocument } from './artifacts.ts'

/** Where a section of a page leads for its next rows: the page, with these parameters beside its own. */
export type Further = (parameters: Readonly<Record<string, string | number | null>>) => string

/** Components, statements and materials on a page. */
const PAGE = 50

/** Components and statements of a document that are shown, and products of a statement. */
const MOST = 20_000
const MOST_PRODUCTS = 5

/** What is shown of an SBOM: its first components, and the number of all. */
type ShownSbom = Pick<InputSbom, 'format' | 'name' | 'createdAt' | 'components'> & { readonly total: number }

/** The SBOM of a document; of several the components of all, under the names of each. */
function sbomIn(content: Buffer): ShownSbom {
  const sboms = readSboms(content)
  const joined = (textOf: (one: InputSbom) => string) => sboms.map(textOf).filter(Boolean).join(', ')
  const components = sboms.flatMap((one) => one.components)
  return {
    createdAt: sboms[0].createdAt,
    format: joined((one) => one.format),
    name: joined(({ name, version }) => [name, version].filter(Boolean).join(' ')),
    components: components.slice(0, MOST),
    total: components.length,
  }
}

/** What is shown of a VEX document: its first statements, and the number of all. */
interface ShownVex {
  readonly format: string
  readonly author: string
  readonly updatedAt: string
  readonly statements: readonly StatedWords[]
  readonly total: number
}

/** The statements of a VEX document, or of all that a file has; null for another format. */
function vexIn(content: Buffer): ShownVex | null {
  const documents = readVexDocuments(content)
  const [first] = documents
  if (first === undefined) return null
  const { format, author, updatedAt } = first
  const shown: StatedWords[] = []
  let total = 0
  for (const { statements, wordsAt } of documents) {
    const most = Math.min(statements.length, MOST - shown.length)
    for (let index = 0; index < most; index++) shown.push(cutWords(wordsAt(index, MOST_PRODUCTS)))
    total += statements.length
  }
  return { format, author, updatedAt, statements: shown, total }
}

/** What is kept of long texts. */
function cutWords(words: StatedWords): StatedWords {
  return {
    vulnerability: clip(words.vulnerability),
    status: clip(words.status, 60),
    justification: clip(words.justification),
    note: clip(words.note),
    products: words.products.map((product) => clip(product)),
    productCount: words.productCount,
  }
}

/** The attestations of a document; null for another format. */
function provenanceIn(content: Buffer): readonly Provenance[] | null {
  const found = readProvenance(content)
  return found.length === 0 ? null : found
}

/** Returns the contents of an artifact's document; `which` counts its documents from 0. */
export function contentBlocks(call: PageCall, { kind, documents }: ShownArtifact, further: Further): Block[] {
  const which = numberOf(call.query, kind) ?? documents.findIndex(({ type }) => /json/i.test(type))
  const document = documents[Math.max(0, which)]
  if (document === undefined) return []
  if (kind === 'sbom') return sbomBlocks(call, document, further)
  return kind === 'vex' ? vexBlocks(call, document, further) : provenanceBlocks(call, document, further)
}

function unreadable(title: string, { unreadable: why }: Unreadable, { href }: ShownDocument): Block {
  const links = [link('Download it', href)]
  return { kind: 'notice', tone: 'warn', title: `${title} is not shown here`, text: why, links }
}

function sbomBlocks(call: PageCall, document: ShownDocument, further: Further): Block[] {
  const found = call.documents.read(document.digest, sbomIn)
  if ('unreadable' in found) return [unreadable('The SBOM', found, document)]
  const wanted = parameter(call.query, 'q')
  const at = numberOf(call.query, 'at') ?? 0
  const fitting = wanted === '' ? found.components : found.components.filter((one) => fits(one, wanted))
  const { format, createdAt, total, components } = found
  const subject = clip(found.name)
  const read = components.length < total ? ` Of the first ${grouped(components.length)}.` : ''
  const among = wanted === '' ? '' : ` contain “${clip(wanted, 100)}”`
  const action = further({})
  const [path = '', own = ''] = action.split('?')
  return [
    {
      kind: 'heading',
      title: 'SBOM',
      note: [format, subject, createdAt]
        .map((text) => withTimes(clip(text, 600)))
        .filter(Boolean)
        .join(' · '),
    },
    {
      kind: 'form',
      label: 'Components',
      action: path,
      hidden: [...new URLSearchParams(own)],
      fields: [{ name: 'q', label: 'Name, version or purl contains', value: wanted, hint: 'openssl' }],
      button: 'Show',
    },
    {
      kind: 'table',
      title: 'Components',
      note: `${grouped(fitting.length)} of ${grouped(total)}${among}.${read}`,
      columns: ['Component', 'Version', 'Type', 'Licence', 'purl'],
      rows: fitting.slice(at, at + PAGE).map((one) => componentRow(call, one)),
      empty: 'No component fits.',
      first: at === 0 ? null : further({ q: wanted }),
      next: at + PAGE < fitting.length ? further({ q: wanted, at: at + PAGE }) : null,
    },
  ]
}

function fits({ name, version, purl }: SbomComponent, wanted: string): boolean {
  const text = wanted.toLowerCase()
  return [name, version, purl ?? ''].some((one) => one.toLowerCase().includes(text))
}

function componentRow({ ui }: PageCall, { name, version, type, purl, licences }: SbomComponent): Cell[] {
  const isLink = purl !== null && purl.startsWith('pkg:') && purl.length <= 500
  const found = isLink ? code(purl, ui('search', { q: purl })) : plain(purl)
  return [plain(name), plain(version), plain(type), plain(licences), found]
}

const TONES: ReadonlyMap<string, Tone> = new Map([
  ['affected', 'bad'],
  ['exploitable', 'bad'],
  ['fixed', 'good'],
  ['not_affected', 'good'],
  ['resolved', 'good'],
  ['resolved_with_pedigree', 'good'],
  ['false_positive', 'good'],
  ['under_investigation', 'warn'],
  ['in_triage', 'warn'],
])

function vexBlocks(call: PageCall, document: ShownDocument, further: Further): Block[] {
  const found = call.documents.read(document.digest, vexIn)
  if ('unreadable' in found) return [unreadable('The VEX document', found, document)]
  const at = numberOf(call.query, 'statement') ?? 0
  const { format, author, updatedAt, statements, total } = found
  const read = statements.length < total ? ` The first ${grouped(statements.length)} are shown.` : ''
  return [
    {
      kind: 'table',
      title: 'VEX statements',
      note: `${[format, author, updatedAt]
        .map((text) => clip(text))
        .filter(Boolean)
        .join(' · ')} · ${grouped(total)} ${nounOf(total, 'statement')}.${read}`,
      columns: ['Vulnerability', 'Status', 'Justification', 'Products', 'Note'],
      rows: statements.slice(at, at + PAGE).map((one) => statementRow(call, one)),
      empty: 'The document has no statement.',
      first: at === 0 ? null : further({}),
      next: at + PAGE < statements.length ? further({ statement: at + PAGE }) : null,
    },
  ]
}

function statementRow({ ui }: PageCall, one: StatedWords): (Cell | Cell[])[] {
  const { vulnerability, status, justification, note, products, productCount } = one
  const more = productCount - products.length
  return [
    vulnerability === '' ? plain(null) : code(vulnerability, ui('cve', { id: vulnerability.slice(0, 500) })),
    status === '' ? plain(null) : state(status, TONES.get(status) ?? 'plain'),
    plain(justification),
    [...products.map((product) => plain(product)), ...(more > 0 ? [plain(`and ${grouped(more)} more`)] : [])],
    plain(note),
  ]
}

function provenanceBlocks(call: PageCall, document: ShownDocument, further: Further): Block[] {
  const found = call.documents.read(document.digest, provenanceIn)
  if ('unreadable' in found) return [unreadable('The provenance', found, document)]
  const note =
    'As the attestation states it. What the verification of its signature came to is in the table of artifacts.'
  return [
    { kind: 'heading', title: 'Provenance', note },
    ...found.flatMap((one) => attestationBlocks(call, one, further)),
  ]
}

function attestationBlocks(call: PageCall, one: Provenance, further: Further): Block[] {
  const at = numberOf(call.query, 'material') ?? 0
  const { materials, materialCount } = one
  const cells = (list: readonly Material[]): Cell[] =>
    list.length === 0
      ? [plain(null)]
      : list.slice(0, 10).flatMap(({ uri, digest }) => (digest === '' ? [plain(uri)] : [plain(uri), code(digest)]))
  const facts: Block = {
    kind: 'facts',
    rows: [
      ['type', plain(one.predicateType)],
      ['builder', plain(one.builder)],
      ['build type', plain(one.buildType)],
      ['source', cells(one.sources)],
      ['started', plain(one.startedAt)],
      ['finished', plain(one.finishedAt)],
      ['invocation', plain(one.invocation)],
      ['is about', cells(one.subjects)],
    ],
  }
  const shown = materials.slice(at, at + PAGE)
  const table: Block = {
    kind: 'table',
    title: 'Materials',
    note: `${grouped(materialCount)} went into the build.`,
    columns: ['Material', 'Digest'],
    rows: shown.map(({ uri, digest }) => [plain(uri), digest === '' ? plain(null) : code(digest)]),
    empty: 'The attestation names none.',
    first: at === 0 ? null : further({}),
    next: at + PAGE < materials.length ? further({ material: at + PAGE }) : null,
  }
  return [facts, table]
}
