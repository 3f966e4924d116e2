import { rmSync } from 'node:fs'
import { basename } from 'node:path'
import { rebuildLostArchive } from '../../archive/build.ts'
import { repairRecords } from '../../archive/repair.ts'
import { MirrorError } from '../../base/errors.ts'
import { counted } from '../../base/text.ts'
import { closing } from '../../base/closing.ts'
import { withWrites } from '../store-writes.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { damageAdvice, nameStorageError } from '../../store/database/faults.ts'
import { acquireLock } from '../../store/database/lock.ts'
import { type InspectedDatabase, inspectOthers, describeDamage } from '../../store/database/inspect.ts'
import { databasePath, inboxPath, openReader } from '../../store/database/open.ts'
import type { Writes } from '../../store/writes.ts'
import { whyUnread } from '../../store/database/unread.ts'
import type { Run } from '../../store/runs/runs.ts'
import { noteRepaired } from '../../store/notes.ts'
import {
  type VerifyReport,
  damageIn,
  isArchiveAlone,
  isArchiveDamaged,
  isCatalogDamaged,
  isSoundVerdict,
  noteVerified,
  repairRequests,
  reportOfUnread,
} from '../../sync/verify/report.ts'
import { verifyStore } from '../../sync/verify/verify.ts'
import { type SourceName, SWITCHES, activeSources, maySync } from '../../base/domain/sources.ts'
import { checkDerived, loadDerived } from '../../daemon/derived.ts'
import type { DerivedData, Feature } from '../../daemon/feature.ts'
import { createProgress } from '../progress.ts'
import { type GlobalOptions, print, printJson, settings, sourceFiles } from '../context.ts'
import { withRunner } from '../runner.ts'
import { finishReplacing, keptAs, listRepairLeft } from '../../store/salvage.ts'
import { continueRepair, moveDamaged, rebuildMirror } from './rebuild.ts'
import { describe, runsExitCode } from './sync.ts'

/** Options of `patchmirror doctor --data`. */
interface VerifyOptions extends GlobalOptions {
  repair?: boolean
  json?: boolean
}

/**
 * `patchmirror doctor --data [--repair]`: exits with 0 when everything is valid or was repaired, 1 when not, 3 when nothing
 * is there yet, and when a mirror without upstream waits for a bundle.
 */
export async function verifyCommand(options: VerifyOptions, features: readonly Feature[]): Promise<number> {
  const derived = await loadDerived(features)
  const loaded = settings(options, false, [])
  const { dir } = loaded.config.data
  const aside = options.repair === true ? finishReplacing(dir) : null
  if (aside !== null && options.json !== true) print(keptAs(aside))
  const others = inspectOthers(dir).filter(({ faults }) => faults.length > 0)
  const report = await examine(dir)
  const damagedData = checkDerived(derived, dir)
  const views = damagedData.map(({ kind, fault }) => ({ kind, fault }))
  const inDerived = damagedData.map(({ name, fault }) => `${name}: ${fault}`)
  const damaged = [...damageIn(report), ...inDerived, ...others.map(describeDamage)]
  noteVerified(dir, damaged, Date.now()) // at once: a daemon makes damaged views again
  if (options.json === true) printJson({ ...report, views, others })
  else printFindings(report, inDerived, others)
  const isSound = isSoundVerdict(report)
  const left = sourcesLeft(loaded, report)
  if (options.repair === true) removeDamaged(dir, others)
  if (isSound && report.sources.length === 0 && left.length === 0) return 3 // nothing was there to verify
  if (options.repair === true) {
    // Neither that nor the rebuilding of derived data needs a connection.
    const dropped = report.structure.length === 0 ? await dropVersions(loaded, report) : null
    if (dropped !== null && options.json !== true) print(dropped)
    const rest = await repairHere(dir, report, options.json === true ? () => undefined : print)
    return repair(withSettings(options, loaded, rest, left), { report: rest, left, features })
  }
  const isWhole = left.length === 0 && isSound && views.length === 0 && report.damagedVersions.length === 0
  if (isWhole && others.length === 0) return 0
  const advice = [...describeLeft(left), ...allAdvice(loaded, report, others)]
  if (options.json !== true) for (const line of advice) print(line)
  return 1
}

/** Returns what a repair that was interrupted has not mirrored again; below a gap one bundle ends it. */
function sourcesLeft({ config }: LoadedConfig, report: VerifyReport): readonly SourceName[] {
  if (report.structure.length > 0) return []
  const db = openReader(config.data.dir)
  const left = db === null ? [] : closing(db, () => listRepairLeft(db))
  if (!maySync(config)) return report.sources.length === 0 ? left : []
  const active = activeSources(config)
  return left.filter((source) => active.includes(source))
}

function describeLeft(left: readonly SourceName[]): string[] {
  if (left.length === 0) return []
  const names = left.join(', ')
  return [
    `a repair was interrupted: not mirrored again yet: ${names}. "patchmirror doctor --data --repair" goes on with it`,
  ]
}

/** The settings that a repair needs: those of an upstream where it fetches, and where there is one. */
function withSettings(
  options: VerifyOptions,
  loaded: LoadedConfig,
  report: VerifyReport,
  left: readonly SourceName[],
): LoadedConfig {
  const isDamaged = !isSoundVerdict(report)
  const fetches = (isDamaged || left.length > 0) && maySync(loaded.config)
  return fetches ? settings(options, true, repairFiles(report, left)) : loaded
}

function printFindings(report: VerifyReport, inDerived: readonly string[], others: readonly InspectedDatabase[]): void {
  for (const line of [describeReport(report), ...inDerived]) print(line)
  for (const other of others) print(describeDamage(other))
}

function allAdvice(loaded: LoadedConfig, report: VerifyReport, others: readonly InspectedDatabase[]): string[] {
  const own = others.map(({ path }) => `${basename(path)}: ${damageAdvice(path)}`)
  return others.length > 0 && isSoundVerdict(report) ? own : [adviceFor(loaded, report), ...own]
}

/** Removes the other databases that are damaged: what they hold is made again, or comes again. */
function removeDamaged(dataDir: string, others: readonly InspectedDatabase[]): void {
  for (const { path } of others) {
    if (path === inboxPath(dataDir)) moveDamaged(dataDir, path)
    else {
      for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true })
      print(`${basename(path)} is removed: the daemon makes it again`)
    }
    noteRepaired(dataDir, `${basename(path)}: `)
  }
}

/** The files that fetching what is damaged again needs; a database that cannot be read is mirrored again as a whole. */
function repairFiles(report: VerifyReport, left: readonly SourceName[]): readonly string[] {
  return sourceFiles(isCatalogDamaged(report) || left.length > 0 || report.structure.length > 0 ? [] : ['osv', 'feeds'])
}

function adviceFor({ config }: LoadedConfig, report: VerifyReport): string {
  if (report.structure.length > 0) return damageAdvice(databasePath(config.data.dir))
  const versions =
    report.damagedVersions.length === 0
      ? ''
      : '; it removes damaged superseded versions, which nothing brings back: differences to them are not described any more'
  if (isSoundVerdict(report)) {
    const what = versions === '' ? 'to rebuild it' : `where damage is to be removed${versions}`
    return `run "patchmirror doctor --data --repair" ${what}`
  }
  if (isArchiveAlone(report)) return 'run "patchmirror doctor --data --repair" to rebuild the archive from the records'
  if (maySync(config)) return `run "patchmirror doctor --data --repair" to fetch what is damaged again${versions}`
  return config.fleet.url === null ? NO_UPSTREAM : damageAdvice(databasePath(config.data.dir))
}

const NO_UPSTREAM =
  'there is no upstream here: "patchmirror bundle import --again FILE" writes the content of a full bundle again'

/** What is damaged, and what an interrupted repair left. */
interface ToRepair {
  readonly report: VerifyReport
  readonly left: readonly SourceName[]
  readonly features: readonly Feature[]
}

/** Repairs the stored data first, then what is derived from it. */
async function repair(loaded: LoadedConfig, { report, left, features }: ToRepair): Promise<number> {
  const hasUpstream = maySync(loaded.config)
  const isFilled = !hasUpstream && loaded.config.fleet.url !== null // a fleet brings all or nothing
  const repairAll = (): Promise<number> =>
    report.structure.length > 0 || isFilled ? rebuildMirror(loaded, features) : repairSource(loaded, features, report)
  if (!hasUpstream && !isFilled && report.structure.length === 0 && !isSoundVerdict(report)) {
    throw new MirrorError('config', `upstream.apiRoot is not set, and ${NO_UPSTREAM}`)
  }
  const repaired = isSoundVerdict(report) ? 0 : await repairAll()
  const code = left.length === 0 ? repaired : await continueRepair(loaded, features, left)
  await renewDerived(loaded, await loadDerived(features))
  return Math.max(code, repaired)
}

/** Removes superseded versions whose bytes are damaged, since upstream does not have them any more, and says so; null: there are none. */
async function dropVersions({ config }: LoadedConfig, { damagedVersions }: VerifyReport): Promise<string | null> {
  if (damagedVersions.length === 0) return null
  await withWrites(config.data.dir, (store) => {
    store.changes.dropVersions(damagedVersions)
  })
  noteRepaired(config.data.dir, 'superseded version ')
  return `${counted(damagedVersions.length, 'damaged superseded version')} removed`
}

/**
 * Puts damaged records back from the archive, then rebuilds a damaged archive from the records: neither needs an upstream. Returns what is
 * damaged after that: the given report where nothing was done.
 */
async function repairHere(dataDir: string, report: VerifyReport, say: (text: string) => void): Promise<VerifyReport> {
  if (report.structure.length > 0) return report
  let rest = report
  const ids = rest.damagedRecords
  if (ids.length > 0)
    rest = await repairedBy(dataDir, rest, async ({ osv }) => {
      const repaired = await repairRecords(osv, dataDir, ids)
      if (repaired > 0) say(`${counted(repaired, 'damaged record')} put back from the archive`)
      return repaired > 0
    })
  if (rest.damagedRecords.length > 0 || !isArchiveDamaged(rest)) return rest
  return repairedBy(dataDir, rest, async ({ osv }) => {
    const isRebuilt = await rebuildLostArchive(osv, dataDir, true)
    if (isRebuilt) say('the archive is rebuilt from the stored records')
    return isRebuilt
  })
}

/** Returns what is damaged after some work, which returns whether it changed anything. */
async function repairedBy(
  dataDir: string,
  report: VerifyReport,
  work: (store: Writes) => Promise<boolean>,
): Promise<VerifyReport> {
  const lock = acquireLock(dataDir, 'sync')
  try {
    if (!(await withWrites(dataDir, work))) return report
  } catch (error) {
    if (error instanceof MirrorError && (error.code === 'corrupt' || error.code === 'proof')) return report
    throw error
  } finally {
    lock.release()
  }
  const rest = await examine(dataDir)
  noteVerified(dataDir, damageIn(rest), Date.now())
  return rest
}

/** Makes damaged data again that is derived from the store, so that nothing is fetched. */
async function renewDerived({ config }: LoadedConfig, derived: readonly DerivedData[]): Promise<void> {
  for (const { name, makeAgain } of checkDerived(derived, config.data.dir)) {
    await makeAgain(config)
    print(`${name}: rebuilt`)
  }
}

/** A database too damaged to be read at all is a finding too. */
async function examine(dataDir: string): Promise<VerifyReport> {
  try {
    const db = openReader(dataDir)
    if (db === null) throw whyUnread(dataDir, `nothing is mirrored yet in ${dataDir}`)
    return await closing(db, () => verifyStore(db, dataDir))
  } catch (error) {
    return reportOfUnread(nameStorageError(error, dataDir))
  }
}

function describeReport(report: VerifyReport): string {
  const { catalog } = report
  const versions = named(
    report.damagedVersions.map(
      ({ id, log }) =>
        `superseded version of record ${id}, replaced by the snapshot of entry ${log} in the log of changes: damaged or lost`,
    ),
  )
  if (isSoundVerdict(report)) return [describeSound(report), ...versions].join('\n')
  const lines = [
    ...report.structure.map((line) => `database: ${line}`),
    ...named(report.damagedRecords.map((id) => `record ${id}: damaged or lost`)),
    ...versions,
    ...report.damagedDocuments.map((path) => `${path}: damaged`),
    ...[...catalog.answers, ...catalog.lists].slice(0, 20).map((path) => `${path}: damaged`),
    ...catalog.documents.slice(0, 20).map((digest) => `document ${digest}: damaged or lost`),
    ...report.disagreements,
  ]
  return lines.join('\n')
}

/** Names what was verified: only what is mirrored. */
function describeSound({ sources, records, catalog }: VerifyReport): string {
  if (sources.length === 0) return 'nothing is mirrored yet: no source has a snapshot, so there is nothing to verify'
  const osv = sources.includes('osv')
  const feeds = sources.includes('feeds')
  const { entries, answers, documents } = catalog.checked
  const parts = [
    ...(osv ? [counted(records, 'record'), 'the index'] : []),
    ...(feeds ? ['the feeds'] : []),
    ...(osv ? ['the archive'] : []),
  ]
  if (sources.includes('catalog') || sources.includes('identity'))
    parts.push(
      counted(entries, 'listed item'),
      counted(answers, 'answer'),
      `${counted(documents, 'document')} of the catalog`,
    )
  return `${new Intl.ListFormat('en-GB').format(parts)} are sound`
}

/** The first lines, and how many more there are. */
function named(lines: readonly string[]): string[] {
  return lines.length <= 20 ? [...lines] : [...lines.slice(0, 20), `… and ${lines.length - 20} more`]
}

/** Fetches the damaged parts again; all else stays as it is and keeps being served meanwhile. */
async function repairSource(loaded: LoadedConfig, features: readonly Feature[], report: VerifyReport): Promise<number> {
  const display = createProgress(false)
  const reports = await withRunner(loaded, features, display.show, async (runner) => {
    const done: Run[] = []
    for (const request of repairRequests(report, loaded.config, 'command')) done.push(await runner.run(request))
    return done
  })
  if (isCatalogDamaged(report) && !activeSources(loaded.config).includes('catalog'))
    print(`what is damaged of the catalog was not fetched again: ${SWITCHES.catalog}`)
  display.finish()
  for (const report of reports) print(describe(report))
  const after = await examine(loaded.config.data.dir)
  print(describeReport(after))
  noteVerified(loaded.config.data.dir, damageIn(after), Date.now())
  return isSoundVerdict(after) ? 0 : Math.max(1, runsExitCode(reports))
}
