import type { OutboxReads, RelayTarget } from '../../store/webhooks/outbox.ts'

/** A changed state of a target, identified by its number: its URL may contain a token. */
export type RelayStateChange = Pick<RelayTarget, 'id' | 'state' | 'reason'>

/**
 * Returns a function that reports changed target states, each change once. Call it with the targets of the stored
 * attempts; states at the start are not reported.
 */
export function createStateChanges(
  outbox: Pick<OutboxReads, 'listTargets'>,
  onTurn: (turn: RelayStateChange) => void,
): (ids: ReadonlySet<number>) => void {
  const seen = new Map(outbox.listTargets().map(({ id, state }) => [id, state]))
  return (ids) => {
    for (const { id, state, reason } of outbox.listTargets()) {
      if (!ids.has(id) || seen.get(id) === state) continue
      seen.set(id, state)
      onTurn({ id, state, reason })
    }
  }
}
