import type { Run } from '../../../../store/runs/runs.ts'

/**
 * What came of a run, as the log proves it. `complete`: it ended well, and whether it changed anything is not known, because no
 * run before it is known.
 */
export type Outcome = 'changed' | 'unchanged' | 'complete' | Exclude<Run['state'], 'complete'>

/** A run with what came of it. */
export interface JudgedRun {
  readonly run: Run
  readonly outcome: Outcome
}

/** Judges runs, newest first: one that ended well has changed something where its snapshot is not that of the one before. */
export function judgeRuns(runs: readonly Run[]): JudgedRun[] {
  const before = new Map<string, string>()
  const judged = runs.toReversed().map((run): JudgedRun => {
    const earlier = before.get(run.source)
    const hasPublished = run.state === 'complete' || run.state === 'partial'
    if (hasPublished && run.snapshot !== null) before.set(run.source, run.snapshot)
    return { run, outcome: run.state === 'complete' ? outcomeOf(run.snapshot, earlier) : run.state }
  })
  return judged.reverse()
}

function outcomeOf(snapshot: string | null, earlier: string | undefined): Outcome {
  if (snapshot === null || earlier === undefined) return 'complete'
  return snapshot === earlier ? 'unchanged' : 'changed'
}

/** A line of the run log: a run, or several in a row that changed nothing. */
export type RunLine = JudgedRun | { readonly unchanged: readonly Run[] }

/** Puts runs that changed nothing and follow each other into one line. */
export function groupUnchanged(runs: readonly JudgedRun[]): RunLine[] {
  const lines: RunLine[] = []
  let quiet: Run[] = []
  const endGroup = (): void => {
    const [only] = quiet
    if (only !== undefined) lines.push(quiet.length > 1 ? { unchanged: quiet } : { run: only, outcome: 'unchanged' })
    quiet = []
  }
  for (const one of runs) {
    if (one.outcome === 'unchanged') {
      quiet.push(one.run)
      continue
    }
    endGroup()
    lines.push(one)
  }
  endGroup()
  return lines
}
