import { type Fields, fieldsOf, isObject } from '../../../../base/json/objects.ts'
import { instantOf, stampOf } from '../../../../base/time.ts'
import { isOpenVex, membersIn } from '../../../../documents/formats.ts'
import { datedIn } from '../../../../documents/vex/openvex.ts'
import { readProductName } from '../../../../documents/vex/products.ts'
import { listOf, plainId, rulesOut, textsOf, vexStatusOf } from '../../../../documents/vex/statement.ts'
import { type Attested, attestedIn } from '../../../../documents/vex/statements.ts'

/** A statement in the form of OpenVEX 0.2; fields that are not named here are kept. */
interface Statement {
  readonly timestamp?: unknown
  readonly products?: unknown
  readonly [field: string]: unknown
}

/** What a VEX repository needs of an OpenVEX document. */
export interface OpenVex {
  readonly author: string
  /** The document's own date. */
  readonly timestamp: unknown
  /** False for the form of before 0.2, which Trivy does not read. */
  readonly current: boolean
  readonly statements: readonly Statement[]
  /** Every package that a statement is about, without versions, and the places of those statements, ascending. */
  readonly packages: ReadonlyMap<string, readonly number[]>
}

/** Reads an OpenVEX document, also in an envelope, whose signature is not checked; null for anything else, and for several. */
export function readOpenVex(bytes: Buffer): OpenVex | null {
  const [first, second] = documentsOrNone(bytes)
  if (first === undefined || second !== undefined) return null
  const { document, about, isAttested, isWhole } = first
  const read = openVexOf(document, isAttested ? new Set(about) : null)
  return isWhole ? read : { ...read, current: false }
}

function documentsOrNone(bytes: Buffer): Attested[] {
  try {
    return attestedIn(bytes, (document) => isOpenVex(membersIn(document)))
  } catch {
    return []
  }
}

/** `about`: the digests that an attestation is about; null: the document is in none. */
function openVexOf(document: Fields, about: ReadonlySet<string> | null): OpenVex {
  const given = listOf(document['statements']).map(fieldsOf)
  const counting = about === null ? given : given.flatMap((one) => attested(one, about))
  const statements = counting.map((one) => dated(modernise(one), document))
  const { author, timestamp } = document
  return {
    author: typeof author === 'string' ? author : '',
    timestamp,
    current: counting.every((one, i) => one === statements[i]) && !isContradictory(statements),
    statements,
    packages: placesByPackage(statements),
  }
}

/**
 * Returns what a statement in an attestation says for scanners. What rules out counts for the digests alone that the attestation is
 * about, so products without such a digest are left out, and the statement where none is left.
 */
function attested(statement: Fields, about: ReadonlySet<string>): Fields[] {
  if (!rulesOut(vexStatusOf(statement['status']))) return [statement]
  const products = listOf(statement['products']).filter((one) => about.has(digestOf(one)))
  return products.length === 0 ? [] : [{ ...statement, products }]
}

/** Returns the digest by which a product is named; empty: by none. */
function digestOf(product: unknown): string {
  const { '@id': id } = fieldsOf(toObject(product))
  return typeof id === 'string' ? (readProductName(id)?.digest ?? '').toLowerCase() : ''
}

/** Returns a statement with the date by which it counts as its `timestamp`, the only date that Trivy compares. */
function dated(statement: Statement, document: Fields): Statement {
  const at = datedIn(statement, document)
  const written = statement.timestamp ?? document['timestamp']
  return at === '' || at === instantOf(written) ? statement : { ...statement, timestamp: stampOf(at) }
}

/** Whether statements of one time may contradict each other: which of them comes first then matters. */
function isContradictory(statements: readonly Statement[]): boolean {
  const out = new Set<unknown>()
  const open = new Set<unknown>()
  for (const { timestamp, vulnerability, status } of statements) {
    const { name } = fieldsOf(vulnerability)
    const key = JSON.stringify([timestamp, name])
    if (rulesOut(vexStatusOf(status))) out.add(key)
    else open.add(key)
  }
  return [...out].some((key) => open.has(key))
}

function placesByPackage(statements: readonly Statement[]): Map<string, number[]> {
  const places = new Map<string, number[]>()
  for (const [place, statement] of statements.entries())
    for (const id of new Set(packagesOf(statement))) {
      const others = places.get(id)
      if (others === undefined) places.set(id, [place])
      else others.push(place)
    }
  return places
}

/** The packages that a statement names as products, by `@id` and by identifier. */
function packagesOf({ products }: Statement): string[] {
  const names = listOf(products).flatMap((product) => {
    const { '@id': id, identifiers } = fieldsOf(product)
    return [id, fieldsOf(identifiers)['purl']]
  })
  return names.flatMap((name) => (typeof name === 'string' ? (packageId(name) ?? []) : []))
}

/**
 * Writes a statement so that Trivy applies it as it is meant. Before 0.2, vulnerabilities and products were texts, and
 * subcomponents a matter of the statement, which Trivy passes over. An empty list of subcomponents would be the whole product to
 * it. An image is named by its digest alone as well, because the registry is another one elsewhere.
 */
function modernise(statement: Fields): Statement {
  const { vulnerability, products, subcomponents, status } = statement
  const given = listOf(products)
  const named = vulnerabilityOf(vulnerability)
  const isOld = named !== vulnerability || given.some((one) => typeof one === 'string')
  const ofAll = subcomponents === undefined || subcomponents === null ? null : listOf(subcomponents)
  const isRulingOut = rulesOut(vexStatusOf(status))
  const written = given.flatMap((one) => productsOf(one, ofAll, isRulingOut))
  const isSame = written.length === given.length && written.every((one, i) => one === given[i])
  if (!isOld && ofAll === null && isSame) return statement
  const { subcomponents: _, ...rest } = statement
  return {
    ...rest,
    vulnerability: named,
    products: written,
  }
}

/** Returns a vulnerability with its id as the name, which is all that Trivy compares. */
function vulnerabilityOf(given: unknown): unknown {
  const { name, '@id': id } = typeof given === 'string' ? { name: given } : fieldsOf(given)
  const [written] = textsOf([name, id])
  if (written === undefined) return given
  const plain = plainId(written)
  return isObject(given) && plain === name ? given : { ...fieldsOf(given), name: plain }
}

/** Returns a product as it is written: none where it rules out nothing, two where it is named by a digest alone as well. */
function productsOf(given: unknown, ofAll: readonly unknown[] | null, isRulingOut: boolean): unknown[] {
  const product = toObject(given)
  if (!isObject(product)) return [product]
  const own = product['subcomponents'] ?? ofAll
  if (own === null) return [product, ...byDigest(product)]
  const parts = listOf(own)
  if (parts.length === 0 && isRulingOut) return []
  const isSame = parts.length > 0 && parts === product['subcomponents'] && parts.every(isObject)
  const { subcomponents: _, ...rest } = product
  const listed = parts.length === 0 ? rest : { ...rest, subcomponents: parts.map(toObject) }
  const written = isSame ? product : listed
  return [written, ...byDigest(written)]
}

function toObject(one: unknown): unknown {
  return typeof one === 'string' ? { '@id': one } : one
}

/** Returns an image under its digest alone; none for what names no digest, or nothing else. */
function byDigest(product: Fields): Fields[] {
  const { '@id': id, identifiers: _, hashes: __, ...rest } = product
  const name = typeof id === 'string' ? readProductName(id) : null
  if (name === null || name.digest === '') return []
  const last = name.key.slice(name.key.lastIndexOf('/') + 1)
  const bare = `pkg:oci/${encodeURIComponent(last)}@${encodeURIComponent(name.digest)}`
  const isBare = name.key.startsWith('oci/') && name.qualifiers.size === 0
  return isBare ? [] : [{ '@id': bare, ...rest }]
}

const NAMESPACE_LOWER: ReadonlySet<string> = new Set([
  ...['alpm', 'apk', 'bitbucket', 'composer', 'deb', 'github', 'golang', 'npm', 'rpm', 'qpkg'],
])
const NAME_LOWER: ReadonlySet<string> = new Set([
  ...['alpm', 'apk', 'bitbucket', 'bitnami', 'composer', 'deb', 'github', 'golang', 'npm'],
])

/** Names that are remembered, and their characters: documents of one service name the same packages, in many versions. */
const REMEMBERED = { count: 20_000, length: 500 }
const known = new Map<string, string | null>()

/**
 * A package URL without version, qualifiers and subpath, spelt as packageurl-go does, which is how Trivy looks a package
 * up in a VEX repository. Null for what is no package URL.
 */
export function packageId(purl: string): string | null {
  const name = unversioned(purl.trim())
  const before = known.get(name)
  if (before !== undefined) return before
  const id = spellId(name)
  if (name.length > REMEMBERED.length) return id
  if (known.size >= REMEMBERED.count) known.clear()
  known.set(name, id)
  return id
}

/** What is before qualifiers, subpath, and the last `@` of the last segment. */
function unversioned(purl: string): string {
  const end = purl.search(/[?#]/)
  const path = end < 0 ? purl : purl.slice(0, end)
  const at = path.lastIndexOf('@')
  return at > path.lastIndexOf('/') ? path.slice(0, at) : path
}

function spellId(purl: string): string | null {
  const match = /^pkg:\/*([a-z][\w.+-]*)\/(.*)/is.exec(purl)
  const type = match?.[1]?.toLowerCase()
  if (type === undefined) return null
  const segments = (match?.[2] ?? '').split('/').filter((segment) => segment !== '')
  const name = segments.pop()
  if (name === undefined) return null
  try {
    const parents = segments.map(decodeURIComponent)
    const namespace = NAMESPACE_LOWER.has(type) ? parents.map((one) => one.toLowerCase()) : parents
    const spelt = [...namespace, spellName(type, decodeURIComponent(name))].map(escape)
    return `pkg:${type}/${spelt.join('/')}`
  } catch {
    return null // not percent-encoded UTF-8
  }
}

function spellName(type: string, name: string): string {
  if (type === 'pypi') return name.toLowerCase().replaceAll('_', '-')
  return NAME_LOWER.has(type) ? name.toLowerCase() : name
}

/** All but letters, digits and `-_.~` is encoded. */
function escape(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
}
