import type { MatchedComponent } from '../finding.ts'
import { type ProductName, isCovered, readProductName } from './products.ts'
import { type Statement, type VexName, type VexProduct, rulesOut } from './statements.ts'

/** What of a component says which product it is. */
export type NamedComponent = Pick<MatchedComponent, 'purl' | 'version'>

/** Returns the product of a statement that a component is, or clearly belongs to; null for none. */
type Coverage = (component: NamedComponent) => string | null

/** A name in a statement, and the product that the statement names with it. */
interface Entry {
  readonly name: ProductName
  readonly product: string
}

/** Names that are remembered: documents of one service name the same products. */
const REMEMBERED = 20_000

/**
 * Creates the function that finds out which components of findings a statement is about: the component itself, or what the SBOM
 * describes, with this component among the parts that the statement names, or without parts. `subjects`: package URLs of what the
 * SBOM describes. `check` is called for each product, and throws to stop.
 */
export function createCoverages(
  findings: readonly { readonly component: NamedComponent }[],
  subjects: readonly string[],
  check: () => void,
): (statement: Statement) => Coverage {
  const nameOf = createNames()
  const own = new Map(findings.map(({ component }) => [component, ownName(component)]))
  const keys = new Set([...own.values()].map((name) => name?.key))
  const wholes = subjects.flatMap((purl) => nameOf(purl) ?? [])
  const namesIn = (named: VexName): ProductName[] => productNames(named, nameOf)
  return (statement) => {
    const byKey = new Map<string, Entry[]>()
    const addParts = createAdder(byKey, { keys, namesIn, check })
    const isSubject = subjectRule(wholes, subjects.length, rulesOut(statement.status))
    let ofSubject: string | null = null
    for (const product of statement.products) {
      check()
      const { names, parts } = product
      if (parts === null) addParts(names, null)
      const purl = names.find((one) => isSubject(namesIn(one), product))?.purl
      if (purl === undefined) continue
      if (parts === null) ofSubject ??= purl
      else addParts(parts, purl)
    }
    return (component) => {
      const name = own.get(component) ?? null
      return name === null ? null : (findIn(byKey, name, check) ?? ofSubject)
    }
  }
}

function productNames(
  { purl, versions }: VexName,
  nameOf: (purl: string) => ProductName | null,
): ProductName[] {
  const name = nameOf(purl)
  if (name === null || versions === null) return name === null ? [] : [name]
  return versions.map((version) => ({ ...name, version }))
}

/**
 * Returns the places of the products that a statement is about: a component that it covers, or whose SBOM describes what it
 * covers, has one of these among its own.
 */
export function statedPlaces({ products, status }: Statement): string[] {
  const named = products.flatMap(({ names, parts }) =>
    // What rules nothing out is also about the parts of what an SBOM does not name.
    parts === null || rulesOut(status) ? names : [...names, ...parts],
  )
  return [...new Set(named.flatMap((one) => productNames(one, readProductName)).map(placeOf))]
}

/** Returns the places of a component, or of what an SBOM describes. */
export function ownPlaces(component: NamedComponent): string[] {
  const name = ownName(component)
  return name === null ? [] : placesOf(name)
}

/**
 * Whether names of a product are those of what the SBOM describes. With several subjects it is not known which of them a
 * component belongs to: what rules nothing out is then about each of them, and where the SBOM does not say what it describes, a
 * statement on parts of anything is about these parts.
 */
function subjectRule(wholes: readonly ProductName[], subjects: number, isRulingOut: boolean) {
  const meant = isRulingOut && subjects !== 1 ? [] : wholes
  return (names: readonly ProductName[], { parts }: VexProduct): boolean =>
    names.some((name) => meant.some((whole) => isCovered(whole, name))) ||
    (!isRulingOut && subjects === 0 && parts !== null)
}

interface Adding {
  /** Packages of findings: the names of others are not kept. */
  readonly keys: ReadonlySet<string | undefined>
  readonly namesIn: (name: VexName) => ProductName[]
  readonly check: () => void
}

/** Creates the function that adds names to an index, each list of parts once. `product`: null for the name itself. */
function createAdder(byKey: Map<string, Entry[]>, { keys, namesIn, check }: Adding) {
  const added = new Set<readonly VexName[]>()
  return (listed: readonly VexName[], product: string | null): void => {
    if (added.has(listed)) return
    added.add(listed)
    for (const one of listed) {
      check()
      for (const name of namesIn(one)) {
        if (!keys.has(name.key)) continue
        const entry = { name, product: product ?? one.purl }
        const same = byKey.get(placeOf(name))
        if (same === undefined) byKey.set(placeOf(name), [entry])
        else same.push(entry)
      }
    }
  }
}

function placeOf({ key, version }: ProductName): string {
  return JSON.stringify([key, version])
}

function placesOf(own: ProductName): string[] {
  return [...new Set([placeOf(own), placeOf({ ...own, version: '' })])]
}

function findIn(
  byKey: ReadonlyMap<string, readonly Entry[]>,
  own: ProductName,
  check: () => void,
): string | null {
  for (const place of placesOf(own))
    for (const { name, product } of byKey.get(place) ?? []) {
      check()
      if (isCovered(own, name)) return product
    }
  return null
}

/** Names a component: the version of the SBOM counts where the package URL has none. */
function ownName({ purl, version }: NamedComponent): ProductName | null {
  const name = purl === null ? null : readProductName(purl)
  return name === null || name.version !== '' ? name : { ...name, version }
}

function createNames(): (purl: string) => ProductName | null {
  const known = new Map<string, ProductName | null>()
  return (purl) => {
    const before = known.get(purl)
    if (before !== undefined) return before
    const name = readProductName(purl)
    if (known.size >= REMEMBERED) known.clear()
    known.set(purl, name)
    return name
  }
}
