import type { MirrorError } from '../errors.ts'
import type { WalkedList } from './catalog-lists.ts'
import type { Task } from './catalog-tasks.ts'

/** The lists of a run: those that were walked, by canonical path, and why others could not be. */
export interface Walks {
  walked: Map<string, WalkedList>
  failed: Map<string, string>
  /** Why the last of those could not be had. */
  error: MirrorError | null
}

/** What a crawl found out, ready to be published. */
export interface Crawl {
  walks: Walks
  /** Every path that the scope wants, held or not. */
  wanted: Map<string, Task>
  wantedLists: Set<string>
  /** Paths whose answer is as it is held, though their owner changed. */
  confirmed: Task[]
  /** What could not be had, each with the reason. */
  lacking: Map<string, string>
  fetched: number
}
