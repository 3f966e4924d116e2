import { MirrorError } from '../../base/errors.ts'
import {
  type InboxCounts,
  type InboxRow,
  MAX_PENDING,
  type NewDelivery,
  type Received,
  type Settlement,
} from '../../store/webhooks/inbox.ts'
import { type Calls, createCalls } from '../../base/threads/calls.ts'
import { type Supervisor, supervise } from '../../base/threads/supervisor.ts'
import { workerFile } from '../../base/threads/worker-file.ts'
import { EMPTY } from './empty.ts'
import type { InboxFunctions, InboxQuestion, OperationName } from './operations.ts'
import type { FromInbox, InboxStart, ToInbox } from './inbox.worker.ts'

/**
 * The inbox as the serving thread has it: it asks, and never waits for a disk. Every call rejects with `storage` (or
 * `corrupt`, `schema`) when it could not be done; nothing of it is stored then.
 */
export interface InboxThread {
  /** Resolves when the delivery is safely on disk, or `full`. */
  receive(delivery: NewDelivery): Promise<Received>
  /**
   * Rows that are due and have ids above `after`, oldest first, without their bodies. One that is due later than
   * `longestWait` milliseconds from now is due as well: the clock was changed.
   */
  pending(now: number, limit: number, after?: number, longestWait?: number): Promise<InboxRow[]>
  /** Dead letters with ids below `before`, newest first, without their bodies. */
  dead(limit: number, before: number): Promise<InboxRow[]>
  /** Unix milliseconds; null: nothing is pending. */
  nextDueAt(): Promise<number | null>
  settle(settlements: readonly Settlement[]): Promise<void>
  counts(): Promise<InboxCounts>
  /** Forgets what was received longer ago than it is to be remembered, but for pending rows; how many. */
  prune(now: number): Promise<number>
  /** Any operation of the table in `operations.ts`, by its name. */
  call: <N extends OperationName>(
    name: N,
    ...args: Parameters<InboxFunctions[N]>
  ) => Promise<ReturnType<InboxFunctions[N]>>
  /** False while the thread starts, or is dead and not replaced yet. */
  readonly alive: boolean
  /** Resolves when the thread is ready, not needed, or could not start; never rejects. Calls wait for it. */
  readonly started: Promise<void>
  /** Finishes what was asked, and ends the thread. */
  close(): Promise<void>
}

/** What the thread is started with, and whom it tells. */
export interface InboxThreadDeps {
  readonly dataDir: string
  /** How long deliveries are remembered, milliseconds. */
  readonly keepMs: number
  /** Nothing is stored: the thread starts with the first delivery, and until then every answer is that of an empty inbox. */
  readonly isEmpty?: boolean
  /** The thread has died, could not start, or met damage; it is tried again. */
  readonly onFailed: (message: string) => void
  /** It works again. */
  readonly onRevived?: () => void
  /** Pause before a thread that died is replaced, milliseconds; five seconds when not given. */
  readonly restartMs?: number
}

const UNAVAILABLE = 'the inbox is not available now; the log says why'

/** Starts the inbox thread, now or with the first delivery. A database that cannot be opened is reported, and tried again. */
export function startInboxThread(deps: InboxThreadDeps): InboxThread {
  const calls = createCalls<InboxQuestion, unknown>(() => new MirrorError('storage', UNAVAILABLE))
  let supervisor: Supervisor<ToInbox> | null = null
  let starting: Promise<void> | null = null
  let isClosed = false
  const start = (): void => {
    const thread = (supervisor = superviseInbox(deps, calls))
    starting = thread.started.finally(() => (starting = null))
  }
  if (deps.isEmpty !== true) start()
  const call: InboxThread['call'] = async (name, ...args) => {
    if (supervisor === null && !isClosed) {
      const empty = EMPTY[name]
      if (empty !== undefined) return empty
      start()
    }
    if (starting !== null) await starting
    try {
      return (await calls.call({ name, args })) as never // the other side returns what the operation of this name returned
    } catch (error) {
      if (error instanceof MirrorError && error.code === 'corrupt') deps.onFailed(error.message)
      throw error
    }
  }
  return {
    receive: (delivery) => call('receive', exactBody(delivery), MAX_PENDING),
    pending: async (...args) => (await call('pending', ...args)).map(withBuffer),
    dead: async (...args) => (await call('dead', ...args)).map(withBuffer),
    nextDueAt: () => call('nextDueAt'),
    settle: (settlements) => call('settle', settlements),
    counts: () => call('counts'),
    prune: (now) => call('prune', now - deps.keepMs),
    call,
    get started() {
      return starting ?? Promise.resolve()
    },
    get alive() {
      return supervisor?.isReady ?? true
    },
    async close() {
      isClosed = true
      await supervisor?.stop()
    },
  }
}

function superviseInbox(deps: InboxThreadDeps, calls: Calls<InboxQuestion, unknown>): Supervisor<ToInbox> {
  const supervisor = supervise<ToInbox, FromInbox>({
    file: workerFile('inbox.worker', import.meta.url),
    data: () => ({ dataDir: deps.dataDir }) satisfies InboxStart,
    limits: { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 256 },
    ...(deps.restartMs !== undefined && { restartMs: deps.restartMs }),
    onMessage(message) {
      if (message.type === 'replies') message.replies.forEach(calls.settle)
      else deps.onRevived?.()
    },
    onReady(isRestart) {
      calls.connect((call) => supervisor.post(call))
      if (isRestart) deps.onRevived?.()
    },
    onFailed: deps.onFailed,
    onEnded: () => calls.disconnect(),
  })
  return supervisor
}

/** A small buffer is a window of a large one, and all of that would be copied to the other thread. */
function exactBody(delivery: NewDelivery): NewDelivery {
  return { ...delivery, body: new Uint8Array(delivery.body) }
}

/** Buffers arrive from the other thread as what they are made of. */
function withBuffer(row: InboxRow): InboxRow {
  return { ...row, body: Buffer.from(row.body) }
}
