import { type PackageFilter, readFilter } from '../../../../server/followers/filter.ts'
import { packagesOfTag } from '../../../../server/followers/tag-packages.ts'
import { MirrorError } from '../../../../base/errors.ts'
import { whyUnrecorded } from '../../../lookup/since.ts'
import { type PageCall, parameter } from '../../page.ts'

/**
 * Says that no stored record names the package, or the ecosystem, of a list without changes: "nothing changed" would say more than is known. Null: one
 * does, or no package is asked about.
 */
export function whyUnrecordedHere({ query, reads, views }: PageCall, filter: PackageFilter | null): string | null {
  const asked = parameter(query, 'purl') || parameter(query, 'ecosystem')
  return filter === null || asked === '' ? null : whyUnrecorded({ reads, views, noViews: null }, asked, filter)
}

/** Largest SBOM that is read for a page or a feed, bytes: their thread has less memory than that of the API. */
const MAX_BYTES = 16 * 2 ** 20

/** The packages that a page or a feed is about. */
interface AskedPackages {
  readonly filter: PackageFilter
  /** What names them. */
  readonly subject: string
  /** Why these may not be all packages of the tag's image, in words; null: nothing says so. */
  readonly doubt: string | null
}

/**
 * Reads which packages a query asks about: those of an ecosystem, one, or those in the SBOM of a tag; null: all. Throws
 * `bad_request`, and for a tag `stale` and what `packagesOfTag` throws.
 */
export function askedPackages(call: PageCall, ecosystem: string): AskedPackages | null {
  const [purl = '', tag = ''] = ['purl', 'tag'].map((name) => parameter(call.query, name))
  const named = readFilter(ecosystem || null, purl || null)
  if (tag === '') return named && { filter: named, subject: purl || ecosystem, doubt: null }
  if (named !== null) throw new MirrorError('bad_request', 'a tag names the packages: omit the others')
  call.refuseOld('catalog')
  const { filter, doubt } = packagesOfTag(call.reads, tag, MAX_BYTES)
  return { filter, subject: tag, doubt }
}
