import type { SourcePackage } from '../../base/identity/source.ts'
import type { BomSerial } from '../sboms/sbom.ts'
import {
  type ProductName,
  type ProductNames,
  inVersion,
  isCovered,
  isCoveredSource,
  isForPlatforms,
  isImage,
  mayBeOne,
  placeOfProduct,
  placesOfProduct,
  readProductName,
  readProductNames,
  withoutTag,
} from './products.ts'
import type { Form } from './rule.ts'
import { type BomLink, type Statement, type VexName, type VexProduct, rulesOut } from './statement.ts'

/** What of a component says which product it is. */
export interface NamedComponent {
  readonly purl: string | null
  readonly version: string
  /** The package that it is built from, as its SBOM names it beside the package URL; absent or null: the SBOM does not. */
  readonly sourcePackage?: SourcePackage | null
  /** How its SBOM refers to it. */
  readonly refs?: readonly string[]
}

/** What an SBOM is of, and which SBOM it is. */
export interface DescribedImage {
  /** Package URLs of what the SBOM describes. */
  readonly subjects: readonly string[]
  /** Further names of it. */
  readonly images: readonly ImageName[]
  /** By what other documents link to it; null: it has no serial number. */
  readonly serial: BomSerial | null
}

/** A name of an image. */
export interface ImageName {
  readonly purl: string
  /** Whether it is a name for what rules nothing out alone: a part of the image may be another one. */
  readonly isOpenOnly: boolean
  /** Architectures of what is asked for by this name, '' for one that is not said; absent: nothing is known of them. */
  readonly platforms?: readonly string[]
}

/** How a statement is about a component. `product`: as the statement names it. */
interface Covered {
  readonly form: Form
  readonly product: string
}

/** Returns how a statement is about a component; null: it is not. */
type Coverage = (component: NamedComponent) => Covered | null

/** A name in a statement, and the product that the statement names with it. */
interface Entry extends Covered {
  readonly name: ProductName
}

/** From where a statement is. */
interface StatedFrom {
  /** Whether components of another image are asked for as well. */
  readonly elsewhere: boolean
  /** Whether its document is that of the image's tag, and may say what the statement says. */
  readonly isOwn: boolean
}

/** Names that are remembered: documents of one service name the same products. */
const REMEMBERED = 20_000

/** What stands for the place of any product: a statement leaves a vulnerability open in a whole image. */
export const ANY_PLACE = JSON.stringify(['any'])

/**
 * Creates the function that finds out which components of findings a statement is about: the component itself, or what the SBOM
 * describes, with this component among the parts that the statement names, or without parts. `elsewhere`: also components of
 * another image. `isOwn`: the statement's document is that of the image's tag. `check` is called for each product, and throws to stop.
 */
export function createCoverages(
  findings: readonly { readonly component: NamedComponent }[],
  image: DescribedImage,
  check: () => void,
): (statement: Statement, from: StatedFrom) => Coverage {
  const nameOf = createNames()
  const own = new Map(findings.map(({ component }) => [component, ownNames(component)]))
  const keys = new Set([...own.values()].flatMap((names) => allNames(names).flatMap(keysOf)))
  const namesIn = (named: VexName): ProductName[] => productNames(named, nameOf)
  const subjectRule = createSubjectRule(image, nameOf)
  const isAttested = createAttestedRule(image, nameOf)
  return (statement, { elsewhere, isOwn }) => {
    if (!isAttested(statement, isOwn)) return () => null
    const byPlace = new Map<string, Entry[]>()
    const linked = new Set<string>()
    const isRulingOut = rulesOut(statement.status)
    const add = createAdder({ byPlace, linked, keys, namesIn, check, serial: image.serial, isRulingOut })
    const isNameEnough = isOwn || !elsewhere || statement.about !== undefined
    const isSubject = subjectRule({ isRulingOut, isOwn, isNameEnough })
    const isUnnamed = elsewhere && leavesUnnamedOpen(statement)
    let ofSubject: string | null = null
    let anywhere: string | null = null
    for (const product of statement.products) {
      check()
      const { names, parts } = product
      if (parts === null) add(names, null, 'component')
      const purl = names.find((one) => isSubject(namesIn(one), product))?.purl
      if (purl !== undefined && parts === null) ofSubject ??= purl
      if (purl !== undefined && parts !== null) add(parts, purl, subjectForm(image, names, namesIn))
      if (purl !== undefined || !elsewhere) continue
      const [other] = names.flatMap(namesIn).filter(isImage)
      const isNamed = isRulingOut || names.some((one) => namesIn(one).length > 0)
      if (parts !== null) add(parts, names[0]?.purl ?? '', isNamed ? 'elsewhere' : 'component')
      else if (other !== undefined) anywhere ??= names[0]?.purl ?? ''
    }
    return (component) => {
      const refs = component.refs ?? []
      const ref = linked.size === 0 ? undefined : refs.find((one) => linked.has(one))
      if (ref !== undefined) return { form: 'image', product: ref }
      const names = own.get(component) ?? null
      if (names === null) return null
      if (ofSubject !== null) return { form: 'image', product: ofSubject }
      const found = findIn(byPlace, names, !isRulingOut, check)
      if (found !== null) return { form: found.form, product: found.product }
      // What no name says is the image of the tag whose document it is, as far as is known.
      if (isUnnamed) return { form: 'component', product: '' }
      return anywhere === null ? null : { form: 'elsewhere', product: anywhere }
    }
  }
}

/** Whether a statement leaves a vulnerability open in nothing that it names, or in what no package URL names. */
function leavesUnnamedOpen({ products, status }: Statement): boolean {
  if (rulesOut(status)) return false
  const isUnnamed = ({ names, parts }: VexProduct): boolean =>
    parts === null && names.every(({ purl, link }) => purl === '' && link === undefined)
  return products.length === 0 || products.some(isUnnamed)
}

/** An SBOM that does not say what it describes is of any image: a statement on parts of one names these parts only. */
function subjectForm(
  { subjects, images }: DescribedImage,
  names: readonly VexName[],
  namesIn: (name: VexName) => ProductName[],
): Form {
  const isKnown = subjects.length > 0 || images.length > 0
  return isKnown && names.flatMap(namesIn).length > 0 ? 'image' : 'component'
}

/** Reads a package URL with the version beside it. */
type NameOf = (purl: string, stated?: string) => ProductName | null

function productNames({ purl, versions }: VexName, nameOf: NameOf): ProductName[] {
  const name = purl === '' ? null : nameOf(purl)
  if (name === null || versions === null) return name === null ? [] : [name]
  if (name.version !== '') return versions.map((version) => inVersion(name, version))
  return versions.flatMap((version) => nameOf(purl, version) ?? [])
}

/** Returns the products that a name in a statement stands for: one for each of its versions. */
export function productsNamed(named: VexName): ProductName[] {
  return productNames(named, readProductName)
}

/**
 * Returns the places of the products that a statement is about: a component that it may say anything about, or whose SBOM
 * describes what it names, has one of these among its own, or it is `ANY_PLACE`.
 */
export function statedPlaces(statement: Statement): string[] {
  const { products, status } = statement
  const named = products.flatMap(({ names, parts }) => [...names, ...(parts ?? [])])
  const places = named.flatMap(productsNamed).map(placeOfProduct)
  const leavesAnyOpen = ({ names, parts }: VexProduct): boolean =>
    parts === null && names.flatMap(productsNamed).some(isImage)
  const isAnyOpen = leavesUnnamedOpen(statement) || (!rulesOut(status) && products.some(leavesAnyOpen))
  const any = isAnyOpen ? [ANY_PLACE] : []
  return [...new Set([...places, ...any])]
}

/** Returns the places of a component, or of what an SBOM describes. */
export function ownPlaces(component: NamedComponent): string[] {
  return [...new Set(allNames(ownNames(component)).flatMap(placesOfProduct))]
}

/**
 * Whether names of a product are those of what the SBOM describes. With several subjects it is not known which of them a
 * component belongs to: what rules nothing out is then about each of them, and where the SBOM does not say what it describes, a
 * statement on parts of anything is about these parts. By the name of an image alone the document of another tag rules nothing out,
 * and that of its own tag leaves open, whatever tag it names.
 */
function createSubjectRule({ subjects, images }: DescribedImage, nameOf: NameOf) {
  const read = (purls: readonly string[]): ProductName[] => purls.flatMap((purl) => nameOf(purl) ?? [])
  const described = read(subjects)
  const sure = read(images.filter(({ isOpenOnly }) => !isOpenOnly).map(({ purl }) => purl))
  const all = [...described, ...read(images.map(({ purl }) => purl))]
  const isUnknown = subjects.length === 0 && images.length === 0
  const platforms = new Map(images.flatMap((one) => (one.platforms ? [[nameOf(one.purl)?.digest, one.platforms]] : [])))
  return ({ isRulingOut, isOwn, isNameEnough }: NamedHow) => {
    const ruled = subjects.length > 1 ? [] : [...described, ...sure]
    const meant = isRulingOut ? ruled : all
    const isMeant = (whole: ProductName, name: ProductName): boolean => {
      if (!(isRulingOut ? isCovered : mayBeOne)(whole, name)) return false
      const own = whole.qualifiers.has('arch') ? undefined : platforms.get(whole.digest)
      return own === undefined || isForPlatforms(name, own, isRulingOut)
    }
    const comparedAs = (name: ProductName): ProductName[] => {
      if (!isRulingOut) return [isOwn ? withoutTag(name) : name]
      const isSure = isNameEnough || !isImage(name) || name.digest !== '' || name.version !== ''
      return isSure ? [name] : []
    }
    return (names: readonly ProductName[], { parts }: VexProduct): boolean =>
      names.flatMap(comparedAs).some((name) => meant.some((whole) => isMeant(whole, name))) ||
      (!isRulingOut && isUnknown && parts !== null)
  }
}

/** How a statement names what it is about. */
interface NamedHow {
  readonly isRulingOut: boolean
  /** Whether its document is that of the image's tag. */
  readonly isOwn: boolean
  /** Whether the name of an image without a digest says which one is meant: it is not in the document of another tag. */
  readonly isNameEnough: boolean
}

/**
 * Creates what reports whether a statement may be about the image: what rules out in an attestation counts for the digests alone
 * that the attestation is about. Where no digest of the image is known, the tag whose document it is has to do.
 */
function createAttestedRule({ subjects, images }: DescribedImage, nameOf: NameOf) {
  const digestsOf = (purls: readonly string[]): string[] =>
    purls.flatMap((purl) => nameOf(purl)?.digest ?? []).filter((digest) => digest !== '')
  const described = digestsOf(subjects)
  const sure = digestsOf(images.filter(({ isOpenOnly }) => !isOpenOnly).map(({ purl }) => purl))
  return ({ status, about }: Statement, isOwn: boolean): boolean => {
    if (about === undefined || !rulesOut(status)) return true
    if (subjects.length > 1)
      return subjects.length === described.length && described.every((one) => about.includes(one))
    const known = [...described, ...sure]
    return known.length === 0 ? isOwn : known.some((one) => about.includes(one))
  }
}

interface Adding {
  readonly byPlace: Map<string, Entry[]>
  /** References in the SBOM that links name. */
  readonly linked: Set<string>
  /** Packages of findings: the names of others are not kept. */
  readonly keys: ReadonlySet<string>
  readonly namesIn: (name: VexName) => ProductName[]
  readonly check: () => void
  readonly serial: DescribedImage['serial']
  readonly isRulingOut: boolean
}

/** Creates the function that adds names to an index, each list of parts once. `product`: null for the name itself. */
function createAdder({ byPlace, linked, keys, namesIn, check, serial, isRulingOut }: Adding) {
  const added = new Map<readonly VexName[], Set<Form>>()
  return (listed: readonly VexName[], product: string | null, form: Form): void => {
    const forms = added.get(listed) ?? new Set()
    if (forms.has(form)) return
    added.set(listed, forms.add(form))
    for (const one of listed) {
      check()
      const { link } = one
      const isCompared = link !== undefined && serial !== null
      const isOwn = isCompared && isLinked(link, serial)
      if (isOwn) for (const ref of link.refs) linked.add(ref)
      // A link names an SBOM: one that is judged and has another serial number is not meant.
      if (isCompared && !isOwn && isRulingOut) continue
      for (const name of namesIn(one)) {
        if (!keysOf(name).some((key) => keys.has(key))) continue
        const entry = { name, form, product: product ?? one.purl }
        const same = byPlace.get(placeOfProduct(name))
        if (same === undefined) byPlace.set(placeOfProduct(name), [entry])
        else same.push(entry)
      }
    }
  }
}

function isLinked(link: BomLink, serial: BomSerial): boolean {
  return link.serial === serial.serial && link.version === serial.version
}

function keysOf(name: ProductName): string[] {
  return name.digest === '' ? [name.key] : [name.key, name.digest]
}

const FORMS: readonly Form[] = ['image', 'component', 'elsewhere']

/** Returns the entry that says most about a component, or its source package. `isWide`: also one that only may be about it. */
function findIn(
  byPlace: ReadonlyMap<string, readonly Entry[]>,
  { own, sources }: ProductNames,
  isWide: boolean,
  check: () => void,
): Entry | null {
  let found: Entry | null = null
  for (const known of [own, ...sources])
    for (const place of placesOfProduct(known))
      for (const entry of byPlace.get(place) ?? []) {
        check()
        const { name, form } = entry
        if (found !== null && FORMS.indexOf(found.form) <= FORMS.indexOf(form)) continue
        const isClear = known === own ? isCovered : isCoveredSource
        if ((isWide || form === 'elsewhere' ? mayBeOne : isClear)(known, name)) found = entry
        if (found?.form === 'image') return found
      }
  return found
}

/** Names a component and its source packages: the version of the SBOM counts where the package URL has none. */
function ownNames({ purl, version, sourcePackage = null }: NamedComponent): ProductNames | null {
  return purl === null ? null : readProductNames(purl, version, sourcePackage)
}

function allNames(names: ProductNames | null): ProductName[] {
  return names === null ? [] : [names.own, ...names.sources]
}

function createNames(): NameOf {
  const known = new Map<string, ProductName | null>()
  return (purl, stated = '') => {
    const key = `${stated} ${purl}`
    const before = known.get(key)
    if (before !== undefined) return before
    const name = readProductName(purl, stated)
    if (known.size >= REMEMBERED) known.clear()
    known.set(key, name)
    return name
  }
}
