import type { MirrorError } from '../../core/errors.ts'
import type { WalkedList } from './lists/walk-list.ts'
import type { Scope } from './scope/scope.ts'
import type { Task } from './answers/plan.ts'

/** The lists of a run: those that were walked, by canonical path, and why others could not be. */
export interface Walks {
  walked: Map<string, WalkedList>
  failed: Map<string, string>
  /** Why the last of those could not be had. */
  error: MirrorError | null
}

/** What a run asks for, beside what the digests of listed items tell. */
export interface Focus {
  /** Whether a task may be asked for: a refresh leaves alone what did not move in the lists that it walked. */
  covers(task: Pick<Task, 'owner'>): boolean
  /** Whether an event names the owner: that there was no artifact of it today does not count then. */
  names(task: Pick<Task, 'owner'>): boolean
  /** Covers an artifact set because an item that is covered names it. */
  add(owner: string): void
}

/** What a crawl found out, ready to be published. */
export interface Crawl {
  walks: Walks
  focus: Focus
  /** Every path that the scope wants, held or not. */
  wanted: Map<string, Task>
  wantedLists: Set<string>
  /** Paths whose answer is as it is held, though their owner changed. */
  confirmed: (Task & { at: number })[]
  /** What could not be had, each with the reason. */
  lacking: Map<string, string>
  /** Those of them that upstream is still making (202). */
  pending: Set<string>
  /** Lists that were walked and are not known to be whole, each with the reason. */
  incomplete: Map<string, string>
  subscriptions: Scope['subscriptions']
  fetched: number
  /** Paths of lists and answers that the run asked for, or had to. */
  tried: Set<string>
  /** What it left alone though it is not in hand: path → resource, of what earlier runs could not have. */
  left: { lacking: Map<string, string>; unseen: number }
}
