import { firstInstant } from '../../base/time.ts'
import { type Fields, eachObject, fieldsOf } from '../../base/json/objects.ts'
import { type CsafProduct, type ProductTree, csafIds, csafStatements, readProductTree } from './csaf.ts'
import { readProductName } from './products.ts'
import { type Statement, type VexName, type VexProduct, isPurl, rulesOut, vexStatusOf } from './statement.ts'

/** A platform that is an operating system, as its CPE says: what is installed on it is named by its own package URL. */
const OPERATING_SYSTEM = /^cpe:(?:\/|2\.3:)o:/i

/** Reads the statements of a CSAF document, whose date is that of its current release, else of its first one. */
export function readCsafStatements(csaf: Fields): Statement[] {
  const { tracking } = fieldsOf(csaf['document'])
  const { current_release_date: current, initial_release_date: initial } = fieldsOf(tracking)
  const at = firstInstant([current, initial])
  const tree = readProductTree(fieldsOf(csaf['product_tree']))
  const found = eachObject(csaf['vulnerabilities']).flatMap((entry) => {
    const vulnerabilities = csafIds(entry)
    return csafStatements(entry, tree).map(({ status: word, justification, note, products }) => {
      const status = vexStatusOf(word)
      const isRulingOut = rulesOut(status)
      return {
        vulnerabilities,
        products: products.flatMap((id) => productOf(id, tree, isRulingOut)),
        status,
        justification,
        note,
        at,
      }
    })
  })
  // A product that is only mentioned has no status: nothing is stated about it.
  return found.filter(({ status }) => status !== '').map((statement, place) => ({ ...statement, place }))
}

/**
 * Returns a product by its package URLs, and a component of another product as that. Where the other product has none, what
 * rules out is about nothing: which product it is cannot be known, unless it is an operating system and the component's
 * package URL names a version.
 */
function productOf(id: string, tree: ProductTree, isRulingOut: boolean): VexProduct[] {
  const product = tree.productOf(id)
  if (product === null) return []
  const { related } = product
  const part = namesOf(product, isRulingOut)
  if (related === null) return part.length === 0 ? [] : [{ names: part, parts: null }]
  const parts = part.length > 0 ? part : namesOf(tree.productOf(related.part), isRulingOut)
  const whole = tree.productOf(related.of)
  const names = namesOf(whole, isRulingOut)
  if (names.length > 0) return [{ names, parts }]
  if (!isRulingOut) return [{ names: parts, parts: null }]
  if (whole === null || !OPERATING_SYSTEM.test(whole.cpe)) return []
  return [{ names: parts.filter(({ purl }) => readProductName(purl)?.version), parts: null }]
}

/** What rules out names a product in the version of its branch, where its package URL has none; anything else in any version. */
function namesOf(product: CsafProduct | null, isRulingOut: boolean): VexName[] {
  if (product === null) return []
  const versions = isRulingOut ? product.versions : null
  return product.purls.filter(isPurl).map((purl) => {
    const isWhole = versions === null || readProductName(purl)?.version !== ''
    return { purl, versions: isWhole ? null : versions }
  })
}
