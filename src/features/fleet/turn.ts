import { messageOf } from '../../base/errors.ts'
import { isEndedByNext } from './generations/format/refusals.ts'
import type { LeaseKeeper } from './lease/keeper.ts'
import { FleetError } from './objects/object-store.ts'
import type { Lease } from './lease/lease.ts'
import type { Takeover } from './look/message.ts'

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
  /** The slowest of the last takeovers; null, absent: none since the start. */
  readonly took?: Takeover | null
}

/** What does not work; `refused`: why generations are refused; null: another cause. */
interface Failing {
  readonly refused: string | null
  readonly message: string
  /** Whether it may work at the next poll: the store was busy, or did not answer. */
  readonly isPassing?: boolean
}

/** Generations on the store, as a node of a fleet uses them. */
export interface Generations {
  /** Number of the generation that is stored here, known without the store; 0: none, or with snapshots of its own on it. */
  stored(): number
  /**
   * Looks for newer generations, prepares the newest, and applies it if its time has come. Throws `fleet` and what an import
   * throws; the stored generation stays. `onProgress` is called with what is known in between.
   */
  follow(
    onProgress: (known: Partial<FollowedState>) => void,
  ): Promise<FollowedState & { readonly refusal: Failing | null }>
  /**
   * Publishes what is stored, if that differs from the newest generation. `fenced`: another mirror published since.
   * `paused`: a rollback was not released, so nothing is to be synced.
   */
  publish(epoch: number): Promise<{ newest: GenerationFacts | null; fenced: boolean; paused: boolean }>
  /** Deletes what no generation needs any more. */
  collect(): Promise<void>
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
  /** The slowest of the last takeovers; null: none since the start. */
  readonly took: Takeover | null
  readonly failing: Failing | null
  readonly fenced: number
  /** Whether a rollback was not released: nothing is to be synced. */
  readonly paused: boolean
}

/** What a turn is made with. */
interface TurnOptions {
  readonly keeper: LeaseKeeper
  readonly generations: Generations
  readonly onReport: (report: NodeReport) => void
}

/** How often a leader deletes what no generation needs, milliseconds. */
const COLLECT_MS = 6 * 3_600_000

/** What a node remembers between two turns. */
export interface NodeState {
  leads: number | null
  newest: GenerationFacts | null
  applied: GenerationFacts | null
  stored: number
  prepared: number
  took: Takeover | null
  failing: Failing | null
  fenced: number
  paused: boolean
  /** By the clock of `performance`, milliseconds. */
  collectAt: number
}

/** Returns what a node knows at its start. */
export function initialState(stored: number): NodeState {
  return {
    leads: null,
    newest: null,
    applied: null,
    prepared: 0,
    took: null,
    failing: null,
    fenced: 0,
    stored,
    paused: false,
    collectAt: performance.now() + COLLECT_MS,
  }
}

/** A leader ends an expired or wrongly dated generation by its next one; nothing else that is refused is built on. */
export function isBarred(failing: Failing | null): boolean {
  return failing !== null && !isEndedByNext(failing.refused)
}

/** Follows the generations; what is known in between is reported. */
async function follow({ keeper, generations, onReport }: TurnOptions, state: NodeState): Promise<Failing | null> {
  const { refusal, ...followed } = await generations.follow((known) => {
    Object.assign(state, known)
    onReport(reportOf(keeper, state))
  })
  Object.assign(state, followed)
  return refusal
}

/** One turn: follows the generations, or publishes as their leader. A failure is part of the report. */
export async function performTurn(options: TurnOptions, state: NodeState): Promise<void> {
  const { keeper, generations } = options
  const epoch = keeper.leadership().epoch
  try {
    // A mirror that was not the leader first stores what was published meanwhile.
    const isNew = epoch === null || state.leads !== epoch
    const refusal = isNew ? await follow(options, state) : null
    state.leads = !isBarred(refusal) && keeper.leadership().epoch === epoch ? epoch : null
    if (state.leads !== null) await publish(options, state, state.leads)
    if (state.leads !== null && performance.now() >= state.collectAt) await collect(options, state)
    state.failing = state.leads === null ? refusal : null
  } catch (error) {
    const isPassing = error instanceof FleetError && error.isPassing
    state.failing = { refused: generations.whyRefused(error), message: messageOf(error), isPassing }
    if (state.failing.refused === 'fork') await giveUp(keeper, state) // one that follows what the store has may lead
  }
}

/** Returns what is reported to the thread that serves. */
export function reportOf(keeper: LeaseKeeper, state: NodeState): NodeReport {
  const { lease, remainingMs, failure } = keeper.leadership()
  return {
    ...state,
    lease,
    leadsUntil: remainingMs === null ? null : Date.now() + remainingMs,
    failing: state.failing ?? (failure === null ? null : { refused: null, message: failure }),
  }
}

async function collect({ generations }: TurnOptions, state: NodeState): Promise<void> {
  state.collectAt = performance.now() + COLLECT_MS
  await generations.collect()
}

async function publish(options: TurnOptions, state: NodeState, epoch: number): Promise<void> {
  const { keeper, generations } = options
  const { newest, fenced, paused } = await generations.publish(epoch)
  state.paused = paused
  if (fenced) {
    state.fenced += 1
    await giveUp(keeper, state)
    await follow(options, state)
  } else if (newest !== null) {
    Object.assign(state, { newest, applied: newest, prepared: newest.generation })
  }
}

async function giveUp(keeper: LeaseKeeper, state: NodeState): Promise<void> {
  state.leads = null
  await keeper.release()
}
