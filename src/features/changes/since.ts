import { readFilter, withoutVendor } from '../../server/followers/filter.ts'
import { createViewsInUse } from '../scanners/routes/generation.ts'
import type { Config } from '../../config/schema.ts'
import { MirrorError } from '../../base/errors.ts'
import { isObject, jsonTextOf } from '../../base/json/objects.ts'
import { SINCE_FORMS, missingUnit, readSince } from '../../base/time.ts'
import { type Level, LEVELS, severityOf } from '../../documents/records/severity.ts'
import { contentOf } from '../../store/database/gzip.ts'
import { type RecordDates, isOnMirror } from '../../store/dates/reads.ts'
import type { Reads } from '../../store/reads.ts'
import { folderOf } from '../scanners/store/generations.ts'
import type { Views } from '../scanners/store/reads.ts'
import { derivedVendors, isKnownEcosystem } from '../scanners/views/osv/ecosystems.ts'
import { noIndex } from '../lookup/search.ts'
import { findMissingNamed, whyNotAllSearched } from '../../server/lookup/missing-record.ts'
import type { DescribedDates, UpstreamDates } from '../../base/reports/records.ts'
import { datesInWords, describeDates, readUpstreamDates } from '../../server/lookup/dates.ts'
import { counted, csvField } from '../../base/text.ts'
import { table } from '../../cli/output.ts'
import { firstStep, print, settings } from '../../cli/context.ts'
import { closing } from '../../base/closing.ts'
import { withStoredReads } from '../../cli/store-reads.ts'
import { type TriedIndex, needPackageIndex, withPackageIndex } from '../lookup/package-index.ts'
import { type Freshness, createFreshness } from '../lookup/freshness.ts'
import { type LookupOptions, refuseLookup, refuseTwoForms } from '../lookup/open.ts'
import { dateInWords } from '../lookup/record.ts'
import { limitOf } from '../lookup/snapshot.ts'

/** Options of `patchmirror list records`. */
type SinceOptions = LookupOptions & RecordFilters

const LIMIT = 20

/**
 * `patchmirror list records`: the records first seen last. With --csv or --json and without --limit all of them, in the order of
 * their ids.
 */
export async function sinceCommand(options: SinceOptions): Promise<number> {
  refuseTwoForms(options)
  const limit = limitOf(options.limit, LIMIT)
  const { config } = settings(options, false, [])
  const isForPeople = options.json !== true && options.csv !== true
  const none = `nothing is mirrored yet in ${config.data.dir}: ${firstStep(config)}`
  const onSnapshot = (index: TriedIndex): void =>
    withStoredReads(config.data.dir, none, (reads, db) => {
      const work = (): void => {
        const freshness = createFreshness(config, reads, Date.now())
        const refusal = freshness.useDates('osv')
        if (refusal !== null) throw refusal
        const { rows, notes } = chosenRecords({ config, reads, index, ...freshness }, options)
        const below = (said: readonly string[]): string[] => (said.length === 0 ? [] : ['', ...said])
        if (isForPeople) return printNewest([...rows], limit, () => [...below(notes()), ...below(freshness.lines())])
        const chosen = options.limit === undefined ? rows : newestOf([...rows], limit)
        if (options.csv === true) printCsv(reads, chosen)
        else printAll(reads, chosen, () => ({ incomplete: notes().join('; ') || null, sources: freshness.used() }))
        for (const line of [...notes(), ...freshness.warnings()]) process.stderr.write(`${line}\n`)
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

function newestOf(rows: readonly RecordDates[], limit: number): RecordDates[] {
  return rows.toSorted((a, b) => b.firstSeen - a.firstSeen).slice(0, limit)
}

const NONE_FITS = 'no record fits; names of packages and CVEs are compared as a whole, such as io.netty:netty-codec'

/** `below`: what is said below the table, which is known when all rows were looked at. */
function printNewest(rows: readonly RecordDates[], limit: number, below: () => readonly string[]): void {
  const cells = newestOf(rows, limit).map((row) => [
    row.id,
    ...datesInWords(row)
      .slice(0, 2)
      .map(([, at, note]) => dateInWords(at, note)),
    describeDates(row).state,
  ])
  const head = ['record', 'first seen here', 'fix first seen', 'state']
  print(cells.length === 0 ? NONE_FITS : table(head, cells))
  if (rows.length > limit) print(`\nthe newest ${limit} of ${rows.length} records; --csv and --json print all`)
  print(below().join('\n'))
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

/** Prints JSON with a line for each record. `more`: further fields, which are known when all are printed. */
function printAll(reads: Reads, rows: Iterable<RecordDates>, more: () => object): void {
  let before = '{"found":true,"records":['
  for (const row of rows) {
    print(`${before}${JSON.stringify({ ...describeDates(row), upstream: readUpstreamDates(reads, row.id) })}`)
    before = ','
  }
  print(`${before === ',' ? '' : before}],${JSON.stringify(more()).slice(1)}`)
}

/** The filters of `patchmirror list records`, as they are written. */
interface RecordFilters {
  readonly cve?: string
  readonly package?: string
  readonly ecosystem?: string
  readonly severity?: string
  readonly status?: string
  readonly since?: string
}

/** What records are chosen from. */
interface ChosenFrom extends Pick<Freshness, 'useIndex'> {
  readonly config: Config
  readonly reads: Reads
  readonly index: TriedIndex
}

/** Records that name a CVE or a package, of which a filter takes notice. */
const MOST_NAMED = 1_000_000

/** Whether a record of a mirror is shown. */
type Test = (row: RecordDates) => boolean

/** The records that pass all filters, and which records could not be tried by one, which is known when all were looked at. */
interface Chosen {
  readonly rows: Iterable<RecordDates>
  readonly notes: () => readonly string[]
}

/**
 * Returns the dates of the records that pass all filters, in the order of their ids. Removed records are in no index and have no
 * severity. Throws `usage` for a filter of another form, `not_ready` without the index that one needs.
 */
function chosenRecords(from: ChosenFrom, filters: RecordFilters): Chosen {
  const { cve, package: name, ecosystem, severity, status } = filters
  const isByContent = [cve, name, ecosystem, severity].some((one) => one !== undefined)
  if (isByContent && status === 'removed')
    throw new MirrorError('usage', `--status removed goes with --since alone: ${REMOVED_ARE_NOT_TRIED}`)
  const unknown = { severities: 0 }
  const tests = [testOfDates(filters), testOfIndex(from, filters), testOfSeverity(from.reads, severity, unknown)]
  return {
    rows: eachPassing(from.reads, (row) => tests.every((passes) => passes(row))),
    notes: () => [
      ...(isByContent && status === undefined ? [REMOVED_ARE_NOT_TRIED] : []),
      ...(unknown.severities === 0
        ? []
        : [`left out, because no severity of them is known: ${counted(unknown.severities, 'record')}`]),
    ],
  }
}

const REMOVED_ARE_NOT_TRIED = 'removed records are in no index and have no severity, so no filter finds them'

function* eachPassing({ dates }: Reads, passes: Test): Generator<RecordDates> {
  for (const row of dates.eachDates()) if (passes(row)) yield row
}

function testOfDates({ status, since }: RecordFilters): Test {
  if (status !== undefined && status !== 'present' && status !== 'removed')
    throw new MirrorError('usage', `--status takes present or removed, not ${status.slice(0, 100)}`)
  const now = Date.now()
  const at = since === undefined ? 0 : readSince(since, now)
  if (at === null)
    throw new MirrorError('usage', `--since ${since}${missingUnit(since ?? '')} is none of: ${SINCE_FORMS}`)
  if (at > now) throw new MirrorError('usage', `--since ${since} is in the future`)
  return (row) => row.firstSeen >= at && (status === undefined || isOnMirror(row) === (status === 'present'))
}

/** Tests by the index of packages: which records name a CVE, a package, an ecosystem. */
function testOfIndex({ config, reads, index, useIndex }: ChosenFrom, filters: RecordFilters): Test {
  const { cve, package: name, ecosystem } = filters
  if (cve === undefined && name === undefined && ecosystem === undefined) return () => true
  if (index.missing !== null) throw new MirrorError('not_ready', noIndex(index.missing))
  needPackageIndex(config, reads, index)
  const inUse = createViewsInUse(config.data.dir, null, null)
  const named = closing(inUse, () => {
    try {
      const views = inUse.current()
      useIndex(views.info.snapshot)
      return [
        ...(cve === undefined ? [] : [new Set([cve.toUpperCase(), ...views.listAliasIds(cve, '', MOST_NAMED)])]),
        ...(name === undefined ? [] : [new Set(views.listNamed(name, '', MOST_NAMED).map(({ id }) => id))]),
        ...(ecosystem === undefined ? [] : [idsIn(config, reads, views, ecosystem)]),
      ]
    } catch (error) {
      if (!(error instanceof MirrorError) || error.code !== 'not_ready') throw error
      throw new MirrorError('not_ready', noIndex(null), { cause: error })
    }
  })
  const isFit = (id: string): boolean => named.every((ids) => ids.has(id))
  if (![...(named[0] ?? [])].some((id) => isFit(id) && reads.osv.readEntry(id) !== null)) refuseMissing(reads, filters)
  return ({ id }) => isFit(id)
}

/** Throws `not_ready` where records that are not stored may fit what no stored one does. */
function refuseMissing(reads: Reads, { cve, ecosystem }: RecordFilters): void {
  const missing = cve === undefined ? null : findMissingNamed(reads, cve)
  const why = missing?.message ?? whyNotAllSearched(reads, ecosystem ?? null)
  if (why !== null) throw new MirrorError('not_ready', `no record that is stored fits; ${why}`)
}

/** Returns the ids of the records in the view of an ecosystem. */
function idsIn(config: Config, { dates }: Reads, views: Views, ecosystem: string): Set<string> {
  if (!views.hasView(ecosystem)) refuseUnknown(config, views, ecosystem)
  const ids = new Set<string>()
  for (const { id } of dates.eachDates()) if (views.listViewsOf(id).includes(ecosystem)) ids.add(id)
  return ids
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

/** Tests by what a record says of its severity, which is read for each that is left. */
function testOfSeverity(reads: Reads, given: string | undefined, unknown: { severities: number }): Test {
  if (given === undefined) return () => true
  const levels = given.split(',').map((one) => one.trim())
  const wrong = levels.find((one) => !isLevel(one))
  if (wrong !== undefined)
    throw new MirrorError('usage', `--severity takes ${LEVELS.join(', ')}, not ${wrong.slice(0, 100)}`)
  return (row) => {
    const level = levelOfRecord(reads, row.id)
    if (level === null && isOnMirror(row)) unknown.severities++
    return level !== null && levels.includes(level)
  }
}

function isLevel(text: string): text is Level {
  return LEVELS.some((level) => level === text)
}

/** Null: the record states none, is not stored, or is no JSON. */
function levelOfRecord({ osv }: Reads, id: string): Level | null {
  const row = osv.readRecord(id)
  if (row === null) return null
  try {
    const record: unknown = JSON.parse(jsonTextOf(contentOf(row.body, row.size)))
    return isObject(record) ? severityOf(record).level : null
  } catch {
    return null // its bytes are served as upstream has them
  }
}
