import type { OutboxReads, RelayTarget } from '../store/outbox.ts'

/** A target has come to stand otherwise. It is known by its number: its URL may hold a token. */
export type RelayStateChange = Pick<RelayTarget, 'id' | 'state' | 'reason'>

/**
 * Tells when a target stands otherwise than it was last seen, once and not for each attempt. Call what this gives with the
 * targets of the attempts that were just written down; how targets stood before the start is no news.
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
