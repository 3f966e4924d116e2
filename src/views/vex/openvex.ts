import { sha256Hex } from '../../core/digest.ts'
import { instantOf } from '../../core/time.ts'
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
  readonly statements: readonly Stated[]
  /** Every package that a statement is about, without versions. */
  readonly packages: ReadonlySet<string>
}

/** A statement, and the packages that it names, without versions. */
interface Stated {
  readonly statement: Statement
  readonly packages: ReadonlySet<string>
}

type Fields = Readonly<Record<string, unknown>>

/** Reads an OpenVEX document; null for anything else. */
export function readOpenVex(bytes: Buffer): OpenVex | null {
  const document = parse(bytes)
  const context = document['@context']
  if (typeof context !== 'string' || !context.includes('openvex')) return null
  const given = listOf(document['statements']).map(fieldsOf)
  const statements = given.map((one): Stated => {
    const statement = modernise(one)
    return { statement, packages: new Set(packagesOf(statement)) }
  })
  const { author, timestamp } = document
  return {
    author: typeof author === 'string' ? author : '',
    timestamp,
    current: given.every((one, i) => one === statements[i]?.statement),
    statements,
    packages: new Set(statements.flatMap(({ packages }) => [...packages])),
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

/** Collects the statements of documents about a package, or about all their packages. */
export interface VexMerge {
  /** Documents in the order in which their statements of equal time are written. */
  add(document: OpenVex): void
  /** The merged document. */
  end(): Buffer
}

/**
 * Merges several documents about a package (null: all their packages) into one, because a VEX repository has one for each.
 * Statements are ordered by their time, so that the newest counts, those of equal time in the order of the
 * documents; of equal statements only the last one stays. Equal documents give equal bytes.
 */
export function createMerge(about: string | null): VexMerge {
  const last = new Map<string, { readonly at: string; readonly i: number }>() // equal texts have the same time
  let count = 0
  const authors = new Set<string>()
  let newest: { readonly timestamp: unknown; readonly at: string } | null = null
  return {
    add({ statements, timestamp, author }) {
      authors.add(author)
      const at = instantOf(timestamp)
      if (at !== '' && (newest === null || compare(newest.at, at) <= 0)) newest = { timestamp, at }
      for (const { statement, packages } of statements) {
        if (about !== null && !packages.has(about)) continue
        const isDated = 'timestamp' in statement || timestamp === undefined
        const dated = isDated ? statement : { ...statement, timestamp }
        const text = JSON.stringify(dated)
        last.set(text, { at: instantOf(dated.timestamp), i: count++ })
      }
    },
    end() {
      const sorted = [...last].sort(([, a], [, b]) => compare(a.at, b.at) || a.i - b.i)
      const statements = sorted.map(([text]) => text)
      const head = {
        '@context': 'https://openvex.dev/ns/v0.2.0',
        '@id': `urn:sha256:${sha256Hex(statements.join('\n'))}`,
        author: [...authors].sort().join(', '),
        role: 'Statements of several documents, put together by a mirror',
        timestamp: newest?.timestamp ?? '1970-01-01T00:00:00Z',
        version: 1,
      }
      const start = JSON.stringify(head).slice(0, -1)
      return Buffer.from(`${start},"statements":[${statements.join()}]}`)
    },
  }
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

const NAMESPACE_LOWER: ReadonlySet<string> = new Set([
  ...['alpm', 'apk', 'bitbucket', 'composer', 'deb', 'github', 'golang', 'npm', 'rpm', 'qpkg'],
])
const NAME_LOWER: ReadonlySet<string> = new Set([
  ...['alpm', 'apk', 'bitbucket', 'bitnami', 'composer', 'deb', 'github', 'golang', 'npm'],
])

/** Package URLs that are remembered, and their characters: documents of one service name the same packages. */
const REMEMBERED = { count: 20_000, length: 500 }
const known = new Map<string, string | null>()

/**
 * A package URL without version, qualifiers and subpath, spelt as packageurl-go does, which is how Trivy looks a package
 * up in a VEX repository. Null for what is no package URL.
 */
export function packageId(purl: string): string | null {
  const before = known.get(purl)
  if (before !== undefined) return before
  const id = spellId(purl)
  if (purl.length > REMEMBERED.length) return id
  if (known.size >= REMEMBERED.count) known.clear()
  known.set(purl, id)
  return id
}

function spellId(purl: string): string | null {
  const match = /^pkg:\/*([a-z][\w.+-]*)\/([^?#]*)/i.exec(purl.trim())
  const type = match?.[1]?.toLowerCase()
  if (type === undefined) return null
  const path = match?.[2] ?? ''
  const at = path.lastIndexOf('@')
  const unversioned = at > path.lastIndexOf('/') ? path.slice(0, at) : path
  const segments = unversioned.split('/').filter((segment) => segment !== '')
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
