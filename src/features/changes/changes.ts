import { type FoundChanges, MAX_FOLDED, countWords, findChanges } from '../../server/followers/changes.ts'
import { type PackageFilter, readFilter } from '../../server/followers/filter.ts'
import { type SincePlace, firstStoredText, placeByDefault, wentBackText } from '../../server/followers/since.ts'
import { type ListedPackages, packagesIn } from '../../server/followers/tag-packages.ts'
import { terminalLines, terminalTime } from '../lookup/answers/terminal.ts'
import { changedNames, notJudgedWords } from '../lookup/change-tables.ts'
import { MirrorError } from '../../base/errors.ts'
import { counted } from '../../base/text.ts'
import { toIso } from '../../base/time.ts'
import type { InputSbom } from '../../documents/sboms/sbom.ts'
import { readSbomFile } from '../match/cli/sbom-file.ts'
import { type LookupOptions, refuseLookup, sinceGiven } from '../lookup/open.ts'
import { type LookupCall, type LookupResult, limitOf, runLookup } from '../lookup/snapshot.ts'
import { noLog, sincePlace, whyUnrecorded } from '../lookup/since.ts'
import { sbomsOfTag } from '../lookup/tag-sbom.ts'

/** Options of `patchmirror changes`. */
interface ChangesOptions extends LookupOptions {
  since?: string
  ecosystem?: string
  purl?: string
  /** A tag whose mirrored SBOM names the packages. */
  tag?: string
  /** A file with an SBOM, or `-`. */
  sbom?: string
}

/** The packages that are asked about; null: all. `from` is null where they are named. */
type AskedPackages = Omit<ListedPackages, 'from'> & { readonly from: ListedPackages['from'] | null }

const LIMIT = 100

/** `patchmirror changes [SINCE]`: what changed in the records since a time or a snapshot, from the data folder. */
export async function changesCommand(given: string | undefined, options: ChangesOptions): Promise<number> {
  const since = sinceGiven(given, options.since)
  const { ecosystem, purl, tag, sbom } = options
  const limit = limitOf(options.limit, LIMIT)
  if ([tag, sbom, ecosystem ?? purl].filter((one) => one !== undefined).length > 1)
    throw new MirrorError('usage', '--tag, --sbom, and --ecosystem or --purl exclude each other')
  let listed: InputSbom | null = null
  try {
    if (sbom !== undefined) listed = await readSbomFile(sbom)
  } catch (error) {
    return refuseLookup(error, options.json === true, null)
  }
  return runLookup(options, (stored) => {
    const refusal = stored.use('osv')
    if (refusal !== null) throw refusal
    const packages = packagesAsked(stored, options, listed)
    const place = placeOf(stored, since)
    const found = collect(stored, place, packages?.filter ?? null, limit)
    const named = options.purl ?? options.ecosystem
    if (packages !== null && named !== undefined && found.changes.length + found.notJudged === 0)
      refuseUnknown(stored, named, packages.filter)
    const notes = [firstStoredText(place), wentBackText(stored.reads, place, found.to), packages?.doubt ?? null]
    return shown(place, found, packages, notes)
  })
}

/** Throws `not_ready` where no stored record names a package, or an ecosystem. */
function refuseUnknown(stored: LookupCall, asked: string, filter: PackageFilter): void {
  const why = whyUnrecorded(stored, asked, filter)
  if (why === null) return
  const unknown = [why, stored.oldIndex()].filter((one) => one !== null)
  throw new MirrorError('not_ready', unknown.join('; '))
}

/** Returns the packages that are asked about; null: all. `listed`: the SBOM of `--sbom`. */
function packagesAsked(stored: LookupCall, options: ChangesOptions, listed: InputSbom | null): AskedPackages | null {
  const { ecosystem = null, purl = null, tag, sbom = '' } = options
  const named = readFilter(ecosystem, purl)
  if (tag !== undefined) return packagesIn(sbomsOfTag(stored, tag), tag)
  if (listed !== null) return packagesIn([listed], listed.name || sbom)
  return named && { filter: named, from: null, doubt: null }
}

/** Where the log continues from a time or a snapshot; when none is named from a week ago, or from its beginning. */
function placeOf({ reads }: LookupCall, since: string | undefined): SincePlace {
  const now = Date.now()
  if (since !== undefined) return sincePlace(reads, 'osv', since, now)
  const place = placeByDefault(reads, now)
  if (place === null) throw noLog('osv')
  return place
}

/** What was found, of how many pages it may be. */
interface Collected extends Pick<FoundChanges, 'changes' | 'from' | 'to'> {
  readonly notJudged: number
  readonly more: boolean
}

/** Compares page after page until there are as many as are shown, or no more. Throws `not_ready` where names are not known. */
function collect({ reads }: LookupCall, place: SincePlace, filter: PackageFilter | null, limit: number): Collected {
  const changes: FoundChanges['changes'][number][] = []
  let notJudged = 0
  let after: string | null = null
  for (;;) {
    const asked = { after, limit: limit + 1 - changes.length, detailed: true, filter, now: Date.now() }
    const page: FoundChanges | null = findChanges(reads, place, place.snapshot, asked)
    if (page?.complete !== true) throw unnamed(page, reads.changes.readLatestLogged('osv')?.publishedAt)
    changes.push(...page.changes)
    notJudged += page.notJudged ?? 0
    after = page.next
    if (after !== null && changes.length <= limit) continue
    const { from, to } = page
    return { changes: changes.slice(0, limit), from, to, notJudged, more: changes.length > limit }
  }
}

/** The error for a time from which the log does not list every name; `latest`: when the last snapshot was published. */
function unnamed(page: FoundChanges | null, latest: number | undefined): MirrorError {
  const everything = 'everything may have changed'
  if (page === null)
    return new MirrorError('not_ready', `the log of changes does not lead from there to here: ${everything}`)
  const { namedSince: time, counts } = page
  const sum = counts === undefined ? '' : ` (${countWords(counts)})`
  const what = `more changed in that time than the log lists by name, ${MAX_FOLDED} names${sum}: ${everything}`
  if (time === undefined) return new MirrorError('not_ready', what)
  const hint =
    latest !== undefined && time === toIso(latest)
      ? `since the last snapshot, of ${time}, nothing has changed`
      : `what changed after ${time} is listed: use --since ${time}`
  return new MirrorError('not_ready', `${what}; ${hint}`, { fields: { namedSince: time } })
}

function shown(
  place: SincePlace,
  found: Collected,
  packages: AskedPackages | null,
  notes: readonly (string | null)[],
): LookupResult {
  const { changes, from, to, notJudged, more } = found
  const since = place.at === null ? null : toIso(place.at)
  const { firstStored } = place
  const time = since === null ? `snapshot ${from.slice(0, 12)}` : terminalTime(since)
  const named = changes.map((one) => ({ ...one, name: 'id' in one ? one.id : one.path }))
  const hint = `more exist than these ${changes.length}: --limit shows up to 1000`
  const table = changedNames('osv', named, more ? { more: hint } : {})
  const source = packages?.from ?? null
  return {
    json: {
      since,
      from,
      to,
      changes,
      more,
      ...(firstStored === null ? {} : { knownSince: toIso(firstStored) }),
      ...(packages === null ? {} : { notJudged }),
      ...(source === null ? {} : { packages: source }),
      ...(packages?.doubt ? { note: packages.doubt } : {}),
    },
    lines: [
      `changes since ${time}, to snapshot ${to.slice(0, 12)}`,
      ...notes.filter((note) => note !== null),
      ...(source === null ? [] : [packagesLine(source)]),
      '',
      ...terminalLines({ parts: [table] }),
      ...(notJudged > 0 ? ['', notJudgedWords(notJudged)] : []),
    ],
    table: notJudged > 0 ? { ...table, notes: [notJudgedWords(notJudged)] } : table,
  }
}

function packagesLine({ of, packages, unknown }: NonNullable<AskedPackages['from']>): string {
  const others = unknown === 0 ? '' : `; without a purl of an ecosystem that OSV records name: ${unknown}`
  return `of the ${counted(packages, 'package')} in the SBOM of ${of}, whatever their versions${others}`
}
