import { TAGS } from '../../base/domain/resources.ts'
import { NOT_NAMED, findTags, referenceOfPurl } from '../../server/lookup/named.ts'
import { MirrorError } from '../../base/errors.ts'
import type { InputSbom } from '../../documents/sboms/sbom.ts'
import { readMirroredSboms, sbomDigestsOf, whySbomOld } from '../../documents/sboms/mirrored.ts'
import { isOfImage, platformGap } from '../../documents/sboms/platforms.ts'
import { readListedImage } from '../../documents/vex/images.ts'
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
  const sboms = digests.flatMap((digest) =>
    readMirroredSboms(stored.reads, digest, name).map((one) => ({ ...one, ...more })),
  )
  return ofPlatform(sboms, name, readListedImage(stored.reads.catalog, id)?.images ?? [])
}

type ListedImages = NonNullable<ReturnType<typeof readListedImage>>['images']

/** Returns those of a tag's SBOMs that are of the platform whose digest is asked for; where none is, all, with what they do not say. */
function ofPlatform(sboms: readonly InputSbom[], name: string, images: ListedImages): InputSbom[] {
  const [, asked = ''] = /(sha\d{3}:[\da-f]{8,})$/i.exec(referenceOfPurl(name) ?? name) ?? []
  const isAsked = ({ digest }: ListedImages[number]): boolean => asked !== '' && digest.startsWith(asked.toLowerCase())
  const [image, ...more] = images.filter((one) => one.isPlatform && isAsked(one))
  const isOf = (one: ListedImages[number]) => (sbom: InputSbom) => isOfImage(sbom.subjects, one, images)
  const own = image === undefined || more.length > 0 ? [] : sboms.filter(isOf(image))
  if (own.length > 0) return own
  const isOther = image !== undefined && more.length === 0 && images.some((one) => sboms.some(isOf(one)))
  const gap = platformGap(
    images,
    sboms.map(({ subjects }) => subjects),
  )
  const ofAnother = isOther ? `the SBOM is of another platform of the image than ${image.digest}` : gap
  return ofAnother === null ? [...sboms] : sboms.map((sbom) => ({ ofAnother, ...sbom }))
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
  const message = `several tags are named ${name}: "patchmirror show ${name}" lists them with their ids`
  throw new MirrorError('not_found', message)
}
