import { type Fields, eachObject, fieldsOf } from '../../json/objects.ts'
import { clip, shortText } from '../cells.ts'

/** A statement of a CSAF document: one status, reason and note, and the products that they are about. */
interface CsafStatement {
  readonly status: string
  readonly justification: string
  readonly note: string
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

/** Names of products, by their ids, and the products of each group. */
interface ProductTree {
  readonly nameOf: (id: string) => string
  readonly groups: ReadonlyMap<string, readonly string[]>
}

/**
 * Reads `product_tree`: full product names, branches at any depth, relationships and groups. A relationship without a
 * name of its own is named by the two products that it relates.
 */
export function readProductTree(tree: Fields): ProductTree {
  const names = new Map<string, string>()
  const add = (value: unknown): void => {
    const { product_id: id, name, product_identification_helper: helper } = fieldsOf(value)
    const { purl, cpe } = fieldsOf(helper)
    const text = [name, purl, cpe].find((one) => typeof one === 'string' && one !== '')
    if (typeof id === 'string' && typeof text === 'string' && !names.has(id)) names.set(id, text)
  }
  for (const one of eachObject(tree['full_product_names'])) add(one)
  const lists = [tree['branches']]
  for (const branches of lists)
    // it grows while it is read: branches have branches
    for (const branch of eachObject(branches)) {
      add(branch['product'])
      lists.push(branch['branches'])
    }
  for (const relationship of eachObject(tree['relationships'])) {
    const { product_reference: part, relates_to_product_reference: of } = relationship
    const ends = [part, of].map((id) => (typeof id === 'string' ? (names.get(id) ?? id) : ''))
    const full = fieldsOf(relationship['full_product_name'])
    add({ ...full, name: full['name'] ?? `${ends[0]} as a component of ${ends[1]}` })
  }
  const groups = new Map<string, readonly string[]>()
  for (const { group_id: id, product_ids: ids } of eachObject(tree['product_groups']))
    if (typeof id === 'string') groups.set(id, textsOf(ids))
  return { nameOf: (id) => clip(names.get(id) ?? id), groups }
}

/** Returns the statements of one entry of `vulnerabilities`, in the order of the document. */
export function csafStatements(entry: Fields, { nameOf, groups }: ProductTree): CsafStatement[] {
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
    statement.products.push(nameOf(id))
    statements.set(key, statement)
  }
  for (const [group, listed] of Object.entries(fieldsOf(entry['product_status']))) {
    const status = STATUSES.get(group)
    for (const id of status === undefined ? [] : textsOf(listed)) {
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
    const text = shortText(textIn(entry))
    const named = textsOf(entry['group_ids']).flatMap((group) => groups.get(group) ?? [])
    for (const id of [...textsOf(entry['product_ids']), ...named])
      if ((texts.get(id) ?? '') === '') texts.set(id, text)
  }
  return texts
}

function textsOf(value: unknown): string[] {
  const all: unknown[] = Array.isArray(value) ? value : []
  return all.filter((one) => typeof one === 'string')
}
