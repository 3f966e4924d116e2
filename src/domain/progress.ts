/** Progress of an export or an import. `total` null: unknown. */
export interface BundleProgress {
  phase:
    'summary' | 'write' | 'check' | 'verify' | 'stage' | 'rows' | 'records' | 'archive' | 'prove'
  unit: 'bytes' | 'rows' | 'records' | 'documents'
  done: number
  total: number | null
}

/** Called as the work progresses, at most some hundred times a second. */
export type OnProgress = (progress: BundleProgress) => void
