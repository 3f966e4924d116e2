import type { LeaseKeeper } from './lease/keeper.ts'
import {
  type Generations,
  type NodeReport,
  type NodeState,
  initialState,
  isBarred,
  performTurn,
  reportOf,
} from './turn.ts'

/** What a node is made from. */
interface NodeOptions {
  readonly role: 'auto' | 'writer' | 'reader' | 'standby'
  readonly keeper: LeaseKeeper
  readonly generations: Generations
  /** Milliseconds between two looks at the store. */
  readonly pollMs: () => number
  /** Milliseconds after which a reader reads the lease again; ten minutes without it. */
  readonly leaseMs?: number
  /** Milliseconds after a commit before it is published while other runs are under way: commits that follow each other closely are one generation. */
  readonly settleMs?: number
  readonly onReport: (report: NodeReport) => void
}

/** A mirror of a fleet at work. */
interface FleetNode {
  /** The store was committed to: what is new is to be published, at once where no other commit is expected soon. */
  committed(isLast: boolean): void
  /** This generation is about to be published: looks for it until it is seen, for a while. Infinity: any. */
  expect(generation: number): void
  /** Ends what runs, and gives an own lease back. */
  stop(): Promise<void>
}

/** Pause between two looks for a generation that is about to be published, and how long they go on, milliseconds. */
const EXPECTING_MS = 100
const MOST_EXPECTING_MS = 10_000

const SETTLE_MS = 1_000

/** How often a leader confirms the date of unchanged content, milliseconds; `Generations` decides whether that is due. */
const CONFIRM_MS = 60_000

/** A generation that is activated later than that is looked at with the polls. */
const MOST_WAIT_MS = 3_600_000

/**
 * Runs a mirror of a fleet: follows the generations on the store, takes the lease where its role allows it and everything
 * published is stored here, and then publishes. It leads until its lease ends or another mirror has published.
 */
export function startNode(options: NodeOptions): FleetNode {
  const { keeper, role, onReport, settleMs = SETTLE_MS } = options
  const state = initialState(options.generations.stored())
  const findLeader = createLeaderFinder(options)
  const timers = new Set<NodeJS.Timeout>()
  const ending = { now: false }
  const queue = createQueue(() => ending.now)
  const after = (ms: number, call: () => void): void => {
    const timer = setTimeout(() => {
      timers.delete(timer)
      if (!ending.now) call()
    }, ms)
    timers.add(timer)
  }
  const turn = async (): Promise<void> => {
    turnedAt = performance.now()
    await performTurn(options, state)
    if (ending.now) return // what was under way did not fail
    await findLeader(state)
    onReport(reportOf(keeper, state))
    const { newest, applied } = state
    if (newest === null || newest.generation === applied?.generation) return
    const wait = newest.activateAt - Date.now()
    if (wait > 0 && wait < MOST_WAIT_MS) after(wait, look)
  }
  const look = (): void => void queue.add(turn)
  const report = (): void => onReport(reportOf(keeper, state))
  let turnedAt = 0
  const poll = (): void => {
    const isExpecting = state.leads === null || state.paused || state.failing?.isPassing === true
    const isDue = isExpecting || performance.now() - turnedAt >= CONFIRM_MS
    void (isDue ? queue.add(turn) : Promise.resolve()).finally(() => {
      after(jittered(options.pollMs()), poll)
    })
  }
  const keep = async (): Promise<void> => {
    const caughtUp = state.newest?.generation === state.applied?.generation
    const mayTake = state.leads !== null || (caughtUp && !isBarred(state.failing))
    const { epoch } = await keeper.step(mayTake)
    if (epoch !== state.leads) look() // takes or gives up the lead between two turns
    if (epoch === null) state.leads = null
    report()
    after(keeper.stepMs(), () => void keep())
  }
  const first = (): Promise<void> => keeper.step(false).then(turn) // who leads is known while the first look fetches
  void queue.add(first).then(() => {
    if (ending.now) return
    if (role !== 'reader') void keep()
    after(jittered(options.pollMs()), poll)
  })
  return {
    committed: (isLast) => after(isLast ? 0 : settleMs, look),
    expect: createExpecting(state, (next) => void queue.add(turn).finally(() => after(EXPECTING_MS, next))),
    async stop() {
      ending.now = true
      for (const timer of timers) clearTimeout(timer)
      await Promise.all([queue.ended(), keeper.release()])
    },
  }
}

/** Looks often from when a generation is expected until it is seen; `look` calls back some time after a look. */
function createExpecting(state: NodeState, look: (next: () => void) => void): FleetNode['expect'] {
  const expected = { generation: 0, until: 0 }
  let looks = false
  const lookOften = (): void => {
    const isSeen = state.leads !== null || (state.newest?.generation ?? 0) >= expected.generation
    looks = !isSeen && performance.now() < expected.until
    if (looks) look(lookOften)
  }
  return (generation) => {
    const now = performance.now()
    expected.generation = now < expected.until ? Math.max(generation, expected.generation) : generation
    expected.until = now + MOST_EXPECTING_MS
    if (!looks) lookOften()
  }
}

/** How often a reader reads the lease at least, milliseconds: a leader that died publishes nothing that would say so. */
const LEASE_MS = 600_000

/**
 * Has a reader read the lease when another mirror has published, and seldom in between; and after each look that refused something, as
 * it then does not see who publishes. While the store does not answer, it is not asked for the lease either.
 */
function createLeaderFinder({ role, keeper, leaseMs = LEASE_MS }: NodeOptions): (state: NodeState) => Promise<void> {
  let found: number | null = null
  let readAt = performance.now()
  return async ({ newest, failing }) => {
    if (role !== 'reader' || failing?.refused === null) return
    const epoch = newest?.epoch ?? 0
    const isFirst = found === null && keeper.leadership().failure === null // it was read at the start
    const isDue = performance.now() - readAt >= leaseMs || (epoch !== found && !isFirst)
    if (failing !== null || isDue) {
      await keeper.step(false)
      readAt = performance.now()
    }
    if (keeper.leadership().failure === null) found = epoch
  }
}

/** Up to a fifth more, so that the mirrors of a fleet do not ask at the same time, and never more often than the settings say. */
function jittered(ms: number): number {
  return ms * (1 + 0.2 * Math.random())
}

/** Runs one task at a time; a task that is added while it waits is one. */
function createQueue(isEnding: () => boolean) {
  let running: Promise<void> = Promise.resolve()
  let waiting: Promise<void> | null = null
  return {
    add(task: () => Promise<void>): Promise<void> {
      waiting ??= running.then(() => {
        waiting = null
        running = isEnding() ? Promise.resolve() : task()
        return running
      })
      return waiting
    },
    ended: (): Promise<void> => running,
  }
}
