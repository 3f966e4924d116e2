import { Worker } from 'node:worker_threads'
import { messageOf } from '../errors.ts'
import type { FromRelay, RelayStart } from './worker.ts'

/** The relay's thread as the rest of the program sees it. */
export interface RelayThread {
  /** Ends it. What is under way is sent again by the next start. */
  close(): Promise<void>
}

/** What the thread is started with, and whom it tells. */
export interface RelayThreadDeps extends RelayStart {
  /** A fault: nothing is lost by it, and it is tried again. */
  readonly onFault: (message: string) => void
}

/** A thread that died is replaced after this long. */
const RESTART_MS = 5_000

/** The worker file beside this one: `.ts` when run from source, `.js` when built. */
function workerUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url)
}

/** Starts the relay. Never rejects: what keeps it from starting is told, and tried again. */
export function startRelayThread({ onFault, ...start }: RelayThreadDeps): RelayThread {
  let worker: Worker | null = null
  let restart: NodeJS.Timeout | null = null
  let stopping = false
  const spawn = (): void => {
    const limits = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 256 }
    const started = new Worker(workerUrl(), { workerData: start, resourceLimits: limits })
    worker = started
    started.on('message', (message: FromRelay) => {
      if (message.type !== 'ready') onFault(message.message)
    })
    started.on('error', (error) => onFault(messageOf(error)))
    started.on('exit', () => {
      worker = null
      if (!stopping) restart = setTimeout(spawn, RESTART_MS).unref()
    })
  }
  spawn()
  return {
    async close() {
      stopping = true
      if (restart !== null) clearTimeout(restart)
      const last = worker
      if (last === null) return
      const exited = new Promise((resolve) => last.once('exit', resolve))
      last.postMessage('stop')
      await exited
    },
  }
}
