const LAG = 86_400_000

/** Gives each publication of the feed a Last-Modified: always later than the one before, never in the future. */
export interface PublicationClock {
  /** Unix milliseconds, whole seconds, of the last publication. */
  current(): number
  /** Moves on for the next publication. */
  advance(): number
}

/**
 * Several changes within one second must still differ, and none may be ahead of the clock. So the
 * first publication is a day old and each later one covers a hundredth of the way to now, at least a
 * second while there is room.
 */
export function createPublicationClock(now: () => number): PublicationClock {
  const second = (time: number): number => Math.floor(time / 1000) * 1000
  let at = second(now()) - LAG
  return {
    current: () => at,
    advance() {
      const room = second(now()) - at
      at += Math.max(Math.min(1000, Math.max(0, room)), second(room / 100))
      return at
    },
  }
}
