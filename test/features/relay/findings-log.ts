import { closeFindings, openFindings, removeFindings } from '../../../src/store/findings/database.ts'
import type { FindingChange, LoggedFindings } from '../../../src/store/findings/reads.ts'
import { type FindingsStore, createFindingsStore } from '../../../src/store/findings/writes.ts'
import { NOW } from '../../store/fixtures.ts'

const STATE = { osv: 's0', osvAsOf: NOW, form: '1', generation: 'g1' }

/** Writes to the findings of tags as their judgement does, from another connection. */
export function writeFindings<T>(dir: string, work: (store: FindingsStore) => T): T {
  const db = openFindings(dir, () => undefined)
  try {
    return work(createFindingsStore(db))
  } finally {
    closeFindings(db)
  }
}

/** Stores the first judgement of all tags; a database that is there is made again. Returns the name of the log. */
export function beginFindings(dir: string): string {
  removeFindings(dir)
  return writeFindings(dir, (store) => {
    store.putRecordState(STATE)
    store.finishJudging('c0', NOW)
    return store.readState()?.instance.slice(0, 8) ?? ''
  })
}

/** Logs a change of each of these tags that a snapshot of the records caused: one fix, unless said otherwise. */
export function logFindings(
  dir: string,
  snapshot: string,
  tags: readonly string[],
  more: Partial<LoggedFindings> = {},
): void {
  const detail: FindingChange = ['fix', 'CVE-2026-1', 'openssl', '3.0.11', 1, '']
  const counts = { found: 0, foundFixable: 0, gone: 0, goneFixable: 0, fixes: 1, fixesGone: 0 }
  writeFindings(dir, (store) => {
    for (const name of tags)
      store.addLog({
        at: NOW,
        owner: `tag-${name}`,
        name,
        cause: 'records',
        snapshot,
        ...counts,
        findings: 3,
        fixable: 1,
        details: [detail],
        ...more,
      })
  })
}
