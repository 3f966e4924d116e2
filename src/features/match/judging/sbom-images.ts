import type { InputSbom } from '../../../documents/sboms/sbom.ts'
import type { VexReader } from '../../../store/catalog/vex.ts'
import type { JudgedImage } from '../../../documents/vex/apply.ts'
import { type CatalogReads, imageNames, tagsOfDigest } from '../../../documents/vex/images.ts'
import { readProductName } from '../../../documents/vex/products.ts'

interface SbomReads {
  readonly reads: { readonly catalog: CatalogReads }
  readonly vex: Pick<VexReader, 'listTagsWithSbom' | 'listUnsureTags'>
}

/**
 * Returns which images an SBOM may be of: that of the tag whose SBOM it is, those of all tags that name the digest of what it
 * describes, or one of no tag that is known.
 */
export function imagesOfSbom({ reads, vex }: SbomReads, sbom: InputSbom): JudgedImage[] {
  const { catalog } = reads
  const { subjects, tag, digest, serial = null } = sbom
  const named = tag === undefined ? tagsNamed(catalog, subjects) : [tag]
  const stored = tag === undefined && digest !== undefined ? vex.listTagsWithSbom(digest) : []
  const tags: readonly (string | null)[] = [...new Set([...named, ...stored])]
  const unsure = new Set(tags.length === 0 ? [] : vex.listUnsureTags())
  return (tags.length === 0 ? [null] : tags).map((one) => ({
    subjects,
    serial,
    tag: one,
    images: imageNames(catalog, subjects, { tag: one, isUnsure: one !== null && unsure.has(one) }),
  }))
}

function tagsNamed(catalog: CatalogReads, subjects: readonly string[]): string[] {
  // With several subjects it is not known which of them a component belongs to.
  const [subject = '', ...more] = subjects
  const digest = more.length > 0 ? '' : (readProductName(subject)?.digest ?? '')
  return digest === '' ? [] : tagsOfDigest(catalog, digest).map(({ id }) => id)
}
