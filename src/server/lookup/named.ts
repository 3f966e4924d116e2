import { TAGS } from '../../base/domain/resources.ts'
import { hasDigest, isNamed, textsWithin, namesOfText } from '../../base/domain/image-reference.ts'
import { identifyComponent } from '../../base/identity/identity.ts'
import { readQuestion } from '../../documents/records/query.ts'
import type { Reads } from '../../store/reads.ts'
import { isImage, readProductName } from '../../documents/vex/products.ts'
import { createOtherIds } from '../snapshot/other-ids.ts'

/** Returns ids of records that begin with a text, as it is written and in upper case; at most `limit`. */
export function findRecordIds(osv: Reads['osv'], text: string, limit: number): string[] {
  const forms = [...new Set([text, text.toUpperCase()])]
  const ids = new Set(forms.flatMap((form) => osv.listIdsFrom(form, limit)))
  return [...ids].slice(0, limit)
}

/**
 * Returns the stored record that a person means: of the texts the first that is an id, as given, trimmed or in upper case; else
 * the one id that has one of them as another form, such as one with white space at its end. Null: none, or several.
 */
export function recordNamed(osv: Reads['osv'], given: string): string | null {
  const text = given.trim()
  const exact = [given, text, text.toUpperCase()].find((one) => osv.readEntry(one) !== null)
  if (exact !== undefined) return exact
  const [id, ...more] = createOtherIds(osv.listUntidyIds).find([given, text])
  return id === undefined || more.length > 0 ? null : id
}

/** The package of a purl in OSV's terms. */
interface PurlPackage {
  readonly ecosystem: string
  readonly name: string
  /** Empty: it names none. */
  readonly version: string
  /** All names by which records may have it, its own first: as `match`, also that of its source package, or of what it is a part of. */
  readonly names: readonly string[]
}

/** Returns the package of a purl; null for a type of purl that no ecosystem of OSV has. Throws `bad_request` for what is no purl. */
export function packageOfPurl(purl: string): PurlPackage | null {
  const { ecosystem, name, version } = readQuestion({ package: { purl } })
  if (ecosystem === null) return null
  const facts = { purl, name: '', version: version || ANY_VERSION, source: null }
  const found = identifyComponent(facts, { distribution: null })
  const others = 'code' in found ? [] : found.questions.map((one) => one.name)
  return { ecosystem: ecosystem.name, name, version, names: [...new Set([name, ...others])] }
}

/** Stands for the version of a package without one. */
const ANY_VERSION = '0'

/**
 * Returns the reference that the package URL of a container image stands for: its digest, wherever the image is, else its
 * repository and tag. Null for anything else.
 */
export function referenceOfPurl(text: string): string | null {
  const named = text.startsWith('pkg:') ? readProductName(text) : null
  if (named === null || !isImage(named)) return null
  if (named.digest !== '') return named.digest
  const own = named.key.split('/').slice(1).join('/').replace(/^\//, '')
  const repository = named.qualifiers.get('repository_url') ?? own
  const tag = named.version || named.qualifiers.get('tag')
  return tag === undefined ? repository : `${repository}:${tag}`
}

type NamedItem = ReturnType<Reads['catalog']['listNaming']>[number]

/** Items with the same tag, such as `latest`, that are compared with a reference. */
const MOST_CANDIDATES = 5000

/**
 * Returns listed items that name a text: a tag, a digest, a repository, or an image reference (`repository:tag`, with or
 * without a registry's host, `repository@digest`); at most `limit`. Where none does, a digest may be shortened.
 */
export function findItems(catalog: Reads['catalog'], given: string, limit: number): NamedItem[] {
  const text = referenceOfPurl(given) ?? given
  const named = findNamed(catalog, text, limit)
  return named.length > 0 ? named : findShortened(catalog, text, limit)
}

/** Tags of one name that are looked for. */
export const MOST_TAGS = 1000

/** What a look-up in the list of tags found that finds nothing, in words. */
export const NOT_NAMED = "what is stored of the service's list of tags does not name it"

/** Longest id, name, digest or reference of a tag, characters. */
const LONGEST_NAME = 1_000

/** Returns the listed tags that an id, a digest, a reference or a repository names; at most `MOST_TAGS`. */
export function findTags(catalog: Reads['catalog'], text: string): readonly TagItem[] {
  if (text.length > LONGEST_NAME) return []
  const list = catalog.readList(TAGS)
  const own = list === null ? null : catalog.readEntry(list.id, text)
  if (own !== null) return [own]
  return findItems(catalog, text, MOST_TAGS).filter((one) => one.list === TAGS)
}

/** Ids of records begin so: no image or tag is looked for by such a text alone. */
const OF_RECORD = /^[A-Z]+-/

/** Returns why a tag may be named by a text that nothing stored is named by; null: none is mirrored, or none is meant. */
export function whyUnnamed({ snapshots, catalog }: Pick<Reads, 'snapshots' | 'catalog'>, text: string): string | null {
  if (OF_RECORD.test(text) || snapshots.readSnapshot('catalog') === null) return null
  const incomplete = catalog.whyIncomplete(TAGS)
  return incomplete?.grade === 'cut'
    ? `the mirrored list of tags is not known to be complete (${incomplete.reason})`
    : null
}

/** Returns when a tag was removed from the list (Unix milliseconds); null where that is not known, or it was not. */
export function tagRemovedAt({ changes }: Pick<Reads, 'changes'>, id: string): number | null {
  const [last] = changes.listChangesOf('catalog', `${TAGS}/${id}`, 1)
  return last?.change === 'removed' ? last.publishedAt : null
}

type TagItem = Pick<NamedItem, 'id' | 'body'>

/** `[repository@][algorithm:]` and the first digits of a digest. */
const SHORTENED = /^(?:(.+)@)?(?:([a-z][a-z\d]*):)?([\da-f]{8,})$/i
/** What digests begin with that are shortened without their algorithm. */
const ALGORITHMS = ['sha256:', 'sha512:', '']

/** Returns listed items whose digest begins with at least eight digits, within the repository that is named with them. */
function findShortened(catalog: Reads['catalog'], text: string, limit: number): NamedItem[] {
  const [match, within, algorithm, digits = ''] = SHORTENED.exec(text) ?? []
  if (match === undefined) return []
  const before = algorithm === undefined ? ALGORITHMS : [`${algorithm.toLowerCase()}:`]
  const most = within === undefined ? limit : MOST_CANDIDATES
  const found = before.flatMap((one) => catalog.listDigestsFrom(one + digits.toLowerCase(), most))
  if (within === undefined) return found.slice(0, limit)
  const { repository, tag } = namesOfText(within)
  return found
    .filter(({ body }) => {
      const texts = textsOf(body)
      if (tag !== null) return isNamed(texts, { repository, tag, digest: null })
      return repository !== null && isOfRepository(texts, repository)
    })
    .slice(0, limit)
}

/** Reports whether an item with these texts names a repository, whose first part may be left out: `python` for `library/python`. */
function isOfRepository(texts: readonly string[], repository: string): boolean {
  const names = texts.map((one) => namesOfText(one).repository)
  return names.some((one) => one === repository || one?.endsWith(`/${repository}`) === true)
}

function textsOf(body: Buffer): string[] {
  return textsWithin(JSON.parse(body.toString('utf8')))
}

function findNamed(catalog: Reads['catalog'], text: string, limit: number): NamedItem[] {
  const exact = catalog.listNaming(text, limit)
  if (exact.length > 0) return exact
  const names = namesOfText(text)
  const key = names.digest ?? names.tag
  if (key === null && names.repository !== null && names.repository !== text)
    return ofRepository(catalog, names.repository, limit)
  if (key === null || key === text) return []
  const candidates = catalog
    .listNaming(key, MOST_CANDIDATES)
    .map((item) => ({ item, texts: textsOf(item.body) }))
    .filter(({ texts }) => names.digest === null || hasDigest(texts, names.digest))
  const named = candidates.filter(({ texts }) => isNamed(texts, names))
  // `python:3.12` for `library/python:3.12`
  const short = candidates.filter(({ texts }) => texts.some((one) => one.endsWith(`/${names.repository}`)))
  // An image is the one with its digest, whatever its registry, repository and tag are called elsewhere.
  const others = names.digest === null ? [] : candidates
  const found = [named, short, others].find((ones) => ones.length > 0) ?? []
  return found.slice(0, limit).map(({ item }) => item)
}

/** Returns the items of a repository that was named with the host of a registry. */
function ofRepository(catalog: Reads['catalog'], repository: string, limit: number): NamedItem[] {
  const items = catalog.listNaming(repository, limit)
  return items.filter(({ body }) => isOfRepository(textsOf(body), repository))
}
