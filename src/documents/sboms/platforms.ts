import { counted, nounOf } from '../../base/text.ts'
import type { ListedImage } from '../vex/images.ts'
import { isForPlatforms, readProductName } from '../vex/products.ts'

type Images = ListedImage['images']

/** Reports whether what an SBOM describes is an image of a tag, or the index that it is listed in. `subjects`: its package URLs. */
export function isOfImage(subjects: readonly string[], image: Images[number], images: Images): boolean {
  const isIndex = (digest: string): boolean => images.some((one) => one.digest === digest && !one.isPlatform)
  const names = subjects.flatMap((purl) => readProductName(purl) ?? [])
  return names.some(
    (one) => one.digest === image.digest || (isIndex(one.digest) && isForPlatforms(one, [image.arch], true)),
  )
}

/**
 * Returns of which platforms of a tag's image its SBOMs say nothing, or that they name only images that the tag is not known by, in words;
 * null: neither. `sboms`: the package URLs of what each describes.
 */
export function platformGap(images: Images, sboms: readonly (readonly string[])[]): string | null {
  const unlisted = unlistedDigest(images, sboms)
  if (unlisted !== null)
    return `the SBOM is of ${unlisted}, which the catalog does not list for the tag: it may be of another image, or of one platform of it`
  // what buildx attests beside an image is of the platform `unknown`
  const platforms = images.filter(
    ({ isPlatform, isUnsure, arch }) => isPlatform && isUnsure !== true && arch !== 'unknown',
  )
  if (platforms.length < 2) return null
  const known = platforms.filter((one) => sboms.some((subjects) => isOfImage(subjects, one, images)))
  const others = platforms.filter((one) => !known.includes(one))
  if (others.length === 0) return null
  const all = counted(platforms.length, 'platform')
  if (known.length === 0)
    return `the image has ${all} (${namesOf(platforms)}), and the SBOM does not say of which it is`
  return `the SBOM is of ${namesOf(known)}: nothing is known of the other ${nounOf(others.length, 'platform', 'platforms')} of the image (${namesOf(others)})`
}

/** Returns a digest by which SBOMs name their images where the catalog has other ones alone; null: it has one, or an SBOM names none. */
function unlistedDigest(images: Images, sboms: readonly (readonly string[])[]): string | null {
  const named = sboms.map((subjects) =>
    subjects.map((purl) => readProductName(purl)?.digest ?? '').filter((digest) => digest !== ''),
  )
  const isListed = (digest: string): boolean => images.some((one) => one.digest === digest)
  const isClear = images.length === 0 || named.some((digests) => digests.length === 0 || digests.some(isListed))
  return isClear ? null : (named[0]?.[0] ?? null)
}

function namesOf(platforms: Images): string {
  return platforms.map(({ arch, digest }) => arch || digest.slice(0, SHORT)).join(', ')
}

/** Characters of a digest that are shown: `sha256:` and twelve more. */
const SHORT = 19
