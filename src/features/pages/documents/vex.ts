import { type Fields, eachObject, fieldsOf, isObject } from '../../../base/json/objects.ts'
import { csafIds, csafStatements, readProductTree } from '../../../documents/vex/csaf.ts'
import { clip, shortText } from '../cells.ts'
import { contentsIn } from './unwrap.ts'

/** A statement on a vulnerability; '' for what it does not name. */
export interface VexStatement {
  readonly vulnerability: string
  readonly status: string
  readonly justification: string
  readonly note: string
  /** The first products, and the number of all. */
  readonly products: readonly string[]
  readonly productCount: number
}

/** What a page shows of a VEX document. */
export interface Vex {
  readonly format: string
  readonly author: string
  readonly updatedAt: string
  readonly statements: readonly VexStatement[]
  /** Number of statements in the document; `statements` has at most `MOST_STATEMENTS`. */
  readonly total: number
}

/** Statements of a document that are read, and products of a statement that are named. */
const MOST_STATEMENTS = 20_000
const MOST_PRODUCTS = 5

/** Reads OpenVEX, CycloneDX and CSAF, also in attestations; null for anything else. */
export function readVex(value: unknown): Vex | null {
  const [found] = contentsIn(value, (fields) => readerOf(fields) !== null)
  return found === undefined ? null : (readerOf(found)?.(found) ?? null)
}

function readerOf(fields: Fields): ((fields: Fields) => Vex) | null {
  if (fields['bomFormat'] === 'CycloneDX') return readCycloneDx
  const { csaf_version: csaf } = fieldsOf(fields['document'])
  if (csaf !== undefined) return readCsaf
  return Array.isArray(fields['statements']) ? readOpenVex : null
}

function vexOf(head: Omit<Vex, 'statements' | 'total'>, found: readonly VexStatement[]): Vex {
  return { ...head, statements: found.slice(0, MOST_STATEMENTS), total: found.length }
}

function readOpenVex(document: Fields): Vex {
  const { author, last_updated: updated, timestamp } = document
  const statements = [...eachObject(document['statements'])].map((one): VexStatement => {
    const { vulnerability, status, justification } = one
    const { name, '@id': id } = fieldsOf(vulnerability)
    const notes = [one['impact_statement'], one['action_statement'], one['status_notes']]
    return {
      vulnerability: shortText(typeof vulnerability === 'string' ? vulnerability : (name ?? id)),
      status: shortText(status, 60),
      justification: shortText(justification),
      note: shortText(notes.find((note) => typeof note === 'string' && note !== '')),
      ...productsOf(one['products']),
    }
  })
  const head = { format: 'OpenVEX', author: shortText(author), updatedAt: shortText(updated ?? timestamp, 60) }
  return vexOf(head, statements)
}

/** Products by their ids, or by what they consist of. */
function productsOf(value: unknown): Pick<VexStatement, 'products' | 'productCount'> {
  const all: unknown[] = Array.isArray(value) ? value : []
  const products = all.slice(0, MOST_PRODUCTS).map((one) => {
    if (!isObject(one)) return shortText(one)
    const { '@id': id, ref, identifiers } = one
    return shortText(id ?? ref ?? fieldsOf(identifiers)['purl'])
  })
  return { products: products.filter((text) => text !== ''), productCount: all.length }
}

function readCycloneDx(bom: Fields): Vex {
  const { timestamp, supplier, component } = fieldsOf(bom['metadata'])
  const statements = [...eachObject(bom['vulnerabilities'])].map((one): VexStatement => {
    const { state, justification, detail } = fieldsOf(one['analysis'])
    return {
      vulnerability: shortText(one['id']),
      status: shortText(state, 60),
      justification: shortText(justification),
      note: shortText(detail),
      ...productsOf(one['affects']),
    }
  })
  const author = fieldsOf(supplier)['name'] ?? fieldsOf(component)['name']
  const format = `CycloneDX ${shortText(bom['specVersion'], 20)}`
  return vexOf({ format, author: shortText(author), updatedAt: shortText(timestamp, 60) }, statements)
}

function readCsaf(csaf: Fields): Vex {
  const { publisher, tracking, csaf_version: version } = fieldsOf(csaf['document'])
  const tree = readProductTree(fieldsOf(csaf['product_tree']))
  const statements = [...eachObject(csaf['vulnerabilities'])].flatMap((one) => {
    const [id = one['title']] = csafIds(one)
    const vulnerability = shortText(id)
    return csafStatements(one, tree).map(({ products, ...statement }): VexStatement => {
      const shown = products.slice(0, MOST_PRODUCTS).map((id) => clip(tree.nameOf(id)))
      return {
        vulnerability,
        status: statement.status,
        justification: shortText(statement.justification),
        note: shortText(statement.note),
        products: shown,
        productCount: products.length,
      }
    })
  })
  const head = {
    format: `CSAF ${shortText(version, 20)}`,
    author: shortText(fieldsOf(publisher)['name']),
    updatedAt: shortText(fieldsOf(tracking)['current_release_date'], 60),
  }
  return vexOf(head, statements)
}
