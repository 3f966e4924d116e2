import { messageOf } from '../../base/errors.ts'
import { announceFindings } from '../../store/findings/message.ts'
import type { FindingsReads } from '../../store/findings/reads.ts'
import type { Reads } from '../../store/reads.ts'
import type { RelayOutbox } from '../../store/webhooks/outbox.ts'
import { isDue } from './delivery-rule.ts'
import { findingsMessage } from './message.ts'

/** What the events about findings are collected with. */
export interface FindingsDeps {
  readonly settings: { readonly targets: readonly string[]; readonly events: readonly string[] }
  readonly outbox: Pick<RelayOutbox, 'cursors' | 'passOnLog'>
  /** Reads the findings of tags; null where there are none. */
  readonly findings: <T>(use: (reads: FindingsReads) => T) => T | null
  /** Whether `/-/tags/changes` is served now: what changed is announced when it is. */
  readonly servesFindings: () => boolean
  /** Unix milliseconds. */
  readonly now: () => number
  readonly onFault: (message: string) => void
}

/** Pause after the findings could not be read, milliseconds: they delay no other event. */
const RETRY_MS = 30_000

/**
 * Creates what adds changed findings of tags to the outbox. Their database is another file, which is opened for it: only at the
 * start and after `judged` is there anything to look for.
 */
export function createFindingsCollector(deps: FindingsDeps) {
  const { settings, outbox, findings, servesFindings, now, onFault } = deps
  const isWanted = settings.targets.length > 0 && settings.events.includes('findings')
  let waits = true
  let isDeferred = false
  let retryAt = -Infinity
  return {
    /** The tags were judged again. */
    judged: (): void => void ([waits, isDeferred, retryAt] = [true, false, -Infinity]),
    collect(store: Pick<Reads, 'secrets'>): void {
      if (!waits || !isDue(retryAt, now(), RETRY_MS)) return
      if (isDeferred && !servesFindings()) return
      try {
        if (!isWanted)
          outbox.cursors.findings.forget() // what changes meanwhile is never announced
        else if (findings((reads) => collectFrom(deps, reads, store.secrets.readInstance())) === 'deferred')
          return void (isDeferred = true)
        waits = false
      } catch (error) {
        retryAt = now() + RETRY_MS
        onFault(`what changed in the findings of tags is not passed on: ${messageOf(error)}`)
      }
    },
  }
}

/**
 * Adds what was logged since the last time. A log that was not followed yet is skipped to its end: that of a new database, and
 * that from before these events were wanted. A target gets nothing from before it was added. While the findings are not
 * served, all of this is noted, and nothing is added.
 */
function collectFrom(
  { outbox, servesFindings, now }: FindingsDeps,
  reads: FindingsReads,
  mirror: string,
): 'collected' | 'deferred' {
  const state = reads.readState()
  if (state === null) return 'collected'
  const { instance } = state
  const cursor = outbox.cursors.findings
  const last = reads.lastLog()
  const known = cursor.read(instance)
  if (known === null || known > last) cursor.skipTo(instance, last)
  if (cursor.hasNewTargets()) cursor.place(last)
  if (!servesFindings()) return 'deferred'
  for (const part of announceFindings(reads, cursor.read(instance) ?? last)) {
    const message = { ...findingsMessage(mirror, part), deliver: true, log: part.last }
    outbox.passOnLog('findings', { messages: [message], instance, end: part.last }, now())
  }
  return 'collected'
}
