import type { Feature } from '../../daemon/feature.ts'
import { withWrites } from '../store-writes.ts'
import type { Config } from '../../config/schema.ts'
import { MirrorError } from '../../base/errors.ts'
import { wholeNumber } from '../../base/text.ts'
import { operatorName } from '../../base/domain/run-facts.ts'
import { hasUnreadDatabase } from '../../store/database/unread.ts'
import { type Reads, withReads } from '../../store/reads.ts'
import { type Quarantine, refusedBy } from '../../store/runs/quarantine.ts'
import { otherSettings } from '../../store/runs/run-scope.ts'
import type { Run } from '../../store/runs/runs.ts'
import { createProgress } from '../progress.ts'
import { type GlobalOptions, SERVICE_FILES, loadSettings, print, printJson, settings } from '../context.ts'
import { withRunner } from '../runner.ts'
import { describe, runsExitCode } from './sync.ts'

/** Options of `patchmirror approve` and `patchmirror reject`. */
interface DecisionOptions extends GlobalOptions {
  json?: boolean
}

/** `patchmirror approve RUN`: lets in exactly what that run refused, or ends the warning of a run that published doubtful changes. */
export async function approveCommand(
  run: string,
  options: DecisionOptions,
  features: readonly Feature[],
): Promise<number> {
  const { config } = loadSettings(options, false, [])
  if (await isDoubtful(config, run)) return acknowledge(run, options)
  const before = withReads(config.data.dir, (reads) => approvedBefore(reads, run))
  if (before !== null) return sayApproved(before, options)
  const display = createProgress(options.json === true)
  const loaded = settings(options, true, SERVICE_FILES)
  requireChange(loaded.config, run)
  const report = await withRunner(loaded, features, display.show, async (runner, store) => {
    const approved = refusedChange(store, run)
    const { source } = approved
    refuseOtherSettings(store, loaded.config, approved)
    const done = await runner.run({ source, kind: 'approve', trigger: 'command', approved })
    const { runId } = approved
    // Quarantined: upstream serves something else by now than what was approved.
    if (done.state !== 'failed' && done.state !== 'quarantined')
      await store.exclusive(() => store.quarantine.decideQuarantine(runId, 'approved', Date.now()))
    return done
  })
  display.finish()
  if (options.json === true) printJson(report)
  else print(describe(report))
  return runsExitCode([report])
}

/** Returns the approved change of a run, which leaves nothing to do; null: it has none. Throws `usage`. */
function approvedBefore(reads: RefusalReads, text: string): Quarantine | null {
  const found = changeOf(reads, runNumber(text))
  return found?.decision === 'approved' ? found : null
}

function sayApproved({ runId, reason }: Quarantine, options: DecisionOptions): number {
  if (options.json === true) printJson({ run: runId, decision: 'approved', reason })
  else print(`run ${runId} is approved already (${reason})`)
  return 0
}

/** Throws `usage` where the refused run used other settings of its scope: with these it would change something else. */
function refuseOtherSettings(
  { runs }: Pick<RefusalReads, 'runs'>,
  config: Config,
  { runId, source }: Quarantine,
): void {
  const digests = runs.readRun(runId)?.facts['scopeSettings']
  const keys = Array.isArray(digests) ? otherSettings(digests, config, source) : []
  if (keys.length > 0)
    throw new MirrorError(
      'usage',
      `run ${runId} used another ${keys.join(', ')} than this command has, and approves nothing else: give the settings of that run, or sync with these`,
    )
}

/** `patchmirror reject RUN`: the refused version stays refused, also when upstream offers it again. */
export async function rejectCommand(run: string, options: DecisionOptions): Promise<number> {
  const { config } = settings(options, false, [])
  requireChange(config, run)
  const { runId, reason, decision } = await withWrites(config.data.dir, (store) => {
    const found = refusedChange(store, run)
    if (found.decision === null) store.quarantine.decideQuarantine(found.runId, 'rejected', Date.now())
    return found
  })
  if (options.json === true) printJson({ run: runId, decision: 'rejected', reason })
  else if (decision === 'rejected') print(`run ${runId} is rejected already (${reason})`)
  else print(`run ${runId} rejected (${reason}); the snapshot before it keeps serving`)
  return 0
}

/** Reports whether a run published what should not be believed. */
async function isDoubtful({ data: { dir } }: Config, run: string): Promise<boolean> {
  const look = (reads: Pick<RefusalReads, 'runs'>): boolean => doubtfulRun(reads, run) !== null
  return hasUnreadDatabase(dir) ? withWrites(dir, look) : (withReads(dir, look) ?? false)
}

/** Records that somebody has looked at the doubtful changes that the run published. */
async function acknowledge(run: string, options: DecisionOptions): Promise<number> {
  const { config } = settings(options, false, [])
  const { dir } = config.data
  const acknowledged = await withWrites(dir, (store) => {
    const found = doubtfulRun(store, run)
    if (found !== null && !isAcknowledged(found)) store.runs.recordDecision(found.id, 'acknowledged', operatorName())
    return found
  })
  if (acknowledged === null) throw nothingRan(dir, run)
  const { id, facts, message } = acknowledged
  if (options.json === true) printJson({ run: id, decision: 'acknowledged', message })
  else if (isAcknowledged({ facts })) print(`run ${id} is approved already: its warning has ended`)
  else
    print(
      `run ${id} approved, its warning ends: what it published stays, and lists of changes still mark it as doubtful`,
    )
  return 0
}

function isAcknowledged({ facts }: Pick<Run, 'facts'>): boolean {
  return facts['decision'] === 'acknowledged'
}

/** Returns a run that published what should not be believed; null: it did not, or there is none. Throws `usage`. */
function doubtfulRun({ runs }: Pick<RefusalReads, 'runs'>, text: string): Run | null {
  const run = runs.readRun(runNumber(text))
  const hasPublished = run?.state === 'complete' || run?.state === 'partial'
  return hasPublished && run.facts['doubts'] !== undefined && run.kind !== 'approve' ? run : null
}

type RefusalReads = Pick<Reads, 'runs' | 'quarantine'>

/**
 * Throws `not_found` where a run has nothing to decide about, before anything is opened for writing: that would create a
 * database where there is none.
 */
function requireChange({ data: { dir } }: Config, run: string): void {
  if (withReads(dir, (reads) => refusedChange(reads, run)) !== null || hasUnreadDatabase(dir)) return
  throw nothingRan(dir, run)
}

function nothingRan(dir: string, run: string): MirrorError {
  return new MirrorError('not_found', `there is no run ${runNumber(run)}: nothing has run yet in ${dir}`)
}

/** Returns the change to decide about: an open one, or a rejected one, which may be approved. Throws `usage` and `not_found`. */
function refusedChange(reads: RefusalReads, text: string): Quarantine {
  const { runs, quarantine } = reads
  const runId = runNumber(text)
  const run = runs.readRun(runId)
  const found = changeOf(reads, runId)
  if (found?.decision === null || found?.decision === 'rejected') return found
  if (run === null && found === null)
    throw new MirrorError('not_found', `there is no run ${runId}: "patchmirror runs" lists them`)
  const open = quarantine.listOpenQuarantines().map((one) => `run ${one.runId} of ${one.source}`)
  const waiting = open.length === 0 ? 'nothing else waits either' : `waiting: ${open.join(', ')}`
  const state =
    found === null
      ? `run ${runId} is ${run?.state}: nothing of it waits for a decision`
      : `what run ${runId} refused is settled already: ${found.decision}`
  throw new MirrorError('not_found', `${state}; ${waiting}`)
}

/** Returns what a run refused, be it decided about or not; null: nothing that is still stored. */
function changeOf({ runs, quarantine }: RefusalReads, runId: number): Quarantine | null {
  const run = runs.readRun(runId)
  return quarantine.readQuarantine(run === null ? runId : refusedBy(run))
}

function runNumber(text: string): number {
  const runId = wholeNumber(text)
  if (runId !== null) return runId
  throw new MirrorError('usage', `${text} is not a run number; "patchmirror status" names quarantined runs`)
}
