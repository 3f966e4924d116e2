/** Progress of one phase of a run; of records and items `done` counts requests that failed too. `total` is null while unknown. */
export interface RunProgress {
  readonly phase: keyof typeof RUN_PHASES
  readonly unit: 'bytes' | 'records' | 'documents' | 'items'
  readonly done: number
  readonly total: number | null
  /** Why a request failed that is about to be repeated, and the time of its next attempt, ISO 8601; not given otherwise. */
  readonly retry?: { readonly reason: string; readonly nextAt: string }
}

/** What a run does in each phase. */
export const RUN_PHASES = {
  index: 'requesting the index',
  archive: 'downloading the archive',
  ranges: 'comparing by ranges',
  records: 'requesting records',
  ingest: 'storing records',
  publish: 'publishing',
  feeds: 'requesting feeds',
  lists: 'walking lists',
  items: 'requesting items and artifacts',
} as const

/** Progress of an export or an import. `total` null: unknown. */
export interface BundleProgress {
  phase: 'summary' | 'write' | 'check' | 'verify' | 'stage' | 'rows' | 'records' | 'archive' | 'prove'
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
