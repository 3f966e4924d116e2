import { DAY_MS } from '../../../base/time.ts'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import { refusalOf } from '../format/refusal.ts'
import type { InboxFile } from './inbox-files.ts'

/**
 * The decision about a bundle, for the state of its files at that time. `why` null: processed, but it could not be
 * moved.
 */
interface Decision {
  stamp: string
  why: string | null
  imports: number
  /** By the elapsed time. */
  at: number
  /** Since when it waits for another bundle, by the elapsed time; null: it does not. */
  waits: number | null
  clock: ClockWait | null
}

/** The times between which a bundle can be imported, Unix milliseconds. */
interface ClockWait {
  readonly from: number
  readonly until: number
}

/** The clock for the dates of bundles, Unix milliseconds, and the time that elapses, whatever that clock does, milliseconds. */
interface Times {
  readonly now: () => number
  readonly elapsed: () => number
}

/** Stores which bundles must be processed, and what the others wait for. */
export function createDecisions({ now, elapsed }: Times) {
  const stamps = new Map<string, string>()
  const decisions = new Map<string, Decision>()
  let imports = 0
  let proven = -Infinity
  const decide = ({ name, stamp }: InboxFile, why: string | null, clock: ClockWait | null = null): void => {
    if (why === 'gone') return void decisions.delete(name)
    const at = elapsed()
    const waits = why?.startsWith(WAITING_FOR) === true ? (decisions.get(name)?.waits ?? at) : null
    decisions.set(name, { stamp, why, imports, at, waits, clock })
  }
  /** Returns files that have not changed since the last scan, and for which no valid decision exists. */
  const isDue = (arrival: InboxFile): boolean => {
    const { name, stamp } = arrival
    if (stamps.get(name) !== stamp) {
      stamps.set(name, stamp)
      decide(arrival, ARRIVING)
      return false
    }
    const decision = decisions.get(name)
    if (decision === undefined) return true
    const { why, imports: then, at, clock } = decision
    if (why === null || why === INCOMPLETE || why === OVERDUE || why === MISNAMED) return false
    if (clock !== null) return isWithin(clock, now()) || clock.until <= proven
    if (why.startsWith(FAILED)) return elapsed() - at >= RETRY_MS
    return !why.startsWith(WAITING_FOR) || then !== imports || elapsed() - at >= RETRY_MS // an import by hand counts too
  }
  return {
    decide,
    due: (arrivals: readonly InboxFile[]) => arrivals.filter(isDue),
    imported() {
      imports++
    },
    /** A trusted mirror made a bundle then, Unix milliseconds: what expired before has expired whatever the clock here shows. */
    proves(createdAt: number) {
      proven = Math.max(proven, createdAt)
    },
    /** The time that such bundles prove to have come. */
    proven: () => proven,
    /** Returns bundles that have been incomplete for a day; each is returned once. */
    overdue(): string[] {
      return [...decisions].flatMap(([name, decision]) => {
        if (decision.why !== INCOMPLETE || elapsed() - decision.at < OVERDUE_MS) return []
        decisions.set(name, { ...decision, why: OVERDUE })
        return [name]
      })
    },
    forgetOthers(arrivals: readonly InboxFile[]) {
      const names = new Set(arrivals.map(({ name }) => name))
      for (const name of [...decisions.keys(), ...stamps.keys()]) {
        if (names.has(name)) continue
        decisions.delete(name)
        stamps.delete(name)
      }
    },
    /** Returns a bundle that has waited so long for another one, milliseconds, and why; null: none has. */
    stuck(leastMs: number): string | null {
      const found = [...decisions].find(([, { waits }]) => waits !== null && elapsed() - waits >= leastMs)
      return found === undefined ? null : `${found[0]}: ${found[1].why}`
    },
    waiting: () => [...decisions].flatMap(([file, { why }]) => (why === null ? [] : [{ file, why }])),
  }
}

/** Why a file is not looked at yet: it changed since the last look. */
export const ARRIVING = 'still arriving'
/** Why a file that begins as a bundle does is not looked at. */
export const MISNAMED =
  'not read, for only names in .zip, .zip.001 and so on, and .thin count: rename it when it is complete'
const FAILED = 'failed: '
/** Pause after a fault of this mirror, such as a full disk, milliseconds: each attempt reads the whole bundle. */
const RETRY_MS = 5 * 60_000
const INCOMPLETE = 'incomplete: the rest has not arrived'
const OVERDUE = 'incomplete for over a day: send the rest, or remove it'
const OVERDUE_MS = DAY_MS
const WAITING_FOR = 'waiting for bundle'

const WAITING_FOR_CLOCK = 'waiting for the clock to be right: '

function isWithin({ from, until }: ClockWait, time: number): boolean {
  return from <= time && time < until
}

type Verdict = { outcome: 'superseded' | 'refused' } | { outcome: 'waiting'; why: string; clock: ClockWait | null }

/** Decides about a bundle that could not be opened or applied. `proven`: the time that has come for certain, Unix milliseconds. */
export function decide(error: unknown, proven: number): Verdict {
  const refusal = refusalOf(error)
  if (refusal?.kind === 'clock' && refusal.until > proven)
    return { outcome: 'waiting', why: WAITING_FOR_CLOCK + messageOf(error), clock: refusal }
  if (refusal?.kind === 'older') return { outcome: 'superseded' }
  if (refusal?.kind === 'incomplete') return { outcome: 'waiting', why: INCOMPLETE, clock: null }
  if (refusal?.kind === 'base') {
    const which = refusal.sequence === null ? ' of its need file' : ` ${refusal.sequence}`
    return { outcome: 'waiting', why: `${WAITING_FOR}${which}, or a full one`, clock: null }
  }
  // Faults of this mirror are temporary, and not caused by the bundle.
  const isFault = error instanceof MirrorError && ['bundle', 'archive'].includes(error.code)
  if (isFault) return { outcome: 'refused' }
  const code = error instanceof MirrorError ? error.code : 'internal'
  return {
    outcome: 'waiting',
    why: code === 'locked' ? 'a sync is running' : FAILED + code,
    clock: null,
  }
}
