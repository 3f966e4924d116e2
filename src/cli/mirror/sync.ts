import { setTimeout as sleep } from 'node:timers/promises'
import type { Feature } from '../../daemon/feature.ts'
import { compareSettings } from '../../config/running/compare.ts'
import type { Config } from '../../config/schema.ts'
import { MirrorError } from '../../base/errors.ts'
import { counted } from '../../base/text.ts'
import type { SourceName } from '../../base/domain/sources.ts'
import { daemonSettings } from '../../store/database/daemon-settings.ts'
import { scopeKeys } from '../../store/runs/run-scope.ts'
import type { Run, RunOutcome } from '../../store/runs/runs.ts'
import type { RunRequest } from '../../sync/context.ts'
import type { Runner } from '../../sync/runner.ts'
import { servingDaemon } from '../../store/database/lock.ts'
import { visible } from '../output.ts'
import { createProgress } from '../progress.ts'
import { type GlobalOptions, loadSettings, print, printJson, settings, sourceFiles, warn } from '../context.ts'
import { parseSources, refuseReader, withRunner } from '../runner.ts'
import { unsyncedHere } from '../store-reads.ts'
import { statusOfOwnDaemon } from '../daemon-client.ts'

/** Options of `patchmirror sync`. */
interface SyncOptions extends GlobalOptions {
  full?: boolean
  reconcile?: boolean
  dryRun?: boolean
  json?: boolean
}

const EXIT: Record<RunOutcome, number> = {
  complete: 0,
  failed: 1,
  stopped: 1,
  partial: 3,
  quarantined: 4,
}
const WORST: readonly RunOutcome[] = ['failed', 'stopped', 'quarantined', 'partial', 'complete']

/** Exit code for several runs: that of the worst. */
export function runsExitCode(reports: readonly Run[]): number {
  const worst = WORST.find((state) => reports.some((report) => report.state === state))
  return EXIT[worst ?? 'complete']
}

/** Sources with a reconcile: all of them where none is named. */
const RECONCILED: readonly SourceName[] = ['osv', 'feeds', 'catalog']

/** `patchmirror sync`: one run of each source named, now, in this process. */
export async function syncCommand(
  given: string[],
  options: SyncOptions,
  features: readonly Feature[],
): Promise<number> {
  const names = given.flatMap((text) => text.split(',')).filter((name) => name !== '')
  const isReconcile = options.reconcile === true
  refuseReader(loadSettings(options, false, []).config) // it has no upstream, which would be asked for
  const loaded = settings(options, true, sourceFiles(isReconcile && names.length === 0 ? RECONCILED : names))
  const active = parseSources(names, loaded.config)
  const sources = isReconcile ? active.filter((source) => RECONCILED.includes(source)) : active
  if (names.length > 0 && sources.length < active.length)
    throw new MirrorError('usage', '--reconcile is for osv, feeds and catalog alone')
  const display = createProgress(options.json === true)
  const reports = await withRunner(loaded, features, display.show, (runner) => runAll(runner, sources, options))
  display.finish()
  const unsynced = names.length === 0 ? unsyncedHere(loaded.config) : []
  for (const text of unsynced) warn(`${text}; where it is not to be synced, name the others: ${NAMING}`)
  for (const text of otherThanDaemon(loaded.config, sources)) warn(text)
  if (options.dryRun !== true) await untilServed(loaded.config, reports)
  if (options.json === true) printJson(reports)
  else for (const report of reports) print(describe(report))
  const code = runsExitCode(reports)
  return code === EXIT.complete && unsynced.length > 0 ? EXIT.partial : code
}

/** Returns a sentence where the daemon of this data folder has other settings of what is mirrored: its next run goes by those. */
function otherThanDaemon(config: Config, sources: readonly SourceName[]): string[] {
  const used = daemonSettings(config.data.dir)
  if (used === null) return []
  const differ = new Set(compareSettings(used, config).restart)
  const keys = sources.flatMap((source) => scopeKeys(config, source)).filter((key) => differ.has(key))
  return keys.length === 0
    ? []
    : [`the running daemon has another ${keys.join(', ')}: its next run undoes what these change, restart it`]
}

/** How to sync without a warning that others are stored. */
const NAMING = '"patchmirror sync feeds osv"'

async function runAll(runner: Runner, sources: readonly SourceName[], options: SyncOptions): Promise<Run[]> {
  const reports: Run[] = []
  for (const source of sources) {
    const request: RunRequest = {
      source,
      kind: options.reconcile === true ? 'reconcile' : 'sync',
      trigger: 'command',
      full: options.full === true,
      dryRun: options.dryRun === true,
    }
    reports.push(await runner.run(request))
  }
  return reports
}

/** A run in one line, with what to do next where something is to be done. */
export function describe(report: Run): string {
  const { id, source, state, message, code, facts } = report
  const number = id === 0 ? 'dry run' : `run ${id}`
  const cost = `${counted(Number(facts['requests'] ?? 0), 'request')}, ${counted(Number(facts['bytes'] ?? 0), 'byte')}`
  const line = `${source}: ${state} (${number}, ${cost}): ${visible(message ?? code ?? '')}`
  const removed = removedLine(facts)
  if (state === 'partial' && id > 0) return `${line}${removed}\n  see why: patchmirror runs ${id}`
  if (code === 'upstream_unreachable') return `${line}\n  look for the cause: patchmirror doctor`
  if (state !== 'quarantined' || id === 0) return line + removed
  const run = Number(facts['quarantine'] ?? id)
  const see = `  see it: patchmirror runs ${run}`
  const letIn = `patchmirror approve ${run}`
  if (message?.includes('rejected before') === true)
    return `${line}\n  nothing is to do: it stays rejected until upstream serves something else\n${see}\n  let it in after all: ${letIn}`
  return `${line}\n${see}\n  let it in: ${letIn}\n  refuse it: patchmirror reject ${run}`
}

/** Removed paths or ids that a line names. */
const NAMED = 3

/** Names the first of what a run removed, or a dry run would, in a line of its own. */
function removedLine({ removedIds, plannedRemovedIds, removed, plannedRemoved }: Run['facts']): string {
  const ids = removedIds ?? plannedRemovedIds
  if (!Array.isArray(ids) || ids.length === 0) return ''
  const shown = ids.slice(0, NAMED).map((one) => visible(String(one)))
  const more = Number(removed ?? plannedRemoved ?? ids.length) - shown.length
  const word = removedIds === undefined ? 'would be removed' : 'removed'
  return `\n  ${word}: ${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** A daemon looks for commits each second; one that does not follow for so long has another trouble, milliseconds. */
const PATIENCE_MS = 15_000
const PAUSE_MS = 100

/** Waits until the daemon of this data folder, if one runs, serves what these runs published; warns when it does not. */
async function untilServed(config: Config, reports: readonly Run[]): Promise<void> {
  if (config.fleet.url !== null) return // it is served when the fleet has published it
  const end = performance.now() + PATIENCE_MS
  for (;;) {
    if (servingDaemon(config.data.dir) === null) return
    const status = await statusOfOwnDaemon(config)
    const behind = reports.filter(({ source, snapshot }) => {
      const served = status?.sources.find(({ name }) => name === source)?.served ?? null
      return status === null || served !== snapshot
    })
    if (behind.length === 0) return
    if (performance.now() > end) return warnUnserved(behind, status !== null)
    await sleep(PAUSE_MS)
  }
}

function warnUnserved(behind: readonly Run[], answers: boolean): void {
  const names = behind.map(({ source }) => source).join(', ')
  const why = answers ? 'see its log' : 'it does not answer'
  warn(`a daemon runs on this data folder, and does not serve the new snapshot of ${names} yet: ${why}`)
}
