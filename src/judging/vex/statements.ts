import { instantOf } from '../../core/time.ts'
import { type Fields, eachObject, fieldsOf, isObject, jsonTextOf } from '../../json/objects.ts'
import { MAX_VALUES, countValues } from '../../json/values.ts'
import { envelopesOf } from '../../sboms/envelopes.ts'
import { textOr, unreadable } from '../../sboms/sbom.ts'
import { readProductName } from './products.ts'

/** What a statement says about a vulnerability in a product, in the words of OpenVEX; '' for words that are none. */
type VexStatus = 'not_affected' | 'fixed' | 'affected' | 'under_investigation' | ''

/** A statement of a VEX document. */
export interface Statement {
  /** Ids and aliases of the vulnerability as they are written, the first one is its own. */
  readonly vulnerabilities: readonly string[]
  readonly products: readonly VexProduct[]
  readonly status: VexStatus
  readonly justification: string
  readonly note: string
  /** As `instantOf`; empty: it is not known. */
  readonly at: string
}

/** A product that a statement is about. */
export interface VexProduct {
  /** Its names. */
  readonly names: readonly VexName[]
  /** The only components of it that are meant; null: the product as a whole. */
  readonly parts: readonly VexName[] | null
}

/** A name of a product or a component. */
export interface VexName {
  readonly purl: string
  /** The only versions that are meant; null: as the package URL has it. */
  readonly versions: readonly string[] | null
}

/**
 * Reads the statements of OpenVEX and CycloneDX, also in an envelope, whose signature is not checked; `csaf` for a document of
 * that format, and null for anything else.
 */
export function readStatements(bytes: Buffer): Statement[] | 'csaf' | null {
  try {
    for (const document of envelopesOf(parse(bytes), (text) => parse(Buffer.from(text)))) {
      const context = textOr(document['@context'])
      if (context.includes('openvex')) return readOpenVex(document)
      if (document['bomFormat'] === 'CycloneDX') return readCycloneDx(document)
      if (textOr(fieldsOf(document['document'])['csaf_version']) !== '') return 'csaf'
    }
  } catch {
    // No JSON, too many values, or an envelope around either.
  }
  return null
}

function parse(bytes: Buffer): Fields {
  if (countValues(bytes) > MAX_VALUES) throw unreadable(`it has more than ${MAX_VALUES} values`)
  return fieldsOf(JSON.parse(jsonTextOf(bytes)))
}

const STATUSES: ReadonlySet<unknown> = new Set<VexStatus>([
  ...(['not_affected', 'fixed', 'affected', 'under_investigation'] as const),
])

/** Before OpenVEX 0.2, vulnerabilities and products were texts, and subcomponents a matter of the statement. */
function readOpenVex(document: Fields): Statement[] {
  return eachObject(document['statements']).map((one) => {
    const { vulnerability, status, products, subcomponents } = one
    const ofAll = partsOf(subcomponents)
    const { name, '@id': id, aliases } = fieldsOf(vulnerability)
    const named =
      typeof vulnerability === 'string' ? [vulnerability] : [name, id, ...listOf(aliases)]
    const notes = [one['impact_statement'], one['action_statement'], one['status_notes']]
    return {
      vulnerabilities: textsOf(named),
      products: listOf(products).map((product) => {
        const own = fieldsOf(product)['subcomponents'] ?? null
        return { names: namesOf(product), parts: own === null ? ofAll : partsOf(own) }
      }),
      status: STATUSES.has(status) ? (status as VexStatus) : '',
      justification: textOr(one['justification']),
      note: textsOf(notes)[0] ?? '',
      at: instantOf(one['timestamp'] ?? document['timestamp']),
    }
  })
}

function partsOf(subcomponents: unknown): VexName[] | null {
  return isEmpty(subcomponents) ? null : listOf(subcomponents).flatMap(namesOf)
}

/** The package URLs by which OpenVEX names a product or a component. */
function namesOf(product: unknown): VexName[] {
  const texts = isObject(product)
    ? [product['@id'], fieldsOf(product['identifiers'])['purl']]
    : [product]
  return textsOf(texts)
    .filter(isPurl)
    .map((purl) => ({ purl, versions: null }))
}

/** The states of an analysis in CycloneDX. */
const STATES: ReadonlyMap<unknown, VexStatus> = new Map([
  ['resolved', 'fixed'],
  ['resolved_with_pedigree', 'fixed'],
  ['not_affected', 'not_affected'],
  ['false_positive', 'not_affected'],
  ['exploitable', 'affected'],
  ['in_triage', 'under_investigation'],
])

function readCycloneDx(bom: Fields): Statement[] {
  const { timestamp, component } = fieldsOf(bom['metadata'])
  const known = new Map<string, Component>()
  collectComponents([component], known)
  collectComponents(bom['components'], known)
  const subject = isObject(component) ? componentOf(component) : null
  return eachObject(bom['vulnerabilities']).flatMap((one) => {
    const { id, references, analysis, affects, updated } = one
    if (!isObject(analysis)) return []
    const { state, justification, detail, lastUpdated } = analysis
    const status = STATES.get(state) ?? ''
    return {
      vulnerabilities: textsOf([id, ...eachObject(references).map((other) => other['id'])]),
      products: eachObject(affects).map((affected) =>
        productOf(affected, { known, subject, isRulingOut: rulesOut(status) }),
      ),
      ...{ status, justification: textOr(justification), note: textOr(detail) },
      at: instantOf(lastUpdated ?? updated ?? timestamp),
    }
  })
}

/** A component of a document; texts are empty where it has none. */
interface Component {
  readonly purl: string
  readonly version: string
}

/** Collects components with a package URL, and those within them, by their references. */
function collectComponents(components: unknown, known: Map<string, Component>): void {
  const lists = [components]
  for (const list of lists)
    // it grows while it is read: components have components
    for (const one of eachObject(list)) {
      const ref = textOr(one['bom-ref'])
      const component = componentOf(one)
      if (ref !== '' && component.purl !== '') known.set(ref, component)
      lists.push(one['components'])
    }
}

function componentOf({ purl, version }: Fields): Component {
  const text = textOr(purl)
  return { purl: isPurl(text) ? text : '', version: textOr(version) }
}

interface Affecting {
  readonly known: ReadonlyMap<string, Component>
  /** What the document describes; null: it does not say. */
  readonly subject: Component | null
  readonly isRulingOut: boolean
}

/**
 * What `affects` refers to: a component of the document, a package URL, or either of them behind a BOM-Link. In a document
 * that describes a product, anything else is meant as a component of it.
 */
function productOf(affected: Fields, { known, subject, isRulingOut }: Affecting): VexProduct {
  const text = textOr(affected['ref'])
  const [, linked = text] = /^urn:cdx:[^#]*#(.*)$/s.exec(text) ?? []
  const found = known.get(text) ?? { purl: isPurl(linked) ? linked : '', version: '' }
  const names = found.purl === '' ? [] : [nameOf(found, versionsOf(affected, isRulingOut), isRulingOut)] // prettier-ignore
  const isSubject = subject?.purl === found.purl && ['', subject.version].includes(found.version)
  if (subject === null || isSubject) return { names, parts: null }
  // Of a product without a package URL it is not known which it is.
  if (subject.purl === '') return { names: isRulingOut ? [] : names, parts: null }
  return { names: [nameOf(subject, null, isRulingOut)], parts: names }
}

/** Names a component: its version counts where its package URL has none, and listed ones where they do not contradict it. */
function nameOf(
  { purl, version }: Component,
  listed: readonly string[] | null,
  isRulingOut: boolean,
): VexName {
  const own = readProductName(purl)?.version || version
  if (listed === null) return { purl, versions: own === '' ? null : [own] }
  const isOwn = (one: string): boolean => own === '' || one === own
  return { purl, versions: isRulingOut ? listed.filter(isOwn) : listed }
}

/**
 * The versions that `affects` names; null: it names none. Where the statement rules a vulnerability out, only versions that are
 * named exactly, as not affected, are meant; another statement is about all versions where it names any in another way.
 */
function versionsOf({ versions }: Fields, isRulingOut: boolean): readonly string[] | null {
  if (isEmpty(versions)) return null
  const listed = listOf(versions).map(fieldsOf)
  const meant = listed.filter(({ status }) => (status === 'unaffected') === isRulingOut)
  const isExact = ({ version, range }: Fields): boolean => textOr(version) !== '' && range === undefined // prettier-ignore
  if (isRulingOut || (meant.length > 0 && meant.every(isExact)))
    return textsOf(meant.map(({ version }) => version))
  return null
}

/** Reports whether a status says that a product does not have the vulnerability. */
export function rulesOut(status: VexStatus): status is 'not_affected' | 'fixed' {
  return status === 'not_affected' || status === 'fixed'
}

function isPurl(text: string): boolean {
  return text.startsWith('pkg:')
}

function isEmpty(list: unknown): boolean {
  return list === undefined || list === null || (Array.isArray(list) && list.length === 0)
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function textsOf(values: readonly unknown[]): string[] {
  return values.map(textOr).filter((text) => text !== '')
}
