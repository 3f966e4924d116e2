import { textsWithin } from '../../base/domain/image-reference.ts'
import { TAGS } from '../../base/domain/resources.ts'
import { readText } from '../../base/json/field-names.ts'
import { fieldsOfItem } from '../../base/json/forms/item-fields.ts'
import { IMAGE_NAME_FIELDS, REPOSITORY_FIELDS } from '../../base/json/forms/listed-names.ts'
import { digestsInTag } from '../../base/json/forms/tag-digests.ts'
import { type Fields, fieldsOf } from '../../base/json/objects.ts'
import { parseItem } from '../../store/catalog/lists.ts'
import type { Reads } from '../../store/reads.ts'
import type { ImageName } from './coverage.ts'
import { type ProductName, isForPlatforms, isImage, readProductName } from './products.ts'

/** The reads of the catalog that say which image a tag is. */
export type CatalogReads = Pick<Reads['catalog'], 'readList' | 'readEntry' | 'listNaming'>
/** No limit, as SQLite has it: the document of a tag that were cut could say that it is affected. */
const ALL = -1

/** An image that the catalog names for a tag. */
interface TagImage {
  /** `sha256:…`, in lower case. */
  readonly digest: string
  /** Empty: it is not said. */
  readonly arch: string
  /** Whether it is one platform's of an index that the tag names as well. */
  readonly isPlatform: boolean
  /** Whether neither a list nor an architecture says so: the digest may be of something else than a platform. Absent: no. */
  readonly isUnsure?: boolean
}

/** A listed tag, and the images that it names. */
export interface ListedImage {
  readonly id: string
  /** Its repository, with a registry where the catalog names one; empty: it names none. */
  readonly repository: string
  readonly images: readonly TagImage[]
}

/** Returns the listed tags that name a digest. `digest`: `sha256:…`, in lower case. */
export function tagsOfDigest(catalog: CatalogReads, digest: string): ListedImage[] {
  const items = catalog.listNaming(digest, ALL).filter(({ list }) => list === TAGS)
  const tags = items.map(({ id, body }) => listedImage(id, body))
  return tags.filter(({ images }) => images.some((one) => one.digest === digest))
}

/** Returns a listed tag by its id; null where the list does not have it. */
export function readListedImage(catalog: CatalogReads, id: string): ListedImage | null {
  const list = catalog.readList(TAGS)
  const entry = list === null ? null : catalog.readEntry(list.id, id)
  return entry === null ? null : listedImage(id, entry.body)
}

function listedImage(id: string, body: Buffer): ListedImage {
  const item = parseItem(body)
  const fields = fieldsOfItem(item, 'tags')
  const found = digestsInTag(item)
  const hasIndex = found.some(({ isIndex }) => isIndex)
  const hasListed = found.some(({ isListed }) => isListed)
  const images = found.map(({ digest, arch, isIndex, isListed }): TagImage => {
    const isPlatform = hasIndex ? !isIndex : hasListed && isListed
    return { digest, arch, isPlatform: isPlatform && found.length > 1, isUnsure: !isListed && arch === '' }
  })
  return { id, repository: repositoryIn(item, fields), images }
}

/** A repository is named by a field of its own, or before the tag or digest of a reference. */
function repositoryIn(item: Fields, fields: Fields): string {
  const image = Object.entries(fields).find(([key]) => /^image$/i.test(key))?.[1]
  const own = readText(fields, REPOSITORY_FIELDS) ?? readText(fieldsOf(image), IMAGE_NAME_FIELDS)
  const written = typeof image === 'string' ? image.replace(/@.*$/s, '').replace(/:[\w.-]+$/, '') : null
  const named = own ?? written
  const full = textsWithin(item)
    .map((text) => /^([^\s@:/]+[.:][^\s@/]*\/[^\s@:]+)(?::[\w.-]+)?(?:@sha\d+:[\da-f]+)?$/.exec(text)?.[1])
    .find((text) => text !== undefined && (named === null || text.endsWith(named)))
  return full ?? named ?? ''
}

/** The tag that an image is of. */
interface NamedTag {
  /** Null: it is not known. */
  readonly tag: string | null
  /** Whether the signed SBOM of the tag is not about what the catalog lists: that rules nothing out. */
  readonly isUnsure: boolean
}

/**
 * Returns the further names of an image that the catalog knows. What is said of an index is said of each of its platforms; what
 * is said of one platform is said of the index only where it is its sole one, or rules nothing out. `subjects`: package URLs
 * by which an SBOM names the image.
 */
export function imageNames(
  catalog: CatalogReads,
  subjects: readonly string[],
  { tag, isUnsure }: NamedTag,
): ImageName[] {
  const own = subjects.flatMap((purl) => readProductName(purl) ?? []).filter(isImage)
  const digests = own.flatMap(({ digest }) => (digest === '' ? [] : [digest]))
  const listed = tag === null ? null : readListedImage(catalog, tag)
  const tags = listed === null ? digests.flatMap((one) => tagsOfDigest(catalog, one)) : [listed]
  const known = tags.flatMap((one) => namesIn(one, own))
  const names = known.map((name) => ({ ...name, isOpenOnly: name.isOpenOnly || isUnsure }))
  return [...new Map(names.map((name) => [JSON.stringify(name), name])).values()]
}

/** `subjects`: names that the SBOM has itself; of these the index is among them where the catalog knows its platforms. */
function namesIn({ repository, images }: ListedImage, subjects: readonly ProductName[]): ImageName[] {
  const isNamed = (digest: string): boolean => subjects.some((one) => one.digest === digest)
  const platforms = images.filter(({ isPlatform }) => isPlatform)
  const indexes = new Set(images.flatMap(({ digest, isPlatform }) => (isPlatform ? [] : [digest])))
  const isChosen = ({ arch }: TagImage): boolean =>
    subjects.some((one) => indexes.has(one.digest) && one.qualifiers.has('arch') && isForPlatforms(one, [arch], true))
  const own = platforms.filter((one) => isNamed(one.digest) || isChosen(one))
  const known = architecturesOf(own.length > 0 ? own : platforms)
  return images.flatMap((one): ImageName[] => {
    const { digest, isPlatform } = one
    const purl = imagePurl(repository, digest)
    if (!isPlatform && known !== null) return [{ purl, isOpenOnly: false, platforms: known }]
    const isOther = isPlatform && own.length > 0 && !own.includes(one)
    if (isNamed(digest) || isOther) return []
    return [{ purl, isOpenOnly: isPlatform && own.length === 0 && platforms.length > 1 }]
  })
}

/** The architectures of the platforms of an index; null: they tell nothing apart. */
function architecturesOf(platforms: readonly TagImage[]): readonly string[] | null {
  const all = platforms.map(({ arch }) => arch)
  return all.length === 0 || (all.length === 1 && all[0] === '') ? null : all
}

/** Returns the package URLs of the image of a tag: by its own digest, and by those of its platforms. */
export function tagPurls(catalog: CatalogReads, tag: string): string[] {
  const { repository = '', images = [] } = readListedImage(catalog, tag) ?? {}
  return images.map(({ digest }) => imagePurl(repository, digest))
}

/** Returns the package URL of an image by its digest. `repository`: empty where it is not known. */
export function imagePurl(repository: string, digest: string): string {
  const name = repository.split('/').at(-1) ?? ''
  return `pkg:oci/${encodeURIComponent((name || 'image').toLowerCase())}@${encodeURIComponent(digest)}`
}
