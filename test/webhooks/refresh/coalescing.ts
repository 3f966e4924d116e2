import { type Coalescer, createCoalescer } from '../../../src/webhooks/refresh/coalescer.ts'
import type { Announced } from '../../../src/store/catalog/tags.ts'
import type { EventTarget } from '../../../src/base/domain/image-reference.ts'
import type { InboxState, Settlement } from '../../../src/store/webhooks/inbox.ts'
import type { Visibility, Waiting } from '../../../src/webhooks/refresh/settlement.ts'
import type { RefreshOutcome } from '../../../src/base/domain/event-types.ts'
import type { WaitingRows } from '../../../src/webhooks/refresh/batch.ts'

/** A clock that moves only when it is told to, with the timers that hang on it. */
export function createClock(start = 1_800_000_000_000) {
  let now = start
  let serial = 0
  const timers = new Map<number, { at: number; call: () => void }>()
  const next = (): [number, { at: number; call: () => void }] | null => {
    let first: [number, { at: number; call: () => void }] | null = null
    for (const one of timers) if (first === null || one[1].at < first[1].at) first = one
    return first
  }
  return {
    now: () => now,
    after: (ms: number, call: () => void): (() => void) => {
      const id = ++serial
      timers.set(id, { at: now + ms, call })
      return () => void timers.delete(id)
    },
    /** Rings what is due until then, in order, each time letting all that follows from it happen. */
    async runTo(end: number): Promise<void> {
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve))
        const first = next()
        if (first === null || first[1].at > end) break
        timers.delete(first[0])
        now = Math.max(now, first[1].at)
        first[1].call()
      }
      now = Math.max(now, end)
    },
    /** Forgets every timer, as a killed process does. */
    kill: () => timers.clear(),
  }
}

export type Clock = ReturnType<typeof createClock>

/** A row as the tests look at it. */
export interface Row extends Waiting {
  storedAt: number
  state: InboxState
  visibleAt: number | null
  reason: string | null
}

/** An inbox in memory that outlives the coalescers working on it. */
export function createRows(clock: Clock) {
  const rows: Row[] = []
  let broken = false
  const answer = <T>(value: () => T): Promise<T> =>
    broken ? Promise.reject(new Error('the disk is full')) : Promise.resolve().then(value)
  const pending = (): Row[] => rows.filter(({ state }) => state === 'pending')
  const inbox: WaitingRows = {
    pending: (now, limit, after) =>
      answer(() =>
        pending()
          .filter((row) => row.dueAt <= now && row.id > after)
          .slice(0, limit),
      ),
    dead: (limit, before) =>
      answer(() =>
        rows
          .filter(({ state, id }) => state === 'dead' && id < before)
          .reverse()
          .slice(0, limit),
      ),
    nextDueAt: () => answer(() => pending().reduce<number | null>((at, row) => least(at, row.dueAt), null)),
    settle: (settled) => answer(() => settled.forEach(write)),
  }
  const write = ({ id, ...fields }: Settlement): void => {
    const at = rows.findIndex((row) => row.id === id)
    const row = rows[at]
    if (row !== undefined) rows[at] = { ...row, ...fields }
  }
  return {
    rows,
    inbox,
    add: (target: EventTarget | null): Row => {
      const now = clock.now()
      const fresh = { state: 'pending', refreshedAt: null, visibleAt: null, reason: null } as const
      const row = { id: rows.length + 1, target, storedAt: now, dueAt: now, attempts: 0, ...fresh }
      rows.push(row)
      return row
    },
    fail: (yes: boolean) => void (broken = yes),
  }
}

const least = (a: number | null, b: number): number => (a === null ? b : Math.min(a, b))

/** A target that names a tag. */
export function tagged(tag: string): EventTarget {
  return { repository: 'python', tag, digest: null, arch: null, subject: null }
}

/** One refresh as it was asked for. */
export interface Asked {
  startedAt: number
  endedAt: number | null
  ok: boolean
  tags: (string | null)[]
}

/** What a refresh does: how long it takes, and what it ends with (`isElsewhere`: not in the catalog); null: it never ends. */
export type Answer = (asked: Asked) => { ms: number; failure: string | null; isElsewhere?: boolean } | null

export type Shown = NonNullable<Visibility>

/** What the catalog has of a target that readers see so. */
const ANNOUNCED: Readonly<Record<Shown, Announced>> = {
  visible: { listed: true, digestMatches: null, artifacts: 'complete' },
  partly: { listed: true, digestMatches: null, artifacts: 'lacking' },
  alone: { listed: true, digestMatches: null, artifacts: 'out of scope' },
  'other digest': { listed: true, digestMatches: false, artifacts: 'complete' },
  absent: { listed: false, digestMatches: null, artifacts: null },
}

/** An inbox, a service and a coalescer between them, on one clock. */
export function createWorld(answer: Answer, look: (target: EventTarget) => Shown) {
  const clock = createClock()
  const held = createRows(clock)
  const asked: Asked[] = []
  const warnings: string[] = []
  let running = 0
  let most = 0
  const refresh = (targets: readonly EventTarget[]): Promise<RefreshOutcome> => {
    const tags = targets.map(({ tag }) => tag)
    const one: Asked = { startedAt: clock.now(), endedAt: null, ok: false, tags }
    asked.push(one)
    most = Math.max(most, ++running)
    return new Promise((resolve) => {
      const outcome = answer(one)
      if (outcome === null) return
      clock.after(outcome.ms, () => {
        running--
        one.endedAt = clock.now()
        one.ok = outcome.failure === null
        const { failure: reason, isElsewhere = false } = outcome
        resolve({ ok: one.ok, reason, imageReason: isElsewhere ? null : reason })
      })
    })
  }
  const open = (): Coalescer =>
    createCoalescer({
      isExplained: () => false,
      inbox: held.inbox,
      sync: { refresh },
      catalog: { findAnnounced: (target) => ANNOUNCED[look(target)] },
      debounceMs: 2_000,
      time: {
        now: clock.now,
        after: clock.after,
        random: () => 0.5,
        breathe: () => Promise.resolve(),
      },
      log: { warn: (_: object, message: string) => void warnings.push(message) } as never,
    })
  let coalescer = open()
  coalescer.start()
  return {
    ...held,
    clock,
    asked,
    warnings,
    most: () => most,
    state: () => coalescer.state(),
    stop: () => coalescer.stop(),
    arrive(target: EventTarget | null): Row {
      const row = held.add(target)
      coalescer.arrived()
      return row
    },
    /** An event that the process did not live to tell of. */
    store: (target: EventTarget | null) => held.add(target),
    changed: () => coalescer.changed(),
    /** Ends the process at this very moment and starts another. */
    restart(): void {
      coalescer.stop()
      clock.kill()
      running = 0
      coalescer = open()
      coalescer.start()
    },
    pass: (ms: number) => clock.runTo(clock.now() + ms),
  }
}
