/** How far an export or an import is. `total` null: unknown. */
export interface BundleProgress {
  phase:
    'summary' | 'write' | 'check' | 'verify' | 'stage' | 'rows' | 'records' | 'archive' | 'prove'
  unit: 'bytes' | 'rows' | 'records' | 'documents'
  done: number
  total: number | null
}

/** Told as the work goes; at most some hundred times a second. */
export type OnProgress = (progress: BundleProgress) => void
