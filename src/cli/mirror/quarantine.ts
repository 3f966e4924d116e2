import { withWrites } from '../store-access.ts'
import { MirrorError } from '../../core/errors.ts'
import { operatorName } from '../../domain/run-facts.ts'
import type { Quarantine } from '../../store/runs/quarantine.ts'
import { type Writes } from '../../store/writer.ts'
import { createProgress } from '../progress.ts'
import {
  type GlobalOptions,
  SERVICE_FILES,
  print,
  printJson,
  settings,
  withRunner,
} from '../runner.ts'
import { describe, runsExitCode } from './sync.ts'

/** Options of `patchmirror approve` and `patchmirror reject`. */
interface DecisionOptions extends GlobalOptions {
  json?: boolean
}

/** `patchmirror approve RUN`: lets in exactly what that run refused. */
export async function approveCommand(run: string, options: DecisionOptions): Promise<number> {
  const display = createProgress(options.json === true)
  const report = await withRunner(
    settings(options, true, SERVICE_FILES),
    display.show,
    async (runner, store) => {
      const approved = openQuarantine(store, run, true)
      const { source } = approved
      const done = await runner.run({ source, kind: 'approve', trigger: 'command', approved })
      // Quarantined: upstream serves something else by now than what was approved.
      if (done.state !== 'failed' && done.state !== 'quarantined') {
        await store.exclusive(() => decide(store, approved.runId, 'approved'))
      } else if (store.quarantine.readQuarantine(approved.runId)?.decision === 'approved') {
        // What it would remove; the records that it would change need an approval of their own.
        await store.exclusive(() => { store.runs.recordDecision(approved.runId, 'approved', operatorName()) }) // prettier-ignore
      }
      return done
    },
  )
  display.finish()
  if (options.json === true) printJson(report)
  else print(describe(report))
  return runsExitCode([report])
}

/** `patchmirror reject RUN`: the refused version stays refused, also when upstream offers it again. */
export async function rejectCommand(run: string, options: DecisionOptions): Promise<number> {
  const { config } = settings(options, false, [])
  const { runId, reason } = await withWrites(config.data.dir, (store) => {
    const open = openQuarantine(store, run, false)
    decide(store, open.runId, 'rejected')
    return open
  })
  if (options.json === true) printJson({ run: runId, decision: 'rejected', reason })
  else print(`run ${runId} rejected (${reason}); the snapshot before it keeps serving`)
  return 0
}

/** Stores a decision, and in the run who made it. */
function decide(store: Writes, runId: number, decision: 'approved' | 'rejected'): void {
  if (store.quarantine.decideQuarantine(runId, decision, Date.now()))
    store.runs.recordDecision(runId, decision, operatorName())
}

/** Returns the quarantine to decide about. `undo`: a rejected one may be decided again. */
function openQuarantine(store: Writes, text: string, undo: boolean): Quarantine {
  const runId = Number(text)
  if (!Number.isSafeInteger(runId) || runId < 1) {
    throw new MirrorError(
      'usage',
      `${text} is not a run number; "patchmirror status" names quarantined runs`,
    )
  }
  // A run that met what an earlier one had refused names that one.
  const earlier = Number(store.runs.readRun(runId)?.facts['quarantine'] ?? runId)
  const found = store.quarantine.readQuarantine(runId) ?? store.quarantine.readQuarantine(earlier)
  if (found === null) throw new MirrorError('usage', `run ${runId} has nothing in quarantine`)
  if (found.decision === null || (undo && found.decision === 'rejected')) return found
  throw new MirrorError('usage', `what run ${runId} refused is settled already: ${found.decision}`)
}
