import { type FoundChanges, findChanges } from '../../api/followers/changes.ts'
import { type PackageFilter, readFilter } from '../../api/followers/filter.ts'
import { type SincePlace, SINCE_FORMS_HERE, placesSince } from '../../api/followers/since.ts'
import { MirrorError } from '../../core/errors.ts'
import { toIso } from '../../core/time.ts'
import { type LookupCall, type LookupOptions, type LookupResult, limitOf, runLookup } from './snapshot.ts' // prettier-ignore

/** Options of `patchmirror changes`. */
interface ChangesOptions extends LookupOptions {
  since?: string
  ecosystem?: string
  purl?: string
}

const LIMIT = 100
/** Times within which changes are looked for when none is named. */
const SINCE = '7d'

/** `patchmirror changes`: what changed in the records since a time or a snapshot, from the data folder. */
export function changesCommand(options: ChangesOptions): number {
  const since = options.since ?? SINCE
  const limit = limitOf(options.limit, LIMIT)
  return runLookup(options, (stored) => {
    const refusal = stored.use('osv')
    if (refusal !== null) throw refusal
    const filter = readFilter(options.ecosystem ?? null, options.purl ?? null)
    const place = placeOf(stored, since)
    return shown(place, collect(stored, place, filter, limit), filter !== null)
  })
}

function placeOf({ reads }: LookupCall, since: string): SincePlace {
  const [place] = placesSince(reads, since, 'osv', Date.now())
  if (place !== undefined) return place
  throw new MirrorError('not_ready', `what changed since ${since} is not known here: name ${SINCE_FORMS_HERE}, within data.changeDays and history.keepDays`) // prettier-ignore
}

/** What was found, of how many pages it may be. */
interface Collected extends Pick<FoundChanges, 'changes' | 'from' | 'to'> {
  readonly notJudged: number
  readonly more: boolean
}

/** Compares page after page until there are as many as are shown, or no more. Throws `not_ready` where names are not known. */
function collect(
  { reads }: LookupCall,
  place: SincePlace,
  filter: PackageFilter | null,
  limit: number,
): Collected {
  const changes: FoundChanges['changes'][number][] = []
  let notJudged = 0
  let after: string | null = null
  for (;;) {
    const asked = { after, limit: limit + 1 - changes.length, detailed: true, filter }
    const page: FoundChanges | null = findChanges(reads, place, place.snapshot, asked)
    if (page?.complete !== true)
      throw new MirrorError('not_ready', 'more changed since then than the log lists by name, or the log does not lead from there to here: everything may have changed') // prettier-ignore
    changes.push(...page.changes)
    notJudged += page.notJudged ?? 0
    after = page.next
    if (after !== null && changes.length <= limit) continue
    const { from, to } = page
    return { changes: changes.slice(0, limit), from, to, notJudged, more: changes.length > limit }
  }
}

function shown(place: SincePlace, found: Collected, isFiltered: boolean): LookupResult {
  const { changes, from, to, notJudged, more } = found
  const since = place.at === null ? null : toIso(place.at)
  const time = since === null ? `snapshot ${from.slice(0, 12)}` : since
  const lines = changes.flatMap((one) => [
    'id' in one ? one.id : one.path,
    ...(one.words ?? []).map((text) => `  ${text}`),
  ])
  return {
    json: { since, from, to, changes, more, ...(isFiltered ? { notJudged } : {}) },
    lines: [
      `changes since ${time}, to snapshot ${to.slice(0, 12)}`,
      '',
      ...(lines.length === 0 ? ['nothing changed'] : lines),
      ...(more ? ['', `more exist than these ${changes.length}: --limit shows up to 1000`] : []),
      ...(notJudged > 0
        ? ['', `${notJudged} changed records are not listed: their earlier version is not stored, so it is not known whether they concern it`] // prettier-ignore
        : []),
    ],
  }
}
