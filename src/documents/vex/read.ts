import { type Fields, fieldsOf } from '../../base/json/objects.ts'
import { type VexDocument, type VexReader, tagsBelieving } from '../../store/catalog/vex.ts'
import { isCycloneDx, membersIn } from '../formats.ts'
import { serialOf } from '../sboms/cyclonedx.ts'
import { textOr } from '../sboms/sbom.ts'
import { type BomComponent, componentsOf } from './cyclonedx.ts'
import { type BomLink, type Statement, type VexName, type VexProduct, nameWith, rulesOut } from './statement.ts'
import { attestedIn, readStatements } from './statements.ts'

/** Largest document that is read, bytes: far above any real VEX document. */
const MAX_VEX_BYTES = 64 * 2 ** 20

/** What statements are read from; without the SBOMs of tags, links to these are not followed. */
export type VexReads = Pick<VexReader, 'listVexDocuments' | 'readVexContent'> &
  Partial<Pick<VexReader, 'readSbomsOf' | 'listTagsWithoutVex'>>

type ContentReader = Omit<VexReads, 'listVexDocuments'>

/**
 * Reads the statements of a stored document; null where it is damaged, too large or of another format. A BOM-Link to an SBOM of
 * the tag whose document it is leads to the component that it names. What rules out is left out of a document whose signature is
 * enforced and not verified.
 */
export function readVexStatements(reads: ContentReader, document: VexDocument): Statement[] | null {
  const content = document.size > MAX_VEX_BYTES ? null : reads.readVexContent(document)
  const stated = content === null ? null : readStatements(content)
  const statements = tagsBelieving(document) === null ? withoutRulings(stated) : stated
  if (statements === null || !statements.some(hasLink)) return statements
  const boms = (document.tags ?? []).flatMap((tag) => reads.readSbomsOf?.(tag) ?? []).map(bomIn)
  return statements.map((statement) => ({
    ...statement,
    products: statement.products.map((product) => followed(product, boms, rulesOut(statement.status))),
  }))
}

function withoutRulings(statements: Statement[] | null): Statement[] | null {
  return statements === null ? null : statements.filter(({ status }) => !rulesOut(status))
}

/** Whether the stored bytes of a document are damaged, and not what it says: another time they may be read. */
export function isVexDamaged(reads: ContentReader, document: VexDocument): boolean {
  return document.size <= MAX_VEX_BYTES && reads.readVexContent(document) === null
}

/** Reports whether a statement names anything by a link into an SBOM. */
export function hasLink({ products }: Statement): boolean {
  return products.some(({ names }) => names.some(({ link }) => link !== undefined))
}

/** The CycloneDX document that an SBOM is, or that is in its envelopes; an empty one for another format. */
function bomIn(content: Buffer): Fields {
  try {
    const [bom] = attestedIn(content, (document) => isCycloneDx(membersIn(document)))
    return bom?.document ?? {}
  } catch {
    return {}
  }
}

/**
 * Returns a product with what its links lead to: a component of what an SBOM describes, or that itself. Where the link names another
 * SBOM than the tag has, what rules out is about that one alone, although the link has a package URL.
 */
function followed(product: VexProduct, boms: readonly Fields[], isRulingOut: boolean): VexProduct {
  const [name] = product.names
  if (name?.link === undefined) return product
  const { link } = name
  const bom = boms.find((one) => isOf(one, link))
  const isOther = bom === undefined && boms.some((one) => serialOf(one).serial !== '')
  if (isOther && isRulingOut) return { names: [{ purl: '', versions: null, link }], parts: null }
  if (bom === undefined) return product
  const known = componentsOf(bom)
  const [component = named(name)] = link.refs.flatMap((ref) => known.get(ref) ?? [])
  if (component === null) return product
  const meant = nameWith(component.purl, component.version)
  const subject = textOr(fieldsOf(fieldsOf(bom['metadata'])['component'])['purl'])
  if (subject === '' || subject === component.purl) return { names: [{ ...meant, link }], parts: null }
  return { names: [nameWith(subject, '')], parts: [meant] }
}

function named({ purl }: VexName): BomComponent | null {
  return purl === '' ? null : { purl, version: '' }
}

function isOf(bom: Fields, link: BomLink): boolean {
  const { serial, version } = serialOf(bom)
  return serial !== '' && serial === link.serial && version === link.version
}
