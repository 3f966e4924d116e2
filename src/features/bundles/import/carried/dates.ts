import { MirrorError, messageOf } from '../../../../base/errors.ts'
import { type LineFault, eachGzipLine } from '../../format/lines.ts'
import type { RecordDates } from '../../../../store/dates/reads.ts'
import { compareKeys } from '../../../../store/replication/rows.ts'
import type { Writes } from '../../../../store/writes.ts'
import { carriedMember } from '../../format/carried.ts'
import { DATES_HEADER, parseDates } from '../../format/dates.ts'
import type { Manifest } from '../../format/manifest.ts'
import type { Bundle } from '../open.ts'

/** Longest line of the dates, characters: an id, which JSON may escape, and numbers. */
const MAX_LINE = 100_000

/** Yields the dates of records that a bundle has, in the order of their ids. Throws `bundle` for malformed ones. */
export async function* eachCarriedDates(bundle: Pick<Bundle, 'manifest' | 'stream'>): AsyncGenerator<RecordDates> {
  const name = datesMember(bundle.manifest)
  if (name === null) return
  let before: string | null = null
  let number = 0
  const chunks = copies(bundle.stream(name))
  for await (const line of eachGzipLine(chunks, MAX_LINE, (fault) => faultOf(name, fault))) {
    const place = `${name}:${++number}`
    if (number === 1) {
      if (line !== DATES_HEADER) throw new MirrorError('bundle', `${place} is not the header of dates`)
      continue
    }
    const dates = parseDates(parseJson(line, place), place)
    if (before !== null && compareKeys(before, dates.id) >= 0)
      throw new MirrorError('bundle', `${place} is out of order`)
    before = dates.id
    yield dates
  }
  if (number - 1 !== bundle.manifest.counts['osv-dates']?.put)
    throw new MirrorError('bundle', `${name} has ${number - 1} dates, and the manifest counts others`)
}

/**
 * Notes the dates of what bundles changed, once they are applied in this order in the open transaction, and merges the dates
 * that they have. Several bundles that lead to one state count as one change: the dates of a record are those of the last
 * bundle with it, which describe the stored content.
 */
export async function applyDates(
  bundles: readonly Bundle[],
  store: Pick<Writes, 'dates' | 'snapshots'>,
  now: number,
): Promise<void> {
  const published = store.snapshots.readSnapshot('osv')
  if (published === null || !bundles.some(({ manifest }) => manifest.sources.osv !== undefined)) return
  const at = published.publishedAt
  store.dates.noteDates(null, at)
  const seen = new Set<string>()
  for (const [i, bundle] of [...bundles].reverse().entries()) {
    for await (const dates of eachCarriedDates(bundle)) {
      if (!seen.has(dates.id)) store.dates.adoptDates(dates, at, now)
      if (i < bundles.length - 1) seen.add(dates.id)
    }
    if (isUndated(bundle)) return // which contents it replaced is not known
  }
}

/** Reports whether a bundle has records and not their dates, as that of an earlier program. */
function isUndated({ manifest }: Pick<Bundle, 'manifest'>): boolean {
  const { counts } = manifest
  const hasRecords = counts['osv-record'] !== undefined || counts['osv-tombstone'] !== undefined
  return hasRecords && datesMember(manifest) === null
}

function faultOf(name: string, fault: LineFault): MirrorError {
  if (fault === 'endless') return new MirrorError('bundle', `${name} has a line without an end`)
  if (fault === 'cut') return new MirrorError('bundle', `${name} ends within a line`)
  const { cause } = fault
  return new MirrorError('bundle', `${name} cannot be read: ${messageOf(cause)}`, { cause })
}

/** Each piece of a member is valid until the next one alone. */
async function* copies(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) yield Buffer.from(chunk)
}

function parseJson(line: string, place: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    throw new MirrorError('bundle', `${place} is not JSON`)
  }
}

/** Returns the name of the member with the dates of records; null: the bundle has none, or no records. Throws `bundle`. */
function datesMember(manifest: Manifest): string | null {
  return manifest.sources.osv === undefined ? null : carriedMember(manifest, 'osv-dates')
}
