import { messageOf } from '../core/errors.ts'
import type { LeaseKeeper } from './lease/keeper.ts'
import type { Lease } from './lease/lease.ts'

/** A generation as the parts of a mirror speak of it. */
export interface GenerationFacts {
  readonly generation: number
  readonly epoch: number
  /** Names its snapshots, as `snapshotStamp` does. */
  readonly stamp: string
  /** Unix milliseconds, as `activateAt`. */
  readonly publishedAt: number
  readonly activateAt: number
}

/** What is known after a look at the store. */
interface FollowedState {
  /** The newest generation on the store; null: none. */
  readonly newest: GenerationFacts | null
  /** The generation whose content is stored here; null: none. */
  readonly applied: GenerationFacts | null
  /** Number of the newest that is downloaded and verified; 0: none. */
  readonly prepared: number
}

/** What does not work; `refused`: why generations are refused; null: another cause. */
interface Failing {
  readonly refused: string | null
  readonly message: string
}

/** Generations on the store, as a node of a fleet uses them. */
export interface Generations {
  /** Number of the generation that is stored here, known without the store; 0: none. */
  stored(): number
  /**
   * Looks for newer generations, prepares the newest, and applies it if its time has come. Throws `fleet` and what an import
   * throws; the stored generation stays. `onProgress` is called with what is known in between.
   */
  follow(
    onProgress: (known: Partial<FollowedState>) => void,
  ): Promise<FollowedState & { readonly refusal: Failing | null }>
  /** Publishes what is stored, if that differs from the newest generation. `fenced`: another mirror published since. */
  publish(epoch: number): Promise<{ newest: GenerationFacts | null; fenced: boolean }>
  /** Why a generation was refused; null for other failures. */
  whyRefused(error: unknown): string | null
}

/** What a node knows and does, for the thread that serves. */
export interface NodeReport {
  /** Epoch under which it leads; null: it follows. */
  readonly leads: number | null
  /** Unix milliseconds at which the lead ends unless it is renewed; null: never. */
  readonly leadsUntil: number | null
  /** The lease as it was read last; null: there is none. */
  readonly lease: Pick<Lease, 'name' | 'url' | 'epoch' | 'expiresAt'> | null
  readonly newest: GenerationFacts | null
  readonly applied: GenerationFacts | null
  /** The generation that was stored at the start; 0: none. */
  readonly stored: number
  readonly prepared: number
  readonly failing: Failing | null
  readonly fenced: number
}

/** What a node is made from. */
interface NodeOptions {
  readonly role: 'auto' | 'writer' | 'reader' | 'standby'
  readonly keeper: LeaseKeeper
  readonly generations: Generations
  /** Milliseconds between two looks at the store. */
  readonly pollMs: () => number
  /** Milliseconds after a commit before it is published, so that commits that follow each other closely are one generation. */
  readonly settleMs?: number
  /** Unix milliseconds. */
  readonly now?: () => number
  readonly onReport: (report: NodeReport) => void
}

/** A mirror of a fleet at work. */
export interface FleetNode {
  /** The store was committed to: what is new is to be published. */
  committed(): void
  /** Looks at the store now. */
  look(): void
  /** Epoch of the newest generation known: a new leadership has a higher one. */
  newestEpoch(): number
  /** Ends what runs, and gives an own lease back. */
  stop(): Promise<void>
}

const SETTLE_MS = 1_000

/** How often a leader confirms the date of unchanged content, milliseconds; `Generations` decides whether that is due. */
const CONFIRM_MS = 60_000

/** How often a mirror that never leads looks who does, milliseconds. */
const READER_MS = 60_000

/** A generation that is activated later than that is looked at with the polls. */
const MOST_WAIT_MS = 3_600_000

interface State {
  leads: number | null
  newest: GenerationFacts | null
  applied: GenerationFacts | null
  stored: number
  prepared: number
  failing: Failing | null
  fenced: number
}

/**
 * Runs a mirror of a fleet: follows the generations on the store, takes the lease where its role allows it and everything
 * published is stored here, and then publishes. It leads until its lease ends or another mirror has published.
 */
export function startNode(options: NodeOptions): FleetNode {
  const { keeper, role, onReport, settleMs = SETTLE_MS, now = Date.now } = options
  const state: State = {
    ...{ leads: null, newest: null, applied: null, prepared: 0, failing: null, fenced: 0 },
    stored: options.generations.stored(),
  }
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
    await performTurn(options, state)
    onReport(reportOf(keeper, state))
    const { newest, applied } = state
    if (newest === null || newest.generation === applied?.generation) return
    const wait = newest.activateAt - now()
    if (wait > 0 && wait < MOST_WAIT_MS) after(wait, look)
  }
  const look = (): void => void queue.add(turn)
  const report = (): void => onReport(reportOf(keeper, state))
  const poll = (): void =>
    void queue.add(turn).finally(() => {
      after(state.leads === null ? jittered(options.pollMs()) : CONFIRM_MS, poll)
    })
  const keep = async (): Promise<void> => {
    const caughtUp = state.newest?.generation === state.applied?.generation
    const mayTake =
      role !== 'reader' && (state.leads !== null || (caughtUp && !isBarred(state.failing)))
    const { epoch } = await keeper.step(mayTake)
    if (epoch !== state.leads) look() // takes or gives up the lead between two turns
    if (epoch === null) state.leads = null
    report()
    after(role === 'reader' ? READER_MS : keeper.stepMs(), () => void keep())
  }
  void queue.add(turn).then(() => {
    if (ending.now) return
    void keep()
    after(jittered(options.pollMs()), poll)
  })
  return {
    committed: () => after(settleMs, look),
    look,
    newestEpoch: () => state.newest?.epoch ?? 0,
    async stop() {
      ending.now = true
      for (const timer of timers) clearTimeout(timer)
      await Promise.all([queue.ended(), keeper.release()])
    },
  }
}

/** A new leader ends an expired generation by its next one; nothing else that is refused is built on. */
function isBarred(failing: Failing | null): boolean {
  return failing !== null && failing.refused !== 'expired'
}

/** Follows the generations; what is known in between is reported. */
async function follow(
  { keeper, generations, onReport }: NodeOptions,
  state: State,
): Promise<Failing | null> {
  const { refusal, ...followed } = await generations.follow((known) => {
    Object.assign(state, known)
    onReport(reportOf(keeper, state))
  })
  Object.assign(state, followed)
  return refusal
}

/** One turn: follows the generations, or publishes as their leader. A failure is part of the report. */
async function performTurn(options: NodeOptions, state: State): Promise<void> {
  const { keeper, generations } = options
  const epoch = keeper.leadership().epoch
  try {
    // A mirror that was not the leader first stores what was published meanwhile.
    const isNew = epoch === null || state.leads !== epoch
    const refusal = isNew ? await follow(options, state) : null
    state.leads = !isBarred(refusal) && keeper.leadership().epoch === epoch ? epoch : null
    if (state.leads !== null) await publish(options, state, state.leads)
    state.failing = state.leads === null ? refusal : null
  } catch (error) {
    state.failing = { refused: generations.whyRefused(error), message: messageOf(error) }
  }
}

function reportOf(keeper: LeaseKeeper, state: State): NodeReport {
  const { lease, remainingMs } = keeper.leadership()
  return { ...state, lease, leadsUntil: remainingMs === null ? null : Date.now() + remainingMs }
}

async function publish(options: NodeOptions, state: State, epoch: number): Promise<void> {
  const { keeper, generations } = options
  const { newest, fenced } = await generations.publish(epoch)
  if (fenced) {
    state.fenced += 1
    state.leads = null
    await keeper.release()
    await follow(options, state)
  } else if (newest !== null) {
    Object.assign(state, { newest, applied: newest, prepared: newest.generation })
  }
}

/** Up to a fifth less or more, so that the mirrors of a fleet do not ask at the same time. */
function jittered(ms: number): number {
  return ms * (0.8 + 0.4 * Math.random())
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
