import type { RunProgress } from '../domain/progress.ts'
import type { SourceName } from '../domain/sources.ts'
import type { Progress } from './context.ts'
import type { RunReport } from './runner.ts'

/** What is called as runs progress and end. */
interface RunCallbacks {
  readonly onProgress?: (progress: Progress) => void
  readonly onEnded?: (report: RunReport) => void
}

/** Creates callbacks that call the given ones and note how far the run of each source is, for the report on the mirror. */
export function noteProgress({ onProgress, onEnded }: RunCallbacks) {
  const noted = new Map<SourceName, RunProgress>()
  return {
    onProgress(progress: Progress): void {
      const { source, ...rest } = progress
      noted.set(source, rest)
      onProgress?.(progress)
    },
    onEnded(report: RunReport): void {
      noted.delete(report.source)
      onEnded?.(report)
    },
    /** The run of a source ended without a report; null: every run, since their thread ended. */
    onRunLost(source: SourceName | null): void {
      if (source === null) noted.clear()
      else noted.delete(source)
    },
    /** How far the run of a source is that this daemon has begun; null: none runs here, or it has reported nothing yet. */
    progressOf: (source: SourceName): RunProgress | null => noted.get(source) ?? null,
  }
}
