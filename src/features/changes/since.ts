import type { DescribedDates, UpstreamDates } from '../../base/reports/records.ts'
import { readFilter, withoutVendor } from '../../server/followers/filter.ts'
import { dateInWords, datesInWords, describeDates, readUpstreamDates } from '../../server/lookup/dates.ts'
import { createViewsInUse } from '../scanners/routes/generation.ts'
import type { Config } from '../../config/schema.ts'
import { MirrorError } from '../../base/errors.ts'
import { csvField } from '../../base/text.ts'
import type { RecordDates } from '../../store/dates/reads.ts'
import type { Reads } from '../../store/reads.ts'
import { folderOf } from '../scanners/store/generations.ts'
import type { Views } from '../scanners/store/reads.ts'
import { derivedVendors, isKnownEcosystem } from '../scanners/views/osv/ecosystems.ts'
import { table, visible } from '../../cli/output.ts'
import { type GlobalOptions, firstStep, print, settings } from '../../cli/context.ts'
import { closing, withStoredReads } from '../../cli/store-access.ts'
import { type TriedIndex, needPackageIndex, withPackageIndex } from '../lookup/package-index.ts'
import { type Freshness, createFreshness } from '../lookup/freshness.ts'
import { noIndex } from '../lookup/search.ts'
import { refuseLookup } from '../lookup/open.ts'
import { limitOf } from '../lookup/snapshot.ts'

/** Options of `patchmirror list records`. */
interface SinceOptions extends GlobalOptions {
  ecosystem?: string
  json?: boolean
  csv?: boolean
  limit?: string
}

const LIMIT = 20

/** `patchmirror list records`: the records first seen last, or with --csv or --json the dates of all, in the order of their ids. */
export async function sinceCommand(options: SinceOptions): Promise<number> {
  if (options.json === true && options.csv === true)
    throw new MirrorError('usage', '--json and --csv exclude each other')
  const limit = limitOf(options.limit, LIMIT)
  const { config } = settings(options, false, [])
  const none = `nothing is mirrored yet in ${config.data.dir}: ${firstStep(config)}`
  const onSnapshot = (index: TriedIndex): void =>
    withStoredReads(config.data.dir, none, (reads, db) => {
      const work = (): void => {
        const freshness = createFreshness(config, reads, Date.now())
        const refusal = freshness.useDates('osv')
        if (refusal !== null) throw refusal
        const rows = chosen({ config, reads, index, ...freshness }, options.ecosystem)
        if (options.csv === true) printCsv(reads, rows)
        else if (options.json === true) printAll(reads, rows)
        else printNewest([...rows], limit)
        if (options.csv === true || options.json === true)
          for (const line of freshness.warnings()) process.stderr.write(`${line}\n`)
        else print(['', ...freshness.lines()].join('\n'))
      }
      db.transaction(work).deferred()
    })
  try {
    await withPackageIndex(config, onSnapshot)
    return 0
  } catch (error) {
    return refuseLookup(error, options.json === true, null)
  }
}

/** What dates are chosen from. */
interface ChosenFrom extends Pick<Freshness, 'useIndex'> {
  readonly config: Config
  readonly reads: Reads
  readonly index: TriedIndex
}

/** Returns the dates of all records, or of those in the view of an ecosystem, where no removed record is. */
function chosen({ config, reads, index, useIndex }: ChosenFrom, ecosystem: string | undefined): Iterable<RecordDates> {
  const { dates } = reads
  if (ecosystem === undefined) return dates.eachDates()
  if (index.missing !== null) throw new MirrorError('not_ready', noIndex(index.missing))
  needPackageIndex(config, reads, index)
  const inUse = createViewsInUse(config.data.dir, null, null)
  return closing(inUse, () => {
    try {
      const views = inUse.current()
      useIndex(views.info.snapshot)
      if (!views.hasView(ecosystem)) refuseUnknown(config, views, ecosystem)
      return [...dates.eachDates()].filter(({ id }) => views.listViewsOf(id).includes(ecosystem))
    } catch (error) {
      if (!(error instanceof MirrorError) || error.code !== 'not_ready') throw error
      throw new MirrorError('not_ready', noIndex(null), { cause: error })
    }
  })
}

/** Refuses an ecosystem of no view that is none, or a part of one: views are of ecosystems. Throws `usage`, `bad_request`. */
function refuseUnknown({ views }: Config, { hasView }: Pick<Views, 'hasView'>, ecosystem: string) {
  const own = folderOf(ecosystem)
  const plain = folderOf(withoutVendor(ecosystem))
  const isVendor = hasView(own) || isKnownEcosystem(own) || views.vendors.includes(own)
  readFilter(own === plain || isVendor ? ecosystem : `${own}:`, null) // any vendor passes it, also Foo of Foo:Maven
  const folder = derivedVendors(views).includes(own) && hasView(plain) ? plain : own
  if (folder !== ecosystem)
    throw new MirrorError('usage', `there is no list of ${ecosystem.slice(0, 100)} alone: use --ecosystem ${folder}`)
}

function printNewest(rows: readonly RecordDates[], limit: number): void {
  const newest = rows.toSorted((a, b) => b.firstSeen - a.firstSeen).slice(0, limit)
  const cells = newest.map((row) => [
    row.id,
    ...datesInWords(row)
      .slice(0, 2)
      .map(([, at, note]) => dateInWords(at, note)),
    describeDates(row).state,
  ])
  print(
    table(
      ['record', 'first seen here', 'fix first seen', 'state'],
      cells.map((row) => row.map(visible)),
    ),
  )
  if (rows.length > limit) print(`\nthe newest ${limit} of ${rows.length} records; --csv and --json print all`)
}

/** A row of the export: the columns of a CSV, in their order. */
const COLUMNS: readonly [
  name: string,
  of: (row: DescribedDates, upstream: UpstreamDates | null) => string | boolean | null,
][] = [
  ['id', ({ id }) => id],
  ['state', ({ state }) => state],
  ['first_seen', ({ firstSeen }) => firstSeen.at],
  ['first_seen_exact', ({ firstSeen }) => firstSeen.exact],
  ['fix_seen', ({ fixSeen }) => fixSeen?.at ?? null],
  ['fix_seen_exact', ({ fixSeen }) => fixSeen?.exact ?? null],
  ['changed', ({ changed }) => changed.at],
  ['changed_exact', ({ changed }) => changed.exact],
  ['removed', ({ removedAt }) => removedAt],
  ['returned', ({ returnedAt }) => returnedAt],
  ['upstream_published', (_, upstream) => upstream?.published ?? null],
  ['upstream_modified', (_, upstream) => upstream?.modified ?? null],
]

function printCsv(reads: Reads, rows: Iterable<RecordDates>): void {
  print(COLUMNS.map(([name]) => name).join(','))
  for (const row of rows) {
    const described = describeDates(row)
    const upstream = readUpstreamDates(reads, row.id)
    print(COLUMNS.map(([, of]) => csvField(of(described, upstream))).join(','))
  }
}

/** Prints a JSON array with a line for each record. */
function printAll(reads: Reads, rows: Iterable<RecordDates>): void {
  let before = '['
  for (const row of rows) {
    print(`${before}${JSON.stringify({ ...describeDates(row), upstream: readUpstreamDates(reads, row.id) })}`)
    before = ','
  }
  print(before === '[' ? '[]' : ']')
}
