import { TAGS } from '../../base/domain/resources.ts'
import { MirrorError } from '../../base/errors.ts'
import { readMirroredSboms, sbomDigestsOf, sbomPathOf, whySbomOld } from '../../documents/sboms/mirrored.ts'
import { platformGap } from '../../documents/sboms/platforms.ts'
import type { InputSbom } from '../../documents/sboms/sbom.ts'
import { readListedImage } from '../../documents/vex/images.ts'
import { requireWhole } from '../../store/catalog/completeness.ts'
import { sbomGapWords } from '../../store/findings/words.ts'
import type { Reads } from '../../store/reads.ts'
import { NOT_NAMED, findTags } from '../lookup/named.ts'
import { type PackageFilter, filterOfSboms } from './filter.ts'

/** The packages that SBOMs list, whatever their versions. */
export interface ListedPackages {
  readonly filter: PackageFilter
  /** What the SBOMs are of, their different packages, and others that no record can be about. */
  readonly from: { readonly of: string; readonly packages: number; readonly unknown: number }
  /** Why they may not be all packages of the image that is meant, in words; null: nothing says so. */
  readonly doubt: string | null
}

/** Returns the packages of SBOMs. Throws `bad_request` where there is none that a record can be about. */
export function packagesIn(sboms: readonly InputSbom[], of: string): ListedPackages {
  const { filter, packages, unknown } = filterOfSboms(sboms)
  const doubts = sboms.flatMap(({ ofAnother, incomplete }) => [
    ...(ofAnother === undefined ? [] : [ofAnother]),
    ...(incomplete === undefined ? [] : [sbomGapWords(incomplete)]),
  ])
  const doubt = doubts.length === 0 ? null : [...new Set(doubts)].join('; ')
  if (packages > 0) return { filter, from: { of, packages, unknown }, doubt }
  throw new MirrorError(
    'bad_request',
    `the SBOM of ${of} lists no package with a purl of an ecosystem that OSV records name`,
  )
}

/**
 * Returns the packages in the mirrored SBOMs of the tag that a name, digest or id names. Throws `not_found` where it names
 * none or several, or the tag has no SBOM here; `not_ready` where that is to come, or cannot be read; `bad_request`.
 * `maxBytes`: of one SBOM.
 */
export function packagesOfTag({ catalog }: Pick<Reads, 'catalog'>, text: string, maxBytes?: number): ListedPackages {
  const name = text.slice(0, 100)
  const [tag, another] = findTags(catalog, text)
  if (tag === undefined) {
    requireWhole(catalog.whyIncomplete(TAGS), `no mirrored tag is named ${name}: ${NOT_NAMED}`)
    throw new MirrorError('not_found', `no mirrored tag is named ${name}`)
  }
  if (another !== undefined)
    throw new MirrorError('not_found', `several tags are named ${name}: name one by its digest or id`)
  const isRefused = catalog.readMissingPath(sbomPathOf(tag.id))?.status === 403
  const digests = isRefused ? [] : sbomDigestsOf({ catalog }, tag.id)
  if (digests.length === 0) {
    const isComing = isExpected(catalog, tag.id)
    const message = `no SBOM of ${name} is stored here${isComing ? ' yet' : ''}: ${sbomPathOf(tag.id)} answers why`
    throw new MirrorError(isComing ? 'not_ready' : 'not_found', message)
  }
  const sboms = digests.flatMap((digest) => readMirroredSboms({ catalog }, digest, name, maxBytes))
  const images = readListedImage(catalog, tag.id)?.images ?? []
  const subjects = sboms.map((one) => one.subjects)
  const ofAnother = whySbomOld({ catalog }, tag.id) ?? platformGap(images, subjects)
  return packagesIn(ofAnother === null ? sboms : sboms.map((one) => ({ ...one, ofAnother })), name)
}

/** Whether a tag without an SBOM may get one by a later sync: it is in scope, and the service was not asked, or did not answer. */
function isExpected(catalog: Reads['catalog'], id: string): boolean {
  const path = sbomPathOf(id)
  if (catalog.readMissingPath(path) !== null) return true
  return catalog.readAnswer(path) === null && catalog.hasAnswers(`tags/${id}`)
}
