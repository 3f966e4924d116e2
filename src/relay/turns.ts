import type { RelayOutbox } from '../store/webhooks/outbox.ts'

/** Dependencies of the turns. */
interface TurnDeps {
  readonly outbox: Pick<RelayOutbox, 'hasDeliveries'>
  /** Whether another connection wrote since the last call. */
  readonly changed: () => boolean
  /** Unix milliseconds. */
  readonly now: () => number
}

/** Longest time between two turns, milliseconds. */
const LONGEST_MS = 60_000

/** Tells when a turn may find something to do: others wrote, a delivery waits, the last turn failed or is a minute ago. */
export function createTurns({ outbox, changed, now }: TurnDeps) {
  let [waits, beganAt] = [true, -Infinity]
  const isDue = (): boolean => {
    try {
      return changed() || waits || Math.abs(now() - beganAt) >= LONGEST_MS
    } catch {
      return true // the turn meets the same fault and reports it
    }
  }
  return {
    begun: (): void => void ([waits, beganAt] = [true, now()]),
    /** The turn did everything that could be done now. */
    ended: (): void => void (waits = outbox.hasDeliveries()),
    pollOf: (turn: () => void) => (): void => {
      if (isDue()) turn()
    },
  }
}
