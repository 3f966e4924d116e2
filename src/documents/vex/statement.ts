import type { BomSerial } from '../sboms/sbom.ts'
import { readProductName } from './products.ts'

/** What a statement says about a vulnerability in a product, in the words of OpenVEX; '' for words that are none. */
export type VexStatus = 'not_affected' | 'fixed' | 'affected' | 'under_investigation' | ''

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
  /** Its place among the statements of its document, from 0. */
  readonly place: number
  /** The digests of the images that the attestation is about which it is in, `sha256:…`; absent: it is in none, or in one of no digest. */
  readonly about?: readonly string[]
}

/** A VEX document as it is read; texts are empty where it does not say them. */
export interface VexContent {
  /** Format and version, such as `CSAF 2.0`. */
  readonly format: string
  readonly author: string
  /** As it is written. */
  readonly updatedAt: string
  /** What it states, in its order: what is judged by, and null for what says nothing about any product. */
  readonly statements: readonly (Statement | null)[]
  /** Returns what it states at an index of `statements` in the words of the document. `most`: products that are named. */
  readonly wordsAt: (index: number, most: number) => StatedWords
}

/** A statement in the words of its document. */
export interface StatedWords {
  readonly vulnerability: string
  readonly status: string
  readonly justification: string
  readonly note: string
  /** The first products. */
  readonly products: readonly string[]
  /** Number of all products. */
  readonly productCount: number
}

/** A product that a statement is about. */
export interface VexProduct {
  /** Its names. */
  readonly names: readonly VexName[]
  /** The only components of it that are meant, none where the list is empty; null: the product as a whole. */
  readonly parts: readonly VexName[] | null
}

/** A name of a product or a component. */
export interface VexName {
  /** Empty where it has none: then there is a link. */
  readonly purl: string
  /** The only versions that are meant; null: as the package URL has it. */
  readonly versions: readonly string[] | null
  /** The component of another document that is meant: of that SBOM alone, also where the link has the package URL. */
  readonly link?: BomLink
}

/** A component in a CycloneDX document, as a BOM-Link names it. */
export interface BomLink extends BomSerial {
  /** As the document has it: the link may have it percent-encoded. */
  readonly refs: readonly string[]
}

/** Returns the statuses that are known, and '' for anything else. */
export function vexStatusOf(value: unknown): VexStatus {
  const known: readonly VexStatus[] = ['not_affected', 'fixed', 'affected', 'under_investigation']
  return known.find((one) => one === value) ?? ''
}

/** Reports whether a status says that a product does not have the vulnerability. */
export function rulesOut(status: VexStatus): status is 'not_affected' | 'fixed' {
  return status === 'not_affected' || status === 'fixed'
}

/** Reports whether a text has the form of a package URL. */
export function isPurl(text: string): boolean {
  return text.startsWith('pkg:')
}

/** Returns a package URL as a name, with another version where it names none itself. */
export function nameWith(purl: string, version: string): VexName {
  const isWhole = version === '' || (readProductName(purl)?.version ?? '') !== ''
  return { purl, versions: isWhole ? null : [version] }
}

/**
 * Returns the parts of a product that a statement lists, each by its names. What rules out is about those that are named; anything else is
 * about the whole product, null, where it lists none or one without a name: that may be any part.
 */
export function partsNamed(listed: readonly (readonly VexName[])[], isRulingOut: boolean): VexName[] | null {
  const isSure = listed.length > 0 && listed.every((names) => names.length > 0)
  return isRulingOut || isSure ? listed.flat() : null
}

/** Returns the elements of a list; none of anything else. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Returns the texts among values that are not empty. */
export function textsOf(values: readonly unknown[]): string[] {
  return values.filter((one): one is string => typeof one === 'string' && one !== '')
}

/** An id of a vulnerability at the end of a URL: `CVE-2024-1`, `GHSA-…`, `RHSA-2024:1`. */
const ID = /^(?=.*\d|ghsa)[a-z][a-z\d]*(?:[-:_][a-z\d.:]+)+$/i
/** Parameters of a URL that name one: `?id=CVE-2024-1`. */
const ID_PARAMETERS = ['id', 'name']

/** Returns the id of a vulnerability as it is written elsewhere: without spaces around it and the URL that ends with it. */
export function plainId(text: string): string {
  const trimmed = text.trim()
  const id = /^https?:\/\//i.test(trimmed) ? (idInUrl(trimmed) ?? trimmed) : trimmed
  return /^cve-/i.test(id) ? id.toUpperCase() : id
}

function idInUrl(text: string): string | undefined {
  const url = URL.parse(text)
  if (url === null) return undefined
  const last = url.pathname.replace(/\/+$/, '').split('/').at(-1) ?? ''
  const named = ID_PARAMETERS.map((parameter) => url.searchParams.get(parameter) ?? '')
  return [...named, last.replace(/\.(?:html?|json)$/i, '')].find((one) => ID.test(one))
}
