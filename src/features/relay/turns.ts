import type { RelayOutbox } from '../../store/webhooks/outbox.ts'

/** Dependencies of the turns. */
interface TurnDeps {
  readonly outbox: Pick<RelayOutbox, 'nextDueAt'>
  /** Whether another connection wrote since the last call. */
  readonly changed: () => boolean
  /** Unix milliseconds. */
  readonly now: () => number
}

/** Longest time between two turns, milliseconds. */
const LONGEST_MS = 60_000

/**
 * Tells when a turn may find something to do: others wrote, a delivery is due, the last turn failed or is a minute ago. A
 * clock that was changed is noticed by that minute.
 */
export function createTurns({ outbox, changed, now }: TurnDeps) {
  let dueAt = -Infinity
  let beganAt = -Infinity
  const isDue = (): boolean => {
    try {
      const at = now()
      return changed() || dueAt <= at || Math.abs(at - beganAt) >= LONGEST_MS
    } catch {
      return true // the turn meets the same fault and reports it
    }
  }
  return {
    begun: (): void => void ([dueAt, beganAt] = [-Infinity, now()]),
    /** The turn did everything that could be done now. */
    ended: (): void => void (dueAt = outbox.nextDueAt() ?? Infinity),
    pollOf: (turn: () => void) => (): void => {
      if (isDue()) turn()
    },
  }
}
