import { MirrorError } from '../errors.ts'
import { type CallReply, type NumberedCall, createCalls } from './calls.ts'
import { type RunningWorker, type WorkerOptions, startWorker } from './worker.ts'

/** A worker thread that answers requests one at a time. */
export interface RequestThread<Request, Reply> {
  /**
   * Resolves with the answer; null when `isGone` reports that the client is gone. Rejects with the error of the work, with
   * `not_ready` when too many wait, and with the thread's own error when it dies. `later`: only once no other request waits. When all places are
   * taken, the address that has most of them gives its last one up to an address that has at least two fewer.
   */
  ask(request: Request, asking: Asking, when?: 'now' | 'later'): Promise<Reply | null>
  /** Reports whether the thread has been started, and has not ended. */
  isRunning(): boolean
  close(): Promise<void>
}

interface RequestThreadOptions extends WorkerOptions {
  /** Requests that may wait for the thread. */
  readonly maxWaiting: number
  /** What they are for, as in `too many requests for lists`. */
  readonly what: string
}

/** Requests that may wait until no other one does: each may take long. */
const MAX_LATER = 32

/** Who asks. */
export interface Asking {
  /** Reports whether the client is gone. */
  readonly isGone: () => boolean
  /** Network of the client; null: the mirror itself, for which there is always a place. */
  readonly address: string | null
}

interface Waiting<Request, Reply> extends Asking {
  readonly request: Request
  readonly resolve: (reply: Reply | null) => void
  readonly reject: (error: unknown) => void
}

/**
 * Starts the thread at the first request. It gets one request at a time, so that a request whose client is gone is never
 * started, and a thread that dies loses only one request.
 */
export function createRequestThread<Request, Reply>(options: RequestThreadOptions): RequestThread<Request, Reply> {
  const waiting: Waiting<Request, Reply>[] = []
  const later: Waiting<Request, Reply>[] = []
  const ended = (): Error => new Error(`the thread for ${options.what} ended`)
  const calls = createCalls<Request, Reply>(ended)
  let worker: RunningWorker<NumberedCall<Request>> | null = null
  let isBusy = false
  const next = (): void => {
    while (!isBusy) {
      const one = waiting.shift() ?? later.shift()
      if (one === undefined) return
      if (one.isGone()) one.resolve(null)
      else void answer(one)
    }
  }
  const answer = async ({ request, resolve, reject }: Waiting<Request, Reply>): Promise<void> => {
    isBusy = true
    try {
      worker ??= start()
      resolve(await calls.call(request))
    } catch (error) {
      reject(error)
    }
    isBusy = false
    next()
  }
  const start = (): RunningWorker<NumberedCall<Request>> => {
    const made = startWorker<NumberedCall<Request>, CallReply<Reply>>(options, {
      onMessage: calls.settle,
      onEnd(error) {
        if (worker !== made) return
        worker = null
        calls.disconnect(error ?? ended())
      },
    })
    calls.connect((call) => made.post(call))
    return made
  }
  return {
    ask(request, asking, when = 'now') {
      const [queue, most] = when === 'now' ? [waiting, options.maxWaiting] : [later, MAX_LATER]
      if (!findPlace(queue, most, asking, options.what))
        return Promise.reject(new MirrorError('not_ready', tooMany(options.what)))
      return new Promise((resolve, reject) => {
        queue.push({ request, ...asking, resolve, reject })
        next()
      })
    },
    isRunning: () => worker !== null,
    async close() {
      const running = worker
      worker = null
      const error = new MirrorError('aborted', 'the server is closing')
      for (const { reject } of [...waiting.splice(0), ...later.splice(0)]) reject(error)
      calls.disconnect(error)
      await running?.terminate()
    },
  }
}

/** Reports whether there is a place in a queue; makes one where it can. */
function findPlace<Request, Reply>(
  queue: Waiting<Request, Reply>[],
  most: number,
  { address }: Asking,
  what: string,
): boolean {
  const isFree = (): boolean => countClients(queue) < most
  if (address === null || isFree()) return true
  dropGone(queue)
  if (isFree()) return true
  makePlace(queue, address, what)
  return isFree()
}

/** Takes out the requests whose clients are gone: they would keep others out until their turn. */
function dropGone<Request, Reply>(queue: Waiting<Request, Reply>[]): void {
  for (const one of queue.splice(0)) {
    if (one.isGone()) one.resolve(null)
    else queue.push(one)
  }
}

/** Returns the requests of clients that wait. */
function countClients(queue: readonly Asking[]): number {
  let count = 0
  for (const { address } of queue) if (address !== null) count++
  return count
}

/** Takes the last request of the address that has most waiting out, where the one that asks has at least two fewer. */
function makePlace<Request, Reply>(queue: Waiting<Request, Reply>[], asking: string, what: string): void {
  const counts = new Map<string, number>()
  for (const { address } of queue) if (address !== null) counts.set(address, (counts.get(address) ?? 0) + 1)
  const most = Math.max(0, ...counts.values())
  const own = counts.get(asking) ?? 0
  if (own + 2 > most) return
  const isOfMost = ({ address }: Asking): boolean => address !== null && counts.get(address) === most
  const [given] = queue.splice(queue.findLastIndex(isOfMost), 1)
  given?.reject(new MirrorError('not_ready', tooMany(what)))
}

function tooMany(what: string): string {
  return `too many requests for ${what} wait for an answer: try again later`
}
