import type { MirrorError } from '../../base/errors.ts'
import type { ErrorForm } from '../../upstream/http/errors.ts'
import type { FetchedAnswer } from '../../store/catalog/answer-writes.ts'
import type { MissingPath } from '../../store/catalog/answers.ts'
import type { WalkedList } from './lists/walk-list.ts'
import type { Scope } from './scope/scope.ts'
import type { Task } from './answers/plan.ts'

/** The lists of a run: those that were walked, by canonical path, and the reasons why others failed. */
export interface Walks {
  walked: Map<string, WalkedList>
  failed: Map<string, string>
  /** The failed lists that the service refuses to the credential (403). */
  forbidden: Set<string>
  /** The failed lists that make nothing else look old: refused (403), or of another form and never stored. */
  ownFailures: Set<string>
  /** Error of the list that failed last. */
  error: MirrorError | null
}

/** What a run requests, in addition to what the digests of listed items show as changed. */
export interface RefreshScope {
  /** Whether a task may be requested: a refresh skips items that did not change in the lists that it walked. */
  covers(task: Pick<Task, 'owner'>): boolean
  /** Whether an event names the owner: an absent artifact is then requested again on the same day. */
  names(task: Pick<Task, 'owner'>): boolean
  /** Adds an artifact set that a covered item names. */
  add(owner: string): void
}

/** The items of which a refresh need not plan any request, because an earlier run did all for them. */
export interface Settled {
  /** Whether each wanted answer of an item (`resource/id`) is stored or recorded as missing, and none is to be requested. */
  owner(owner: string): boolean
  /** Whether a path that is recorded as missing belongs to such an item. */
  missing(path: Pick<MissingPath, 'path' | 'resource'>): boolean
}

/** The packages in scope: their number, and a digest of their ids. */
export interface PackageScope {
  readonly count: number
  readonly digest: string
}

/** An answer that there is nothing, which may not be the service's word: a 404, a 204, or a list without entries. */
export interface UnsureNone {
  readonly task: Task
  readonly answer: FetchedAnswer
  /** The form of a 404; null: it is another. */
  readonly form: ErrorForm | null
  /** Whether something is stored that it would replace. */
  readonly isStored: boolean
}

/** Results of a run, ready to be published. */
export interface Crawl {
  walks: Walks
  refreshScope: RefreshScope
  /** Every path in scope, stored or not, but for those of settled items. */
  wanted: Map<string, Task>
  settled: Settled
  packages: PackageScope
  wantedLists: Set<string>
  /** Paths whose answer equals the stored one, though their owner changed. */
  confirmed: (Task & { at: number })[]
  /** Paths that could not be fetched → reason. */
  missing: Map<string, string>
  /** The missing paths that the service refuses to the credential (403). */
  forbidden: Set<string>
  /** The missing paths of which the service says that there is nothing, for the first time → the status of its answer. */
  none: Map<string, number>
  /** Fetched answers with links that gave no document and stay as they are → why. */
  linksLeft: Map<string, string>
  /** The missing paths that the service is still building (202). */
  pending: Set<string>
  /** What answers that there is nothing, and may not be the service's word; not stored yet. */
  unsure: UnsureNone[]
  /** Lists that were walked and are not known to be complete → reason. */
  incomplete: Map<string, string>
  subscriptions: Scope['subscriptions']
  fetched: number
  /** Whether answers that an earlier run fetched and did not publish were dropped, and their documents may be too. */
  droppedFetched: boolean
  /** Paths of lists and answers that the run requested, or skipped after repeated failures of the host. */
  requested: Set<string>
  /**
   * Missing paths that a refresh did not request: those that earlier runs failed to fetch, and the number of those
   * never requested.
   */
  carriedOver: { missing: Map<string, MissingPath>; unrequested: number }
}
