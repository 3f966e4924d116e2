import { jsonTextOf, isObject } from '../../json/objects.ts'

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

type Fields = Readonly<Record<string, unknown>>

/** Reads an OpenVEX document; null for anything else. */
export function readOpenVex(bytes: Buffer): OpenVex | null {
  const document = parse(bytes)
  const context = document['@context']
  if (typeof context !== 'string' || !context.includes('openvex')) return null
  const given = listOf(document['statements']).map(fieldsOf)
  const statements = given.map(modernise)
  const { author, timestamp } = document
  return {
    author: typeof author === 'string' ? author : '',
    timestamp,
    current: given.every((one, i) => one === statements[i]),
    statements,
    packages: placesByPackage(statements),
  }
}

function parse(bytes: Buffer): Fields {
  try {
    return fieldsOf(JSON.parse(jsonTextOf(bytes)))
  } catch {
    return {}
  }
}

function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {}
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
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

/** Before 0.2, vulnerabilities and products were texts, and subcomponents a matter of the statement. */
function modernise(statement: Fields): Statement {
  const { vulnerability, products, subcomponents } = statement
  const isOld =
    typeof vulnerability === 'string' || listOf(products).some((one) => typeof one === 'string')
  if (!isOld) return statement
  const toObject = (one: unknown): unknown => (typeof one === 'string' ? { '@id': one } : one)
  const parts = listOf(subcomponents).map(toObject)
  const own = parts.length === 0 ? {} : { subcomponents: parts }
  const { subcomponents: _, ...rest } = statement
  return {
    ...rest,
    vulnerability: typeof vulnerability === 'string' ? { name: vulnerability } : vulnerability,
    products: listOf(products).map((one) => ({ ...fieldsOf(toObject(one)), ...own })),
  }
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
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
