import { Worker } from 'node:worker_threads'
import { messageOf } from '../../core/errors.ts'
import type { ImportResult } from './inbox.ts'
import type { Shipped } from './outbox.ts'
import { workerFile } from '../../threads/task.ts'
import type { BoxesStart, BoxesStatus, FromBoxes, ToBoxes } from './boxes.worker.ts'

/** The thread of inbox and outbox as the rest of the program sees it. */
export interface BoxesThread {
  /** A snapshot was published: the outbox is to have it. While an export runs, further ones come to one more. */
  published(): void
  status(): BoxesStatus
  /** Ends it. What is under way has a moment to end; what is not whole by then is made again by the next start. */
  close(): Promise<void>
}

/** What the thread is started with, and whom it tells. */
interface BoxesThreadDeps extends BoxesStart {
  readonly onSettled: (settled: ImportResult) => void
  readonly onShipped: (shipped: Shipped) => void
  readonly onFault: (message: string) => void
}

/** A thread that died is replaced after this long. */
const RESTART_MS = 5_000
/** What an export or import that is under way gets to end. */
const PATIENCE_MS = 5_000

/** Starts the thread. Never throws: a thread that dies is told and replaced. */
export function startBoxesThread(deps: BoxesThreadDeps): BoxesThread {
  const { onSettled, onShipped, onFault, ...start } = deps
  let worker: Worker | null = null
  let restart: NodeJS.Timeout | null = null
  let stopping = false
  let status: BoxesStatus = { outbox: null, inbox: null }
  const send = (message: ToBoxes): void => worker?.postMessage(message)
  const spawn = (): void => {
    const started = new Worker(workerFile('boxes.worker', import.meta.url), {
      workerData: start,
      resourceLimits: { maxYoungGenerationSizeMb: 6, maxOldGenerationSizeMb: 2000 },
    })
    worker = started
    started.on('message', (message: FromBoxes) => {
      if (message.type === 'status') status = message.status
      else if (message.type === 'settled') onSettled(message.settled)
      else if (message.type === 'shipped') onShipped(message.shipped)
      else if (message.type === 'fault') onFault(message.message)
    })
    started.on('error', (error) => onFault(`${messageOf(error)}; it is tried again`))
    started.on('exit', () => {
      worker = null
      if (!stopping) restart = setTimeout(spawn, RESTART_MS).unref()
    })
  }
  spawn()
  return {
    published: () => send({ published: true }),
    status: () => status,
    async close() {
      stopping = true
      if (restart !== null) clearTimeout(restart)
      const last = worker
      if (last === null) return
      const exited = new Promise((resolve) => last.once('exit', resolve))
      send({ stop: true })
      const patience = setTimeout(() => void last.terminate(), PATIENCE_MS)
      await exited
      clearTimeout(patience)
    },
  }
}
