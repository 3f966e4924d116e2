import { instantOf } from '../../core/time.ts'
import { type Fields, eachObject, fieldsOf, isObject, jsonTextOf } from '../../json/objects.ts'
import { envelopesOf } from '../envelopes.ts'
import { textOr } from '../sbom.ts'

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
  /** Its package URLs. */
  readonly purls: readonly string[]
  /** The only versions that are meant; null: as the package URLs have it. */
  readonly versions: readonly string[] | null
  /** Package URLs of the only components of it that are meant; null: the product as a whole. */
  readonly parts: readonly string[] | null
}

/** Reads the statements of OpenVEX and CycloneDX, also in an envelope, whose signature is not checked; null for anything else. */
export function readStatements(bytes: Buffer): Statement[] | null {
  try {
    for (const document of envelopesOf(fieldsOf(JSON.parse(jsonTextOf(bytes))))) {
      const context = textOr(document['@context'])
      if (context.includes('openvex')) return readOpenVex(document)
      if (document['bomFormat'] === 'CycloneDX') return readCycloneDx(document)
    }
  } catch {
    // No JSON, or an envelope around none.
  }
  return null
}

const STATUSES: ReadonlySet<unknown> = new Set<VexStatus>([
  ...(['not_affected', 'fixed', 'affected', 'under_investigation'] as const),
])

/** Before OpenVEX 0.2, vulnerabilities and products were texts, and subcomponents a matter of the statement. */
function readOpenVex(document: Fields): Statement[] {
  return [...eachObject(document['statements'])].map((one) => {
    const { vulnerability, status, products, subcomponents } = one
    const { name, '@id': id, aliases } = fieldsOf(vulnerability)
    const named =
      typeof vulnerability === 'string' ? [vulnerability] : [name, id, ...listOf(aliases)]
    const notes = [one['impact_statement'], one['action_statement'], one['status_notes']]
    return {
      vulnerabilities: textsOf(named),
      products: listOf(products).map((product) => {
        const parts = fieldsOf(product)['subcomponents'] ?? subcomponents
        return {
          ...{ purls: purlsOf(product), versions: null },
          parts: isEmpty(parts) ? null : listOf(parts).flatMap(purlsOf),
        }
      }),
      status: STATUSES.has(status) ? (status as VexStatus) : '',
      justification: textOr(one['justification']),
      note: textsOf(notes)[0] ?? '',
      at: instantOf(one['timestamp'] ?? document['timestamp']),
    }
  })
}

/** The package URLs by which OpenVEX names a product or a component. */
function purlsOf(product: unknown): string[] {
  if (!isObject(product)) return textsOf([product]).filter(isPurl)
  return textsOf([product['@id'], fieldsOf(product['identifiers'])['purl']]).filter(isPurl)
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
  const purls = new Map<string, string>()
  collectPurls([component], purls)
  collectPurls(bom['components'], purls)
  return [...eachObject(bom['vulnerabilities'])].flatMap((one) => {
    const { id, references, analysis, affects, updated } = one
    if (!isObject(analysis)) return []
    const { state, justification, detail, lastUpdated } = analysis
    const status = STATES.get(state) ?? ''
    return {
      vulnerabilities: textsOf([id, ...[...eachObject(references)].map((other) => other['id'])]),
      products: [...eachObject(affects)].map((affected) => ({
        ...{ purls: referencedIn(affected, purls), parts: null },
        versions: versionsOf(affected, rulesOut(status)),
      })),
      ...{ status, justification: textOr(justification), note: textOr(detail) },
      at: instantOf(lastUpdated ?? updated ?? timestamp),
    }
  })
}

/** Collects the package URLs of components and those within them, by their references. */
function collectPurls(components: unknown, purls: Map<string, string>): void {
  const lists = [components]
  for (const list of lists)
    // it grows while it is read: components have components
    for (const one of eachObject(list)) {
      const [ref, purl] = [textOr(one['bom-ref']), textOr(one['purl'])]
      if (ref !== '' && isPurl(purl)) purls.set(ref, purl)
      lists.push(one['components'])
    }
}

/** What `affects` refers to: a component of the document, a package URL, or either of them behind a BOM-Link. */
function referencedIn({ ref }: Fields, purls: ReadonlyMap<string, string>): string[] {
  const text = textOr(ref)
  const [, linked = text] = /^urn:cdx:[^#]*#(.*)$/s.exec(text) ?? []
  const purl = purls.get(text) ?? linked
  return isPurl(purl) ? [purl] : []
}

/**
 * The versions that `affects` names. Where the statement rules a vulnerability out, only versions that are named exactly, as
 * not affected, are meant; another statement is about all versions where it names ranges.
 */
function versionsOf({ versions }: Fields, isRulingOut: boolean): readonly string[] | null {
  if (isEmpty(versions)) return null
  const listed = [...eachObject(versions)]
  if (isRulingOut)
    return textsOf(listed.filter((one) => one['status'] === 'unaffected').map((one) => one['version'])) // prettier-ignore
  return listed.some((one) => one['range'] !== undefined)
    ? null
    : textsOf(listed.map((one) => one['version']))
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
