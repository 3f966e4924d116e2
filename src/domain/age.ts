/**
 * How far upstream's date of the data may be later than this machine's clock, milliseconds. A date that is later than that
 * says nothing about an age: the clock is behind, or the date is wrong.
 */
const AHEAD_MS = 300_000

/** What is said instead of an age that is not known. */
export const NO_AGE =
  "later than this machine's clock, so its age is not known: the clock is behind, or the date is wrong"

/**
 * Returns the age of data in whole seconds; null where its date is later than the clock, so that it is not known. Every
 * age of a source is computed here. Both in Unix milliseconds.
 */
export function ageSecondsOf(asOf: number, now: number): number | null {
  return asOf > now + AHEAD_MS ? null : Math.max(0, Math.floor((now - asOf) / 1000))
}
