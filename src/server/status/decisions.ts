import type { PinnedReads } from '../../store/reads.ts'
import type { ServerLog } from '../http/problems.ts'

/** Creates what logs decisions about refused changes that were made since the last look, by a command of another process. */
export function createDecisionLog(
  { live, commits }: Pick<PinnedReads, 'live' | 'commits'>,
  log: ServerLog | null,
): { look(): void } {
  let known: ReadonlyMap<number, string> | null = null
  let seen = -1
  return {
    look() {
      const current = commits()
      if (current === seen) return
      const decisions = live.quarantine.listDecisions()
      for (const { runId, source, decision, reason } of known === null ? [] : decisions) {
        if (known?.get(runId) === decision) continue
        const by = live.runs.readRun(runId)?.facts['decidedBy'] ?? null
        const user = typeof by === 'string' ? ` by ${by}` : ''
        log?.info({ source, run: runId, decision, by }, `${source}: run ${runId} was ${decision}${user}: ${reason}`)
      }
      known = new Map(decisions.map(({ runId, decision }) => [runId, decision]))
      seen = current
    },
  }
}
