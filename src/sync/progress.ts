import { messageOf } from '../base/errors.ts'
import { plainText } from '../base/text.ts'
import { toIso } from '../base/time.ts'
import type { RunProgress } from '../base/reports/runs.ts'
import type { SourceName } from '../base/domain/sources.ts'
import type { Run } from '../store/runs/runs.ts'
import type { OnRetry } from '../upstream/http/retry.ts'
import type { Progress } from './context.ts'

/** What is called as runs progress and end. */
interface RunCallbacks {
  readonly onProgress?: (progress: Progress) => void
  readonly onEnded?: (report: Run) => void
}

/** How long after its next attempt a repeated request is no longer shown, milliseconds: progress is seldom reported in between. */
const STALE_MS = 60_000

/** Creates callbacks that call the given ones and note how far the run of each source is, for the report on the mirror. */
export function noteProgress({ onProgress, onEnded }: RunCallbacks) {
  const noted = new Map<SourceName, RunProgress>()
  return {
    onProgress(progress: Progress): void {
      const { source, ...rest } = progress
      noted.set(source, rest)
      onProgress?.(progress)
    },
    onEnded(report: Run): void {
      noted.delete(report.source)
      onEnded?.(report)
    },
    /** The run of a source ended without a report; null: every run, since their thread ended. */
    onRunLost(source: SourceName | null): void {
      if (source === null) noted.clear()
      else noted.delete(source)
    },
    /** How far the run of a source is that this daemon has begun; null: none runs here, or it has reported nothing yet. */
    progressOf: (source: SourceName): RunProgress | null => {
      const progress = noted.get(source)
      if (progress?.retry === undefined) return progress ?? null
      const { retry, ...rest } = progress
      return Date.now() - Date.parse(retry.nextAt) > STALE_MS ? rest : progress
    },
  }
}

/** What the first requests of a source's run are for. */
const FIRST_PHASE: Readonly<Record<SourceName, Pick<RunProgress, 'phase' | 'unit'>>> = {
  osv: { phase: 'index', unit: 'records' },
  feeds: { phase: 'feeds', unit: 'documents' },
  catalog: { phase: 'lists', unit: 'items' },
  identity: { phase: 'lists', unit: 'items' },
}

/**
 * Returns what reports the progress of one run and the requests that it repeats: `onRetry` reports the last progress again,
 * with the failure, until the next progress.
 */
export function createRunProgress(
  source: SourceName,
  now: () => number,
  report: (progress: Progress) => void,
): { progress: (progress: Progress) => void; onRetry: OnRetry } {
  let last: Progress = { source, ...FIRST_PHASE[source], done: 0, total: null }
  return {
    progress(progress) {
      last = progress
      report(progress)
    },
    onRetry(error, waitMs) {
      const reason = plainText(messageOf(error))
      report({ ...last, retry: { reason, nextAt: toIso(now() + waitMs) } })
    },
  }
}
