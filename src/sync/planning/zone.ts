import { DAY_MS } from '../../base/time.ts'

/** A time zone: how far its local time is ahead of UTC at an instant, milliseconds. */
export type Zone = (instant: number) => number

const OFFSET = /GMT(?:([+-])(\d{2}):(\d{2})(?::(\d{2}))?)?$/

/** Creates a zone by its IANA name; the machine's own where none is given. */
export function createZone(name?: string): Zone {
  const format = new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName: 'longOffset' })
  return (instant) => {
    const [, sign = '+', hours = '0', minutes = '0', seconds = '0'] = OFFSET.exec(format.format(instant)) ?? []
    const ahead = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000
    return sign === '-' ? -ahead : ahead
  }
}

/** A change of a zone's offset, such as the begin of summer time: the first instant with the new one. */
export interface Transition {
  readonly at: number
  readonly before: number
  readonly after: number
}

/** Finds the change of a zone's offset after `from` and not after `to`, which are a day apart at most; null: there is none. */
function findTransition(zone: Zone, from: number, to: number): Transition | null {
  const before = zone(from)
  const after = zone(to)
  if (before === after) return null
  let last = from
  let at = to
  while (at - last > 1) {
    const middle = Math.floor((last + at) / 2)
    if (zone(middle) === before) last = middle
    else at = middle
  }
  return { at, before, after }
}

/** The offset of a zone from an instant on, and the changes of it within a day before and after. */
export interface Stretch {
  readonly offset: number
  readonly began: Transition | null
  /** The first instant with another offset; infinite: not within a day. */
  readonly end: number
}

/** Returns the stretch of equal offset in which an instant lies. */
export function stretchAt(zone: Zone, instant: number): Stretch {
  return {
    offset: zone(instant),
    began: findTransition(zone, instant - DAY_MS, instant),
    end: findTransition(zone, instant, instant + DAY_MS)?.at ?? Infinity,
  }
}
