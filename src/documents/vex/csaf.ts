import { firstInstant } from '../../base/time.ts'
import { type Fields, eachObject, fieldsOf } from '../../base/json/objects.ts'
import { textOr } from '../sboms/sbom.ts'
import { readProductName } from './products.ts'
import {
  type StatedWords,
  type Statement,
  type VexContent,
  type VexName,
  type VexProduct,
  type VexStatus,
  isPurl,
  listOf,
  partsNamed,
  rulesOut,
  textsOf,
  vexStatusOf,
} from './statement.ts'

/**
 * Reads CSAF. The date of its statements is that of its current release, else of its first one. A product that is only mentioned
 * has no status: nothing is stated about it. A draft rules nothing out.
 */
export function readCsaf(csaf: Fields): VexContent {
  const { publisher, tracking, csaf_version: version } = fieldsOf(csaf['document'])
  const { current_release_date: current, initial_release_date: initial } = fieldsOf(tracking)
  const at = firstInstant([current, initial])
  const isDraft = fieldsOf(tracking)['status'] === 'draft'
  const tree = readProductTree(fieldsOf(csaf['product_tree']))
  const given: GivenStatement[] = []
  const statements: (Statement | null)[] = []
  let place = 0
  for (const entry of eachObject(csaf['vulnerabilities'])) {
    const vulnerabilities = csafIds(entry)
    for (const one of csafStatements(entry, tree)) {
      const status = vexStatusOf(one.status)
      const isStated = status !== '' && !(isDraft && rulesOut(status))
      given.push({ ...one, vulnerability: vulnerabilities[0] ?? textOr(entry['title']) })
      statements.push(isStated ? { vulnerabilities, ...judged(one, status, tree), at, place } : null)
      if (isStated) place++
    }
  }
  return {
    format: `CSAF ${textOr(version)}`,
    author: textOr(fieldsOf(publisher)['name']),
    updatedAt: textOr(current),
    statements,
    wordsAt: (index, most) => wordsOf(given[index], tree, most),
  }
}

type GivenStatement = CsafStatement & { readonly vulnerability: string }

function judged({ justification, note, products }: CsafStatement, status: VexStatus, tree: ProductTree) {
  const isRulingOut = rulesOut(status)
  return { products: products.flatMap((id) => productOf(id, tree, isRulingOut)), status, justification, note }
}

function wordsOf(given: GivenStatement | undefined, tree: ProductTree, most: number): StatedWords {
  const { vulnerability = '', status = '', justification = '', note = '', products = [] } = given ?? {}
  const named = products.slice(0, most).map(tree.nameOf)
  return { vulnerability, status, justification, note, products: named, productCount: products.length }
}

/**
 * A platform that is an operating system, as its CPE says, or a part of Red Hat’s, whose parts but BaseOS have the CPE of
 * an application: what is installed on it is named by its own package URL.
 */
const OPERATING_SYSTEM = /^cpe:(?:\/|2\.3:)(?:o:|a:redhat:(?:enterprise_linux|rhel_(?:aus|e4s|els|eus|tus)\w*):)/i

/**
 * Returns a product by its package URLs, and a component of another product as that. Where the other product has none, what
 * rules out is about nothing: which product it is cannot be known, unless it is an operating system and the component's
 * package URL names a version. What leaves open, and names nothing by a package URL, may be about anything.
 */
function productOf(id: string, tree: ProductTree, isRulingOut: boolean): VexProduct[] {
  const product = tree.productOf(id)
  const related = product?.related ?? null
  const part = namesOf(product, isRulingOut)
  if (related === null) return part.length === 0 && isRulingOut ? [] : [{ names: part, parts: null }]
  const parts = part.length > 0 ? part : namesOf(tree.productOf(related.part), isRulingOut)
  const whole = tree.productOf(related.of)
  const names = namesOf(whole, isRulingOut)
  if (names.length > 0) return [{ names, parts: partsNamed([parts], isRulingOut) }]
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

/** A statement of a CSAF document: one status, reason and note, and the products that they are about. */
interface CsafStatement {
  readonly status: string
  readonly justification: string
  readonly note: string
  /** Ids of products. */
  readonly products: readonly string[]
}

/** Groups of products in CSAF 2.0 (3.2.3.9) and their status; null: a group that says nothing about a vulnerability. */
const STATUSES: ReadonlyMap<string, string | null> = new Map([
  ['known_affected', 'affected'],
  ['first_affected', 'affected'],
  ['last_affected', 'affected'],
  ['known_not_affected', 'not_affected'],
  ['fixed', 'fixed'],
  ['first_fixed', 'fixed'],
  ['under_investigation', 'under_investigation'],
  ['recommended', null],
  ['unknown', null],
])

/** The status of products that only remediations, threats, flags or scores name. */
const NOT_STATED = 'not stated'

/** What a document says that a product is; texts are empty where it does not. */
interface CsafProduct {
  readonly purls: readonly string[]
  /** The versions that its branches name, none for a range of them; null: they name none. */
  readonly versions: readonly string[] | null
  readonly cpe: string
  /** The ids of a component and of what it is a component of, or installed on; null: it is no relationship. */
  readonly related: { readonly part: string; readonly of: string } | null
}

/** Products by their ids, and the products of each group. */
type ProductTree = ReturnType<typeof readProductTree>

/**
 * Reads `product_tree`: full product names, branches at any depth, relationships and groups. A relationship without a
 * name of its own is named by the two products that it relates.
 */
function readProductTree(tree: Fields) {
  const names = new Map<string, string>()
  const products = new Map<string, CsafProduct>()
  const add = (
    value: unknown,
    related: CsafProduct['related'] = null,
    versions: CsafProduct['versions'] = null,
  ): void => {
    const { product_id: id, name, product_identification_helper: helper } = fieldsOf(value)
    if (typeof id !== 'string') return
    const { purl, purls: listed, cpe } = fieldsOf(helper)
    const purls = textsOf([purl, ...listOf(listed)])
    const text = [name, purl, cpe].find((one) => typeof one === 'string' && one !== '')
    if (typeof text === 'string' && !names.has(id)) names.set(id, text)
    if (products.has(id)) return
    products.set(id, { purls, versions, cpe: typeof cpe === 'string' ? cpe : '', related })
  }
  for (const one of eachObject(tree['full_product_names'])) add(one)
  const lists: { branches: unknown; versions: CsafProduct['versions'] }[] = [
    { branches: tree['branches'], versions: null },
  ]
  for (const { branches, versions: outer } of lists)
    // it grows while it is read: branches have branches
    for (const branch of eachObject(branches)) {
      const versions = versionsOf(branch) ?? outer
      add(branch['product'], null, versions)
      lists.push({ branches: branch['branches'], versions })
    }
  for (const relationship of eachObject(tree['relationships'])) {
    const { product_reference: part, relates_to_product_reference: of } = relationship
    const ends = [part, of].map((id) => (typeof id === 'string' ? id : ''))
    const [first = '', second = ''] = ends.map((id) => names.get(id) ?? id)
    const full = fieldsOf(relationship['full_product_name'])
    const [partId = '', ofId = ''] = ends
    const named = { ...full, name: full['name'] ?? `${first} as a component of ${second}` }
    add(named, { part: partId, of: ofId })
  }
  const groups = new Map<string, readonly string[]>()
  for (const { group_id: id, product_ids: ids } of eachObject(tree['product_groups']))
    if (typeof id === 'string') groups.set(id, textsOf(listOf(ids)))
  return {
    /** Returns the name of a product; its id, where it has none. */
    nameOf: (id: string): string => names.get(id) ?? id,
    productOf: (id: string): CsafProduct | null => products.get(id) ?? null,
    groups,
  }
}

/** The version that a branch is, none for a range of versions; null: it is something else, such as a vendor. */
function versionsOf({ category, name }: Fields): readonly string[] | null {
  if (category === 'product_version_range') return []
  return category === 'product_version' ? textsOf([name]) : null
}

/** Returns the ids of the vulnerability of an entry: its CVE, then those of other systems. */
function csafIds({ cve, ids }: Fields): string[] {
  return textsOf([cve, ...eachObject(ids).map(({ text }) => text)])
}

/** Returns the statements of one entry of `vulnerabilities`, in the order of the document. */
function csafStatements(entry: Fields, { groups }: Pick<ProductTree, 'groups'>): CsafStatement[] {
  const flags = textsByProduct(entry['flags'], groups, ({ label }) => label)
  const threats = textsByProduct(entry['threats'], groups, ({ category, details }) =>
    category === 'impact' ? details : undefined,
  )
  const remedies = textsByProduct(entry['remediations'], groups, ({ category, details }) =>
    [category, details].filter((one) => typeof one === 'string').join(': '),
  )
  const statements = new Map<string, { of: Omit<CsafStatement, 'products'>; products: string[] }>()
  const seen = new Set<string>()
  const add = (group: string, status: string, id: string): void => {
    const isClear = status === 'not_affected'
    const justification = isClear ? (flags.get(id) ?? '') : ''
    const note = (isClear ? threats.get(id) : remedies.get(id)) ?? ''
    const key = JSON.stringify([group, justification, note])
    const statement = statements.get(key) ?? { of: { status, justification, note }, products: [] }
    statement.products.push(id)
    statements.set(key, statement)
  }
  for (const [group, listed] of Object.entries(fieldsOf(entry['product_status']))) {
    const status = STATUSES.get(group)
    for (const id of status === undefined ? [] : textsOf(listOf(listed))) {
      seen.add(id)
      if (typeof status === 'string') add(group, status, id)
    }
  }
  for (const id of new Set([remedies, flags, threats].flatMap((texts) => [...texts.keys()])))
    if (!seen.has(id)) add(NOT_STATED, NOT_STATED, id)
  return [...statements.values()].map(({ of, products }) => ({ ...of, products }))
}

/** Returns the first text for each product that the entries of a list name, by id or by group. */
function textsByProduct(
  list: unknown,
  groups: ProductTree['groups'],
  textIn: (entry: Fields) => unknown,
): Map<string, string> {
  const texts = new Map<string, string>()
  for (const entry of eachObject(list)) {
    const value = textIn(entry)
    const text = typeof value === 'string' ? value : ''
    const named = textsOf(listOf(entry['group_ids'])).flatMap((group) => groups.get(group) ?? [])
    for (const id of [...textsOf(listOf(entry['product_ids'])), ...named])
      if ((texts.get(id) ?? '') === '') texts.set(id, text)
  }
  return texts
}
