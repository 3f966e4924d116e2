import { TAGS } from '../../base/domain/resources.ts'
import { NOT_NAMED, findTags, referenceOfPurl } from '../../server/lookup/named.ts'
import { MirrorError } from '../../base/errors.ts'
import type { InputSbom } from '../../documents/sboms/sbom.ts'
import { readMirroredSbom, sbomDigestsOf, whySbomOld } from '../../documents/sboms/mirrored.ts'
import { readListedImage } from '../../documents/vex/images.ts'
import { type ProductName, isForPlatforms, readProductName } from '../../documents/vex/products.ts'
import { requireWhole } from '../../store/catalog/completeness.ts'
import type { LookupCall } from './snapshot.ts'

/**
 * Reads the mirrored SBOMs of the tag that a name, digest or id names. Throws `not_found` where it names none or several,
 * `not_ready` where no SBOM of it is stored, or it cannot be read.
 */
export function sbomsOfTag(stored: Pick<LookupCall, 'reads' | 'use'>, name: string): InputSbom[] {
  const refusal = stored.use('catalog')
  if (refusal !== null) throw refusal
  const id = idOfTag(stored, name)
  const digests = sbomDigestsOf(stored.reads, id)
  if (digests.length === 0)
    throw new MirrorError('not_ready', `no SBOM of ${name} is stored here: "patchmirror show ${id}" says why`)
  const ofAnother = whySbomOld(stored.reads, id)
  const more = { tag: id, ...(ofAnother !== null && { ofAnother }) }
  const sboms = digests.map((digest) => ({ ...readMirroredSbom(stored.reads, digest, name), ...more }))
  return ofPlatform(sboms, name, readListedImage(stored.reads.catalog, id)?.images ?? [])
}

type ListedImages = NonNullable<ReturnType<typeof readListedImage>>['images']

/** Returns those of a tag's SBOMs that are of the platform whose digest is asked for; where none is, all, as those of another one. */
function ofPlatform(sboms: readonly InputSbom[], name: string, images: ListedImages): InputSbom[] {
  const [, asked = ''] = /(sha\d{3}:[\da-f]{8,})$/i.exec(referenceOfPurl(name) ?? name) ?? []
  const [image, ...more] = images.filter(
    ({ digest, isPlatform }) => isPlatform && digest.startsWith(asked.toLowerCase()),
  )
  if (asked === '' || image === undefined || more.length > 0) return [...sboms]
  const isIndex = (digest: string): boolean => images.some((one) => one.digest === digest && !one.isPlatform)
  const named = sboms.map((sbom) => ({ sbom, names: sbom.subjects.flatMap((purl) => readProductName(purl) ?? []) }))
  const isOwn = (one: ProductName): boolean =>
    one.digest === image.digest || (isIndex(one.digest) && isForPlatforms(one, [image.arch], true))
  const own = named.filter(({ names }) => names.some(isOwn))
  if (own.length > 0) return own.map(({ sbom }) => sbom)
  const isOther = ({ digest }: ProductName): boolean => isIndex(digest) || images.some((one) => one.digest === digest)
  const ofAnother = `the SBOM is of another platform of the image than ${image.digest}`
  return named.map(({ sbom, names }) => (names.some(isOther) ? { ofAnother, ...sbom } : sbom))
}

/** Returns the id of the tag that a name, digest or id names. Throws `not_found` where it names none or several. */
export function idOfTag(stored: Pick<LookupCall, 'reads'>, name: string): string {
  const [tag, another] = findTags(stored.reads.catalog, name)
  if (tag === undefined) {
    const { catalog } = stored.reads
    requireWhole(catalog.whyIncomplete(TAGS), `no mirrored tag is named ${name}: ${NOT_NAMED}`)
    throw new MirrorError(
      'not_found',
      `not found: no mirrored tag is named ${name}: "patchmirror list tags" has all of them`,
    )
  }
  if (another === undefined) return tag.id
  const message = `not found: ${name} names several tags: "patchmirror show ${name}" lists them with their ids`
  throw new MirrorError('not_found', message)
}
