import { type VexDocument, tagsBelieving } from '../../../store/catalog/vex.ts'
import { datedBy, latestAt, statedId } from '../../../documents/vex/apply.ts'
import { productsNamed } from '../../../documents/vex/coverage.ts'
import type { ListedImage } from '../../../documents/vex/images.ts'
import {
  type ProductName,
  isCovered,
  isForPlatforms,
  isImage,
  mayBeOne,
  mayConcern,
  readProductName,
  readProductNames,
  withoutTag,
} from '../../../documents/vex/products.ts'
import { NO_TAG, createRuling, isLater } from '../../../documents/vex/rule.ts'
import { type Statement, type VexName, type VexProduct, rulesOut } from '../../../documents/vex/statement.ts'

/** The images that statements are collected about. */
export interface AskedImage {
  /** `sha256:…`, in lower case. */
  readonly digest: string
  /** The listed tags that name it. */
  readonly tags: readonly ListedImage[]
}

/** What one statement says about an image, or a component of it. */
export interface ImageStatement {
  readonly vulnerabilities: readonly string[]
  readonly statement: Statement
  /** SHA-256 of the document, hex. */
  readonly document: string
  /** The digest of the image that it is about: the one that is asked for, or one of its platforms. */
  readonly digest: string
  /** Package URL of the component; null: the image as a whole. */
  readonly part: string | null
  /** As it counts; '' where that is not known. */
  readonly at: string
}

/** Digests that are indexes of an image, or its platforms. */
interface Related {
  readonly indexes: ReadonlySet<string>
  /** With their architectures; '' where that is not said. */
  readonly platforms: ReadonlyMap<string, string>
  /** The architecture of the image itself; '' where it is not said, or where it is an index. */
  readonly arch: string
}

/**
 * Returns what documents say about an image: the statements of its tags' documents on a component or on the image, and those of
 * any document that name its digest, that of its index, or of its platforms.
 */
export function statementsAbout(
  image: AskedImage,
  documents: Iterable<readonly [VexDocument, readonly Statement[]]>,
  now: number,
): ImageStatement[] {
  const related = relatedTo(image)
  const names = image.tags.flatMap(({ repository }) => ownNames(repository, image.digest))
  const own = new Set(image.tags.map(({ id }) => id))
  const latest = latestAt(now)
  const found: ImageStatement[] = []
  for (const [document, statements] of documents) {
    const isOwnOpen = (document.tags ?? []).some((tag) => own.has(tag))
    const isOwnOut = tagsBelieving(document)?.some((tag) => own.has(tag)) ?? false
    for (const statement of statements) {
      const isOwn = rulesOut(statement.status) ? isOwnOut : isOwnOpen
      const places = statement.products.flatMap((product) =>
        placesOf(product, {
          image,
          related,
          names,
          isOwn,
          isRulingOut: rulesOut(statement.status),
        }),
      )
      const at = datedBy(statement, latest)
      const { vulnerabilities } = statement
      const meant = places.filter(({ digest }) => isAttested(statement, digest, { image, related }))
      for (const place of meant) found.push({ vulnerabilities, statement, document: document.digest, at, ...place })
    }
  }
  return found
}

/** Whether what a statement rules out counts for a digest: in an attestation only for what that is about, and for its platforms. */
function isAttested(
  { status, about }: Statement,
  digest: string,
  { image, related }: Pick<Placing, 'image' | 'related'>,
): boolean {
  if (about === undefined || !rulesOut(status)) return true
  const indexes = digest === image.digest ? [...related.indexes] : [image.digest]
  return [digest, ...indexes].some((one) => about.includes(one))
}

/** Returns how a statement names images: their digests, and of those without one what a package URL calls them. */
export function imagesNamed({ products }: Statement): string[] {
  const names = products.flatMap((product) => product.names.flatMap(productsNamed))
  return names.filter(isImage).map(leadOf)
}

/** Returns what leads to statements about an image: its digest, those of its indexes and platforms, and its names. */
export function leadsTo(image: AskedImage): Set<string> {
  const { indexes, platforms } = relatedTo(image)
  const names = image.tags.flatMap(({ repository }) => ownNames(repository, image.digest))
  return new Set([image.digest, ...indexes, ...platforms.keys(), ...names.map(({ key }) => key)])
}

function leadOf({ digest, key }: ProductName): string {
  return digest === '' ? key : digest
}

function relatedTo({ digest, tags }: AskedImage): Related {
  const indexes = new Set<string>()
  const platforms = new Map<string, string>()
  let arch = ''
  for (const { images } of tags) {
    const own = images.find((one) => one.digest === digest && one.isPlatform)
    arch ||= own?.arch ?? ''
    for (const one of images) {
      if (one.digest === digest || one.isPlatform === (own !== undefined)) continue
      if (one.isPlatform) platforms.set(one.digest, one.arch)
      else indexes.add(one.digest)
    }
  }
  return { indexes, platforms, arch }
}

/** The names of the image of a tag, by which its own documents may name it without a digest. */
function ownNames(repository: string, digest: string): ProductName[] {
  const name = encodeURIComponent(repository.split('/').at(-1) ?? '')
  if (name === '') return []
  const purl = `pkg:oci/${name}@${encodeURIComponent(digest)}`
  const full = `${purl}?repository_url=${encodeURIComponent(repository)}`
  return [purl, full].flatMap((one) => readProductName(one) ?? [])
}

interface Placing {
  readonly image: AskedImage
  readonly related: Related
  readonly names: readonly ProductName[]
  /** Whether the document is that of one of the image's tags. */
  readonly isOwn: boolean
  readonly isRulingOut: boolean
}

type Place = Pick<ImageStatement, 'digest' | 'part'>

function placesOf(product: VexProduct, placing: Placing): Place[] {
  const { image, isOwn, isRulingOut } = placing
  const { names, parts } = product
  const named = names.flatMap(productsNamed)
  const digests = named.flatMap((name) => digestsMeant(name, placing))
  const listed: readonly (string | null)[] = parts === null ? [null] : parts.flatMap(purlsOf)
  if (digests.length > 0) return [...new Set(digests)].flatMap((digest) => listed.map((part) => ({ digest, part })))
  if (!isOwn || named.some(isImage)) return []
  if (parts !== null && isRulingOut) return []
  const components = parts ?? names
  return components.flatMap(purlsOf).map((part) => ({ digest: image.digest, part }))
}

/** The digests of the image, or of its platforms, that are meant; none: it is another one, or not known to be this one. */
function digestsMeant(name: ProductName, placing: Placing): readonly string[] {
  const { image, related, names, isOwn, isRulingOut } = placing
  const { digest } = name
  if (related.platforms.has(digest)) return [digest]
  if (digest === image.digest && related.platforms.size > 0) return platformsMeant(name, placing)
  if (digest === image.digest) return [digest]
  if (related.indexes.has(digest)) return isForPlatforms(name, [related.arch], isRulingOut) ? [image.digest] : []
  if (digest !== '' || !isImage(name)) return []
  // By a name alone, any document may leave open, and the own ones rule out.
  const isNamed = isRulingOut
    ? isOwn && names.some((own) => isCovered(own, name))
    : names.some((own) => mayBeOne(own, isOwn ? withoutTag(name) : name))
  return isNamed ? [image.digest] : []
}

/** Which platforms a name of an index means: all of it, where it names no architecture; where one is not known, what leaves open is of all. */
function platformsMeant(name: ProductName, { image, related, isRulingOut }: Placing): readonly string[] {
  const known = [...related.platforms]
  if (
    isForPlatforms(
      name,
      known.map(([, arch]) => arch),
      true,
    )
  )
    return [image.digest]
  const meant = known.filter(([, arch]) => isForPlatforms(name, [arch], true)).map(([digest]) => digest)
  return meant.length > 0 || isRulingOut ? meant : [image.digest]
}

/** Writes a name as package URLs: one for each version that it names beside its own. */
function purlsOf({ purl, versions }: VexName): string[] {
  if (purl === '') return []
  if (versions === null || readProductName(purl)?.version !== '') return [purl]
  const end = purl.search(/[?#]/)
  const path = end < 0 ? purl : purl.slice(0, end)
  return versions.map((version) => `${path}@${encodeURIComponent(version)}${purl.slice(path.length)}`)
}

/**
 * Returns those statements that count, by the rule of `rule.ts`: what clients choose among several differs, so no two of them
 * contradict each other.
 */
export function countingStatements(all: readonly ImageStatement[], digest: string): ImageStatement[] {
  const newest = newestOf(all)
  const byId = new Map<string, ImageStatement[]>()
  for (const one of newest)
    for (const id of idsOf(one)) {
      const same = byId.get(id)
      if (same === undefined) byId.set(id, [one])
      else same.push(one)
    }
  return newest.filter((one) => {
    const others = [...new Set(idsOf(one).flatMap((id) => byId.get(id) ?? []))]
    const overlapping = others.filter((other) => overlaps(one, other, digest))
    return isOut(one) ? !isLeftOpen(one, overlapping) : !isReplaced(one, overlapping, digest)
  })
}

/** The newest statement about each image, component and vulnerability as they are written. */
function newestOf(all: readonly ImageStatement[]): ImageStatement[] {
  const newest = new Map<string, ImageStatement>()
  for (const one of all) {
    const key = JSON.stringify([one.digest, one.part, idsOf(one).sort()])
    const before = newest.get(key)
    if (before === undefined || isLater(saidBy(one), saidBy(before))) newest.set(key, one)
  }
  return [...newest.values()]
}

function idsOf({ vulnerabilities }: ImageStatement): string[] {
  return [...new Set(vulnerabilities.map(statedId))]
}

function isOut({ statement }: ImageStatement): boolean {
  return rulesOut(statement.status)
}

function saidBy(one: ImageStatement) {
  return { at: one.at, isOpen: !isOut(one), form: 'image' as const, tags: [NO_TAG] }
}

/** Whether what rules out is older than a statement that leaves the same open, or as old. */
function isLeftOpen(one: ImageStatement, overlapping: readonly ImageStatement[]): boolean {
  const ruling = createRuling(null)
  for (const other of [one, ...overlapping.filter((two) => !isOut(two))]) ruling.add(saidBy(other))
  return ruling.decide()?.ruledOutBy === null
}

/** Whether all that a statement leaves open is ruled out by a newer one. */
function isReplaced(one: ImageStatement, overlapping: readonly ImageStatement[], digest: string): boolean {
  return overlapping.some((other) => {
    if (!isOut(other) || isLater(saidBy(one), saidBy(other))) return false
    const isOfAll = other.digest === one.digest || other.digest === digest
    const ids = new Set(idsOf(other))
    return isOfAll && idsOf(one).every((id) => ids.has(id)) && isPartOf(one.part, other.part)
  })
}

function isPartOf(part: string | null, whole: string | null): boolean {
  if (whole === null || part === whole) return true
  const own = part === null ? null : readProductName(part)
  const named = readProductName(whole)
  return own !== null && named !== null && isCovered(own, named)
}

/** Whether two statements may be about the same component of the same image. */
function overlaps(one: ImageStatement, other: ImageStatement, digest: string): boolean {
  const isSameImage = one.digest === other.digest || [one.digest, other.digest].includes(digest)
  if (!isSameImage || one === other) return false
  if (one.part === null || other.part === null) return true
  const own = readProductNames(one.part)
  const named = readProductNames(other.part)
  return own !== null && named !== null && mayConcern(own, named)
}
