import { type Parameters, takes } from '../../faults/parameters.ts'

/** A way in which an event goes astray on its way to an endpoint. */
export type DeliveryFault =
  /** Never sent, nor tried again. */
  | { kind: 'lost' }
  /** Each attempt is sent `times` times (2) at once. */
  | { kind: 'doubled'; times?: number }
  /** Sent `ms` milliseconds late. */
  | { kind: 'delayed'; ms: number }
  /** Sent after the next event of the subscription. */
  | { kind: 'reordered' }
  /** The first attempts (1) bear the signature of another body. */
  | { kind: 'wrongSignature'; attempts?: number }
  /** The first `attempts` (1) have a timestamp `seconds` (600) old. */
  | { kind: 'oldTimestamp'; seconds?: number; attempts?: number }
  /** Sent before the tag is to be found; it appears after `ms`, or when `reveal` is called. */
  | { kind: 'early'; ms?: number }

/** All kinds of them with their parameters. */
export const DELIVERY_PARAMETERS: Readonly<Record<DeliveryFault['kind'], Parameters>> = {
  lost: takes(),
  doubled: takes('times'),
  delayed: takes('', { ms: 'number' }),
  reordered: takes(),
  wrongSignature: takes('attempts'),
  oldTimestamp: takes('seconds attempts'),
  early: takes('ms'),
}

/** All kinds of them, to check a kind that came as text. */
export const DELIVERY_FAULTS = Object.keys(DELIVERY_PARAMETERS) as readonly DeliveryFault['kind'][]

/** Which events a fault hits: the first `after` (0) are spared, the next `times` (1) are hit. */
export interface DeliveryTiming {
  times?: number
  after?: number
}

/** Faults that are set, and which of them meets the next event. */
export interface DeliveryFaults {
  set(fault: DeliveryFault, timing?: DeliveryTiming): void
  clear(): void
  /** The fault of one more event; an event meets at most one, the oldest that is due. */
  take(): DeliveryFault | null
}

/** No faults yet. */
export function createDeliveryFaults(): DeliveryFaults {
  let armed: { fault: DeliveryFault; spare: number; left: number }[] = []
  return {
    set: (fault, { times = 1, after = 0 } = {}) => void armed.push({ fault, spare: after, left: times }),
    clear: () => void (armed = []),
    take() {
      const due = armed.filter((one) => one.left > 0 && one.spare-- <= 0)
      const [first] = due
      if (first === undefined) return null
      first.left--
      return first.fault
    },
  }
}
