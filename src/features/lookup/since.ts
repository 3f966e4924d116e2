import type { PackageFilter } from '../../server/followers/filter.ts'
import { type SincePlace, SINCE_FORMS_HERE, isSnapshotName, placesSince } from '../../server/followers/since.ts'
import { MirrorError } from '../../base/errors.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import { missingUnit, readSince, toIso } from '../../base/time.ts'
import { whyNotAllSearched } from '../../server/lookup/missing-record.ts'
import type { Reads } from '../../store/reads.ts'
import { type SearchReads, findRecords, noIndex } from './search.ts'

/**
 * Where the log of a source continues from a time or a snapshot that a command names. Throws `bad_request` for another text,
 * `not_ready` where the log does not reach back so far; `instead`: what to do then, where it is not to begin with the log. `now`
 * in Unix milliseconds.
 */
export function sincePlace(reads: Reads, source: SourceName, since: string, now: number, instead?: string): SincePlace {
  const at = isSnapshotName(since) ? null : readSince(since, now)
  if (at !== null && at > now) throw new MirrorError('bad_request', `--since is in the future: ${since}`)
  const [place] = placesSince(reads, since, source, now)
  if (place) return place
  const oldest = reads.changes.readNextLogged(source, 0)
  if (oldest === null) throw noLog(source)
  if (at === null && !isSnapshotName(since))
    throw new MirrorError('bad_request', `--since ${since} is none of: ${SINCE_FORMS_HERE}`)
  const begins = toIso(oldest.publishedAt)
  throw new MirrorError(
    'not_ready',
    `what changed since ${since}${missingUnit(since)} is not known here: the log of changes begins on ${begins} (data.historyDays); ${instead ?? `use --since ${begins}`}`,
  )
}

/** The error where no snapshot of a source is in the log. */
export function noLog(source: SourceName): MirrorError {
  return new MirrorError('not_ready', `the log of changes has no snapshot of ${source}`)
}

/** Where a package is looked for. */
interface PackageReads extends SearchReads {
  /** Why there is no index of packages, with what to do; null: that is not known. */
  readonly noViews: string | null
}

/**
 * Returns why it is not known whether anything changed about a package or an ecosystem that no listed change names; null: a stored record
 * names it. Of one that none names "nothing changed" would say more than is known: it may be misspelt. `asked`: a purl, or an ecosystem.
 */
export function whyUnrecorded(stored: PackageReads, asked: string, filter: PackageFilter): string | null {
  const why = asked.startsWith('pkg:') ? whyPurl(stored, asked, filter) : whyEcosystem(stored, asked, filter)
  return why === null ? null : `what changed about ${asked} is not known: ${NAMED_BY_NONE}; ${why}`
}

function whyPurl(stored: PackageReads, purl: string, filter: PackageFilter): string | null {
  const { own, hasIndex, named } = findRecords(stored, purl, 1) ?? { own: [], hasIndex: true, named: null }
  if (own.length > 0 || (named !== null && isNamedByVendor(stored, named.name, filter))) return null
  return hasIndex ? (whyNotAllSearched(stored.reads, named?.ecosystem ?? null) ?? COMPARED) : noIndex(stored.noViews)
}

function whyEcosystem(stored: PackageReads, asked: string, filter: PackageFilter): string | null {
  const isNamed = stored.views((open) =>
    open.listEcosystems().some((ecosystem) => filter.asks({ ecosystem, name: '' })),
  )
  if (isNamed === true) return null
  return isNamed === null ? noIndex(stored.noViews) : (whyNotAllSearched(stored.reads, asked) ?? COMPARED)
}

/** Records of a name that are looked through for those of a vendor. */
const MOST_OF_NAME = 1000

/** Whether a record names the package in the ecosystem of a vendor who patches it. */
function isNamedByVendor({ views }: PackageReads, name: string, filter: PackageFilter): boolean {
  const isNamed = views((open) =>
    open
      .listNamed(name, '', MOST_OF_NAME)
      .some(({ id }) => open.listViewsOf(id).some((ecosystem) => filter.asks({ ecosystem, name }))),
  )
  return isNamed === true
}

const NAMED_BY_NONE = 'no listed change and no record that is stored is known to name it'
const COMPARED = 'names are compared as a whole'
