import { Worker } from 'node:worker_threads'
import { MirrorError, messageOf } from '../../core/errors.ts'
import type {
  InboxCounts,
  InboxRow,
  NewDelivery,
  Received,
  Settlement,
} from '../../store/webhooks/inbox.ts'
import type { ArgumentsOf, OperationName, ResultOf } from './operations.ts'
import { createQuestions } from './rpc.ts'
import type { FromInbox, InboxStart, ToInbox } from './inbox.worker.ts'

/**
 * The inbox as the serving thread has it: it asks, and never waits for a disk. Every call rejects with `storage` (or
 * `corrupt`, `schema`) when it could not be done; nothing of it is stored then.
 */
export interface InboxThread {
  /** Resolves when the delivery is safely on disk, or `full`. */
  receive(delivery: NewDelivery): Promise<Received>
  /** Rows that are due, oldest first, without their bodies. */
  pending(now: number, limit: number): Promise<InboxRow[]>
  settle(settlements: readonly Settlement[]): Promise<void>
  counts(): Promise<InboxCounts>
  /** Whether another process wrote to the database since this was asked last, as `webhooks replay` does. */
  changed(): Promise<boolean>
  /** Forgets what was received longer ago than it is to be remembered, but for pending rows; how many. */
  prune(now: number): Promise<number>
  /** Any operation of the table in `operations.ts`, by its name. */
  call<Name extends OperationName>(name: Name, ...args: ArgumentsOf<Name>): Promise<ResultOf<Name>>
  /** False while the thread is dead and not replaced yet. */
  readonly alive: boolean
  /** Finishes what was asked, and ends the thread. */
  close(): Promise<void>
}

/** What the thread is started with, and whom it tells. */
export interface InboxThreadDeps {
  readonly dataDir: string
  /** How long deliveries are remembered, milliseconds. */
  readonly keepMs: number
  /** So many rows may be pending; no bound when not given. */
  readonly maxPending?: number
  /** The thread has died, or could not start; it is tried again. */
  readonly onFailed: (message: string) => void
  /** It works again. */
  readonly onRevived?: () => void
  /** Pause before a thread that died is replaced, milliseconds; five seconds when not given. */
  readonly restartMs?: number
}

/** The worker file beside this one: `.ts` when run from source, `.js` when built. */
function workerUrl(): URL {
  return new URL(
    import.meta.url.endsWith('.ts') ? './inbox.worker.ts' : './inbox.worker.js',
    import.meta.url,
  )
}

const RESTART_MS = 5_000

/** Starts the inbox thread. Never rejects: a database that cannot be opened is told, and tried again and again. */
export async function startInboxThread(deps: InboxThreadDeps): Promise<InboxThread> {
  const questions = createQuestions()
  let stopping = false
  let worker: Worker | null = null // null: it is dead and not replaced yet
  const attend = (started: Worker): void => {
    worker = started
    questions.sendTo((message) => started.postMessage(message))
    started.on('message', (message: FromInbox) => {
      if ('replies' in message) message.replies.forEach(questions.settle)
    })
    started.on('error', (error) => deps.onFailed(messageOf(error)))
    started.on('exit', () => {
      worker = null
      questions.lose()
      reviveSoon()
    })
  }
  const start = async (): Promise<void> => {
    try {
      attend(await spawn(deps.dataDir))
    } catch (error) {
      deps.onFailed(messageOf(error))
      reviveSoon()
    }
  }
  const reviveSoon = (): void => {
    if (!stopping) setTimeout(() => void revive(), deps.restartMs ?? RESTART_MS).unref()
  }
  const revive = async (): Promise<void> => {
    if (stopping) return
    await start()
    if (worker !== null) deps.onRevived?.()
  }
  await start()

  const { ask } = questions
  return {
    receive: (delivery) => ask('receive', exactBody(delivery), deps.maxPending),
    pending: async (now, limit) => (await ask('pending', now, limit)).map(withBuffer),
    settle: (settlements) => ask('settle', settlements),
    counts: () => ask('counts'),
    changed: () => ask('changed'),
    prune: (now) => ask('prune', now - deps.keepMs),
    call: ask,
    get alive() {
      return worker !== null
    },
    async close() {
      stopping = true
      const last = worker
      if (last === null) return
      const exited = new Promise((resolve) => last.once('exit', resolve))
      last.postMessage({ stop: true } satisfies ToInbox)
      await exited
    },
  }
}

/** A small buffer is a window of a large one, and all of that would be copied to the other thread. */
function exactBody(delivery: NewDelivery): NewDelivery {
  return { ...delivery, body: new Uint8Array(delivery.body) }
}

/** Buffers arrive from the other thread as what they are made of. */
function withBuffer(row: InboxRow): InboxRow {
  return { ...row, body: Buffer.from(row.body) }
}

/** Resolves once the thread has opened the database; rejects with its own words when it cannot. */
async function spawn(dataDir: string): Promise<Worker> {
  const data: InboxStart = { dataDir }
  const worker = new Worker(workerUrl(), {
    workerData: data,
    resourceLimits: { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 256 },
  })
  const first = await new Promise<FromInbox>((resolve, reject) => {
    worker.once('error', reject)
    worker.once('message', resolve)
    worker.once('exit', () => reject(new MirrorError('storage', 'the inbox thread ended at once')))
  })
  for (const event of ['error', 'message', 'exit']) worker.removeAllListeners(event)
  if ('refused' in first) throw new MirrorError(first.refused.code, first.refused.message)
  return worker
}
