import type { Task } from './catalog-tasks.ts'
import type { Walks } from './catalog-walk.ts'

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
