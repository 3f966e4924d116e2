import { sha256Hex } from '../../../../base/digest.ts'
import { isObject, jsonTextOf } from '../../../../base/json/objects.ts'
import { type VexDocument, tagsBelieving } from '../../../../store/catalog/vex.ts'
import {
  type ProductName,
  type ProductNames,
  mayBeOne,
  mayConcern,
  readProductName,
  readProductNames,
} from '../../../../documents/vex/products.ts'
import type { VexReads } from '../../../../documents/vex/read.ts'
import { type Form, type Said, createRuling } from '../../../../documents/vex/rule.ts'
import type { Claim } from './claims.ts'

/** A product of a statement that is left out, because what rules out does not count there. */
interface LeftOut {
  /** The places of the statement in its document, and of the product in the statement. */
  readonly place: number
  readonly product: number
  /** Package URLs of the images for which it counts all the same. */
  readonly images: readonly string[]
}

/** How a document is shown. */
type Showing = readonly LeftOut[]

/** A claim, and whose it is. */
interface Owned {
  readonly claim: Claim
  readonly tags: readonly string[]
  readonly image: ProductName | null
  readonly component: ProductNames | null
}

/** What is known of tags. */
interface ShownTags {
  /** Returns the package URLs of the image of a tag. */
  readonly imagesOf: (tag: string) => readonly string[]
  /** Tags of which a document is damaged, or could not be fetched. */
  readonly unknown: readonly string[]
}

/**
 * Decides by the rule of `documents/vex/rule.ts` what of the documents of tags the repository leaves out, which clients read without
 * knowing of which image a statement is: what names only a component while the current statement of any tag leaves it open, or other
 * VEX of another tag is not known, and what names an image while a statement about it that counts more does.
 */
export function showingsOf(
  documents: readonly VexDocument[],
  claims: ReadonlyMap<string, readonly Claim[]>,
  { imagesOf, unknown }: ShownTags,
): Map<string, Showing> {
  const byId = groupById(documents, claims)
  const isLeft = createLeaving(byId)
  const showings = new Map<string, Showing>()
  for (const document of documents) {
    const { digest } = document
    const tags = tagsBelieving(document) ?? []
    const left = new Map<string, LeftOut>()
    for (const claim of claims.get(digest) ?? []) {
      const [place, product, open, , ids, image] = claim
      const isDoubtful = image === '' && unknown.some((tag) => !tags.includes(tag))
      if (open === 1 || !(isDoubtful || isLeft(claim, tags))) continue
      const about = ids.flatMap((id) => byId.get(id) ?? [])
      const own = image === '' ? tags.filter((tag) => countsIn(tag, claim, about, imagesOf)) : []
      const images = [...new Set(own.flatMap(imagesOf))]
      left.set(`${place} ${product}`, { place, product, images })
    }
    if (left.size > 0) showings.set(digest, [...left.values()])
  }
  return showings
}

/** Whether a claim on a component counts for the image of its own tag: nothing there leaves the same open. */
function countsIn(
  tag: string,
  claim: Claim,
  others: readonly Owned[],
  imagesOf: (tag: string) => readonly string[],
): boolean {
  const one = ownedOf(claim, [tag])
  const images = imagesOf(tag).flatMap((purl) => readProductName(purl) ?? [])
  const ruling = createRuling<Said>(tag)
  ruling.add(saidAs(one, 'component'))
  for (const other of others) {
    const { image } = other
    const isNamed = image !== null && images.some((own) => mayBeOne(own, image))
    const isOpen = other.claim[2] === 1
    if (!isOpen || !isAbout(other, one) || (!isNamed && !other.tags.includes(tag))) continue
    ruling.add(saidAs(other, 'image'))
  }
  return ruling.decide()?.ruledOutBy !== null
}

/** Creates the function that reports whether what rules out is left out. Equal claims on a component are decided once. */
function createLeaving(byId: ReadonlyMap<string, readonly Owned[]>) {
  const decided = new Map<string, boolean>()
  const isLeft = (claim: Claim, tags: readonly string[], id: string): boolean =>
    isLeftOut(ownedOf(claim, tags), byId.get(id) ?? [])
  return (claim: Claim, tags: readonly string[]): boolean =>
    claim[4].some((id) => {
      if (!byId.has(id)) return false
      if (claim[5] !== '') return isLeft(claim, tags, id)
      const key = JSON.stringify([id, claim[6]])
      const known = decided.get(key) ?? isLeft(claim, tags, id)
      decided.set(key, known)
      return known
    })
}

/** Claims about a vulnerability of which any leaves it open: without one there is nothing to decide. */
function groupById(
  documents: readonly VexDocument[],
  claims: ReadonlyMap<string, readonly Claim[]>,
): Map<string, Owned[]> {
  const open = new Set([...claims.values()].flat().flatMap(([, , isOpen, , ids]) => (isOpen ? ids : [])))
  const byId = new Map<string, Owned[]>()
  for (const document of documents)
    for (const claim of claims.get(document.digest) ?? [])
      for (const id of claim[4]) {
        if (!open.has(id) || !counts(document, claim)) continue
        const same = byId.get(id) ?? []
        byId.set(id, same)
        same.push(ownedOf(claim, countingTags(document, claim)))
      }
  return byId
}

/** Whether a claim counts for any tag: what rules out does not in a document that is not believed. */
function counts(document: VexDocument, claim: Claim): boolean {
  return claim[2] === 1 || tagsBelieving(document) !== null
}

function countingTags(document: VexDocument, claim: Claim): readonly string[] {
  const isOpen = claim[2] === 1
  return isOpen ? (document.tags ?? []) : (tagsBelieving(document) ?? [])
}

function ownedOf(claim: Claim, tags: readonly string[]): Owned {
  const image = claim[5] === '' ? null : readProductName(claim[5])
  const component = claim[6] === '' ? null : readProductNames(claim[6])
  return { claim, tags, image, component }
}

/** Whether what rules out does not count, beside the other claims about the vulnerability. */
function isLeftOut(one: Owned, others: readonly Owned[]): boolean {
  const ruling = createRuling<Said>(null)
  if (one.image !== null) ruling.add(saidAs(one, 'image'))
  for (const other of others) {
    if (one.image !== null && (other.claim[2] === 0 || !countsFor(one.image, one, other))) continue
    if (!isAbout(other, one)) continue
    const form = other.image === null ? 'component' : 'elsewhere'
    ruling.add(saidAs(other, one.image === null ? form : 'image'))
  }
  return ruling.decide()?.ruledOutBy === null
}

/** Whether a claim counts for an image: it names it, or is on a component in a document of the same tag. */
function countsFor(image: ProductName, one: Owned, other: Owned): boolean {
  if (other.image !== null) return mayBeOne(other.image, image)
  return other.tags.some((tag) => one.tags.includes(tag))
}

/** Whether two claims may be about the same component, what leaves open also about its source; an image as a whole may be about any. */
function isAbout(other: Owned, one: Owned): boolean {
  if (other.component === null || one.component === null) return true
  const isOpen = other.claim[2] === 1
  return isOpen ? mayConcern(other.component, one.component) : mayBeOne(other.component.own, one.component.own)
}

function saidAs({ claim, tags }: Owned, form: Form): Said {
  return { at: claim[3], isOpen: claim[2] === 1, form, tags }
}

/**
 * Returns the reads of documents as they are shown: one of which something is left out is another document, with another digest.
 */
export function shownReads(
  reads: VexReads,
  documents: readonly VexDocument[],
  showings: ReadonlyMap<string, Showing>,
): { readonly reads: VexReads; readonly originalOf: (digest: string) => string } {
  const originals = new Map<string, readonly [VexDocument, Showing]>()
  const listed = documents.map((document) => {
    const showing = showings.get(document.digest)
    if (showing === undefined) return document
    const digest = sha256Hex(JSON.stringify([document.digest, showing]))
    originals.set(digest, [document, showing])
    return { ...document, digest }
  })
  listed.sort((one, other) => (one.digest < other.digest ? -1 : 1))
  return {
    originalOf: (digest) => originals.get(digest)?.[0].digest ?? digest,
    reads: {
      listVexDocuments: () => listed,
      readVexContent(document) {
        const [original, showing] = originals.get(document.digest) ?? []
        if (original === undefined || showing === undefined) return reads.readVexContent(document)
        const content = reads.readVexContent(original)
        return content === null ? null : written(content, showing)
      },
    },
  }
}

/** Writes an OpenVEX document as it is shown; anything else stays as it is. */
function written(content: Buffer, showing: Showing): Buffer {
  const document: unknown = parse(content)
  const listed: unknown = isObject(document) ? document['statements'] : null
  if (!isObject(document) || !Array.isArray(listed)) return content
  const left = Map.groupBy(showing, ({ place }) => place)
  const statements = (listed as unknown[]).map((statement, place) => {
    const named = left.get(place)
    if (named === undefined || !isObject(statement)) return statement
    const gone = new Map(named.map((one) => [one.product, one.images]))
    const products: unknown = statement['products']
    const all: readonly unknown[] = Array.isArray(products) ? products : []
    const kept = all.filter((_, at) => !gone.has(at))
    const bound = all.flatMap((one, at) => boundTo(one, gone.get(at) ?? []))
    return { ...statement, products: [...kept, ...bound] }
  })
  return Buffer.from(JSON.stringify({ ...document, statements }))
}

/** Returns images with a component as their part. A product that names parts is an image, and stays out. */
function boundTo(product: unknown, images: readonly string[]): object[] {
  const component = typeof product === 'string' ? { '@id': product } : product
  if (!isObject(component) || component['subcomponents'] !== undefined) return []
  if (readProductName(String(component['@id']))?.digest !== '') return []
  return images.map((image) => ({ '@id': image, subcomponents: [component] }))
}

function parse(content: Buffer): unknown {
  try {
    return JSON.parse(jsonTextOf(content))
  } catch {
    return null
  }
}
