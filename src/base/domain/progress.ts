import type { RunProgress } from '../reports/runs.ts'

/** What a run does in each phase. */
export const RUN_PHASES: Readonly<Record<RunProgress['phase'], string>> = {
  index: 'requesting the index',
  archive: 'downloading the archive',
  ranges: 'comparing by ranges',
  records: 'requesting records',
  ingest: 'storing records',
  publish: 'publishing',
  feeds: 'requesting feeds',
  lists: 'walking lists',
  items: 'requesting items and artifacts',
}

/** Progress of an export or an import. `total` null: unknown. */
export interface BundleProgress {
  phase:
    | 'summary'
    | 'write'
    | 'check'
    | 'upload'
    | 'download'
    | 'verify'
    | 'stage'
    | 'rows'
    | 'records'
    | 'archive'
    | 'prove'
  unit: 'bytes' | 'rows' | 'records' | 'documents'
  done: number
  total: number | null
}

/** Called as the work progresses, at most some hundred times a second. */
export type OnProgress = (progress: BundleProgress) => void

/** Says how far a run is: `storing records: 1200 of 5000 records`, and why it waits to repeat a request. */
export function describeRunProgress(progress: RunProgress): string {
  const { retry } = progress
  return describePhase(progress) + (retry === undefined ? '' : `; ${describeRetry(retry)}`)
}

/** Says that a request is repeated, and why. */
export function describeRetry({ reason }: NonNullable<RunProgress['retry']>): string {
  return `a request failed and is repeated: ${reason}`
}

function describePhase(progress: RunProgress): string {
  const { phase, unit, done, total } = progress
  const words = RUN_PHASES[phase]
  if (total !== null) return `${words}: ${amountOf(progress)}`
  if (done === 0) return words
  return `${words}: ${unit === 'bytes' ? megabytes(done) : `${done} ${unit}`}`
}

/** Returns how much of how much is done. */
export function amountOf({
  unit,
  done,
  total,
}: Pick<RunProgress, 'done' | 'total'> & { readonly unit: string }): string {
  if (unit === 'bytes') return `${megabytes(done)} of ${megabytes(total ?? done)}`
  return `${done} of ${total ?? '?'} ${unit}`
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}
