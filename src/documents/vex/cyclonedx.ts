import { firstInstant } from '../../base/time.ts'
import { type Fields, eachObject, fieldsOf, isObject } from '../../base/json/objects.ts'
import { plainSerial, serialOf } from '../sboms/cyclonedx.ts'
import { textOr } from '../sboms/sbom.ts'
import { isVersionOf, readProductName } from './products.ts'
import {
  type BomLink,
  type StatedWords,
  type Statement,
  type VexContent,
  type VexName,
  type VexProduct,
  type VexStatus,
  isPurl,
  listOf,
  nameWith,
  partsNamed,
  rulesOut,
  textsOf,
} from './statement.ts'
import { percentDecoded } from '../../base/text.ts'

/** The states of an analysis in CycloneDX. */
const STATES: ReadonlyMap<unknown, VexStatus> = new Map([
  ['resolved', 'fixed'],
  ['resolved_with_pedigree', 'fixed'],
  ['not_affected', 'not_affected'],
  ['false_positive', 'not_affected'],
  ['exploitable', 'affected'],
  ['in_triage', 'under_investigation'],
])

/** Reads the analyses of a CycloneDX document. */
export function readAnalyses(bom: Fields): VexContent {
  const { timestamp, supplier, component } = fieldsOf(bom['metadata'])
  const author = fieldsOf(supplier)['name'] ?? fieldsOf(component)['name']
  const subject = isObject(component) ? componentOf(component) : null
  const affecting = { bom, known: componentsOf(bom), subject }
  const given: Fields[] = []
  const statements: (Statement | null)[] = []
  for (const [place, one] of listOf(bom['vulnerabilities']).entries()) {
    if (!isObject(one)) continue
    given.push(one)
    statements.push(statementOf(one, place, affecting))
  }
  return {
    format: `CycloneDX ${textOr(bom['specVersion'])}`,
    author: textOr(author),
    updatedAt: textOr(timestamp),
    statements,
    wordsAt: (index, most) => wordsOf(given[index], most),
  }
}

/** Returns what an entry states; null: it has no analysis. */
function statementOf(one: Fields, place: number, affecting: Omit<Affecting, 'isRulingOut'>): Statement | null {
  const { references, analysis, affects, updated } = one
  if (!isObject(analysis)) return null
  const { timestamp } = fieldsOf(affecting.bom['metadata'])
  const { state, justification, detail, lastUpdated, firstIssued } = analysis
  const status = STATES.get(state) ?? ''
  const isRulingOut = rulesOut(status)
  return {
    vulnerabilities: [one, ...eachObject(references)].flatMap(idsIn),
    products: eachObject(affects).map((affected) => productOf(affected, { ...affecting, isRulingOut })),
    status,
    justification: textOr(justification),
    note: textOr(detail),
    at: firstInstant([lastUpdated, firstIssued, updated, timestamp]),
    place,
  }
}

function wordsOf(one: Fields = {}, most: number): StatedWords {
  const { state, justification, detail } = fieldsOf(one['analysis'])
  const affected = eachObject(one['affects'])
  return {
    vulnerability: idsIn(one)[0] ?? '',
    status: textOr(state),
    justification: textOr(justification),
    note: textOr(detail),
    products: textsOf(affected.slice(0, most).map(({ ref }) => ref)),
    productCount: affected.length,
  }
}

/** The id of a vulnerability; without one the address at its source. */
function idsIn({ id, source }: Fields): string[] {
  const own = textOr(id).trim()
  return textsOf([own === '' ? fieldsOf(source)['url'] : own])
}

/** A component of a document; texts are empty where it has none. */
export interface BomComponent {
  readonly purl: string
  readonly version: string
}

/** Returns the components of a document with a package URL, by their references, with what it describes and nested ones. */
export function componentsOf(bom: Fields): Map<string, BomComponent> {
  const known = new Map<string, BomComponent>()
  const lists: unknown[] = [[fieldsOf(bom['metadata'])['component']], bom['components']]
  for (const list of lists)
    // it grows while it is read: components have components
    for (const one of eachObject(list)) {
      const ref = textOr(one['bom-ref'])
      const component = componentOf(one)
      if (ref !== '' && component.purl !== '') known.set(ref, component)
      lists.push(one['components'])
    }
  return known
}

function componentOf({ purl, version }: Fields): BomComponent {
  const text = textOr(purl)
  return { purl: isPurl(text) ? text : '', version: textOr(version) }
}

interface Affecting {
  readonly bom: Fields
  readonly known: ReadonlyMap<string, BomComponent>
  /** What the document describes; null: it does not say. */
  readonly subject: BomComponent | null
  readonly isRulingOut: boolean
}

/**
 * What `affects` refers to: a component of the document, a package URL, or either of them behind a BOM-Link. In a document
 * that describes a product, anything else is meant as a component of it.
 */
function productOf(affected: Fields, { bom, known, subject, isRulingOut }: Affecting): VexProduct {
  const text = textOr(affected['ref'])
  const link = linkIn(text)
  const found = link === null ? foundAs([text], known) : linkedIn(link, bom, known)
  if (found.purl === '' && link !== null) return { names: [{ purl: '', versions: null, link }], parts: null }
  const listed = versionsOf(affected, isRulingOut)
  const named = nameOf(found, listed, isRulingOut)
  const names = found.purl === '' ? [] : [named]
  const isSubject = subject?.purl === found.purl && ['', subject.version].includes(found.version)
  if (link !== null && subject === null && !isOwn(link, bom)) return { names: [{ ...named, link }], parts: null }
  if (subject === null || isSubject) return { names, parts: null }
  // Of a product without a package URL it is not known which it is.
  if (subject.purl === '') return { names: isRulingOut ? [] : names, parts: null }
  return { names: [nameOf(subject, null, isRulingOut)], parts: partsNamed([names], isRulingOut) }
}

/** Parses a BOM-Link, whose reference may be percent-encoded as a whole; null for anything else. */
function linkIn(text: string): BomLink | null {
  const [, path, linked] = /^urn:cdx:([^#]*)#(.*)$/s.exec(text) ?? []
  if (path === undefined || linked === undefined) return null
  const [serial = '', version = '1'] = path.split('/')
  return { serial: plainSerial(serial), version, refs: [...new Set([linked, percentDecoded(linked)])] }
}

/** Returns what a link leads to: a component of this document where it is the one that is linked to, or a package URL. */
function linkedIn(link: BomLink, bom: Fields, known: ReadonlyMap<string, BomComponent>): BomComponent {
  const { serial } = serialOf(bom)
  return foundAs(link.refs, serial === '' || isOwn(link, bom) ? known : new Map())
}

function isOwn(link: BomLink, bom: Fields): boolean {
  const { serial, version } = serialOf(bom)
  return serial !== '' && serial === link.serial && version === link.version
}

function foundAs(refs: readonly string[], known: ReadonlyMap<string, BomComponent>): BomComponent {
  for (const ref of refs) {
    const component = known.get(ref)
    if (component !== undefined) return component
  }
  return { purl: refs.find(isPurl) ?? '', version: '' }
}

/** Names a component: its version counts where its package URL has none, and listed ones where they do not contradict it. */
function nameOf({ purl, version }: BomComponent, listed: readonly string[] | null, isRulingOut: boolean): VexName {
  if (listed === null) return nameWith(purl, version)
  const own = readProductName(purl, version)
  if (!isRulingOut || own === null || own.version === '') return { purl, versions: listed }
  return listed.some((one) => isVersionOf(own, one)) ? nameWith(purl, version) : { purl, versions: [] }
}

/**
 * The versions that `affects` names; null: it names none. Where the statement rules a vulnerability out, only versions that are
 * named exactly, as not affected, are meant; another statement is about all versions where it names any in another way.
 */
function versionsOf({ versions }: Fields, isRulingOut: boolean): readonly string[] | null {
  if (isEmpty(versions)) return null
  const listed = listOf(versions).map(fieldsOf)
  const meant = listed.filter(({ status }) => (status === 'unaffected') === isRulingOut)
  const isExact = ({ version, range }: Fields): boolean => textOr(version) !== '' && range === undefined
  if (isRulingOut || (meant.length > 0 && meant.every(isExact))) return textsOf(meant.map(({ version }) => version))
  return null
}

function isEmpty(list: unknown): boolean {
  return list === undefined || list === null || (Array.isArray(list) && list.length === 0)
}
