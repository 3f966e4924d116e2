import { instantOf } from '../../base/time.ts'
import { type Fields, fieldsOf, isObject } from '../../base/json/objects.ts'
import { textOr } from '../sboms/sbom.ts'
import { readProductName } from './products.ts'
import {
  type StatedWords,
  type Statement,
  type VexContent,
  type VexName,
  type VexProduct,
  isPurl,
  listOf,
  partsNamed,
  rulesOut,
  vexStatusOf,
  textsOf,
} from './statement.ts'

/** Reads OpenVEX. Before 0.2, vulnerabilities and products were texts, and subcomponents a matter of the statement. */
export function readOpenVex(document: Fields): VexContent {
  const { author, last_updated: updated, timestamp } = document
  const head = { format: 'OpenVEX', author: textOr(author), updatedAt: textOr(updated ?? timestamp) }
  const given: Fields[] = []
  const statements: Statement[] = []
  for (const [place, one] of listOf(document['statements']).entries()) {
    if (!isObject(one)) continue
    given.push(one)
    statements.push(statementOf(one, place, document))
  }
  return { ...head, statements, wordsAt: (index, most) => wordsOf(statements[index], given[index], most) }
}

function statementOf(one: Fields, place: number, document: Fields): Statement {
  const { vulnerability, products, subcomponents } = one
  const status = vexStatusOf(one['status'])
  const { name, '@id': id, aliases } = fieldsOf(vulnerability)
  const named = typeof vulnerability === 'string' ? [vulnerability] : [name, id, ...listOf(aliases)]
  const isRulingOut = rulesOut(status)
  return {
    vulnerabilities: textsOf(named),
    products: listOf(products).flatMap((product) => productsOf(product, subcomponents, isRulingOut)),
    status,
    justification: textOr(one['justification']),
    note: textOr(one['impact_statement']) || textOr(one['action_statement']) || textOr(one['status_notes']),
    at: datedIn(one, document),
    place,
  }
}

function wordsOf(statement: Statement | undefined, given: Fields = {}, most: number): StatedWords {
  const { vulnerabilities = [], justification = '', note = '' } = statement ?? {}
  const listed = listOf(given['products'])
  return {
    vulnerability: vulnerabilities[0] ?? '',
    status: textOr(given['status']),
    justification,
    note,
    products: textsOf(listed.slice(0, most).map(nameOf)),
    productCount: listed.length,
  }
}

/** A product by its id, or by what it consists of. */
function nameOf(product: unknown): unknown {
  if (!isObject(product)) return product
  return product['@id'] ?? fieldsOf(product['identifiers'])['purl']
}

/**
 * Returns when a statement was last made, as `instantOf`: its own dates count before those of its document, and of both the later
 * one of `timestamp` and `last_updated`.
 */
export function datedIn(statement: Fields, document: Fields): string {
  return lastIn(statement) || lastIn(document)
}

function lastIn({ timestamp, last_updated: updated }: Fields): string {
  const made = instantOf(timestamp)
  const changed = instantOf(updated)
  return changed > made ? changed : made
}

/** Returns a product as a whole or in its parts; as both where a part without a name may be any, and others are named. */
function productsOf(product: unknown, ofAll: unknown, isRulingOut: boolean): VexProduct[] {
  const own = fieldsOf(product)['subcomponents'] ?? ofAll
  const given = namesOf(product)
  const names = isRulingOut ? sureNames(given, fieldsOf(product)) : given
  const parts = partsOf(own, isRulingOut)
  const named = listOf(own).flatMap(namesOf)
  return parts === null && named.length > 0
    ? [
        { names, parts },
        { names, parts: named },
      ]
    : [{ names, parts }]
}

/**
 * Returns by which names a product is known for certain. An image that it names without a digest is the one of its hash; where it
 * is an image, another name of it is not that of a component.
 */
function sureNames(names: readonly VexName[], { hashes }: Fields): VexName[] {
  const images = names.filter(({ purl }) => isImagePurl(purl))
  if (images.length === 0) return [...names]
  const hash = textOr(fieldsOf(hashes)['sha-256'])
  return images.map((name) => (hash === '' ? name : withDigest(name, `sha256:${hash}`)))
}

function isImagePurl(purl: string): boolean {
  return /^pkg:\/*(?:oci|docker)\//i.test(purl)
}

function withDigest(name: VexName, digest: string): VexName {
  const { purl } = name
  if (readProductName(purl)?.digest !== '') return name
  return { ...name, purl: `${purl}${purl.includes('?') ? '&' : '?'}digest=${encodeURIComponent(digest)}` }
}

/** Returns the components that a list names. An empty list names none: what rules a vulnerability out is then about nothing. */
function partsOf(subcomponents: unknown, isRulingOut: boolean): VexName[] | null {
  if (subcomponents === undefined || subcomponents === null) return null
  return partsNamed(listOf(subcomponents).map(namesOf), isRulingOut)
}

/** The package URLs by which OpenVEX names a product or a component. */
function namesOf(product: unknown): VexName[] {
  const texts = isObject(product) ? [product['@id'], fieldsOf(product['identifiers'])['purl']] : [product]
  return textsOf(texts)
    .filter(isPurl)
    .map((purl) => ({ purl, versions: null }))
}
