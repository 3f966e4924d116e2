/** Body of a response: read it to its end, or destroy it. */
export interface Body extends AsyncIterable<Buffer> {
  /**
   * Returns the body in one piece when all of it has arrived, as a small one mostly has with its headers; null: read it as
   * it comes. Costs neither a stream nor a promise.
   */
  whole(): Buffer | null
  /** Returns the next bytes that were received but not read; null: none. */
  read(): Buffer | null
  destroy(error?: Error): unknown
  /** Discards the rest, and with a long rest the connection. Resolves at the end of the body or of its connection. */
  dump(): Promise<unknown>
}

/** What a body requests of the connection that it arrives on. */
interface Flow {
  readonly pause: () => void
  readonly resume: () => void
  readonly abort: (error: Error) => void
}

/** A body while it arrives. */
export interface IncomingBody {
  readonly body: Body
  push(chunk: Buffer): void
  end(): void
  /** Ends the body with an error, which its reader gets after the bytes that were received. */
  fail(error: unknown): void
}

/** Unread bytes from which on the connection pauses. */
const PAUSE_BYTES = 65_536
/** Longest body that is discarded by reading it; a longer one costs more than a new connection. */
const MAX_DISCARD = 131_072

/** Received bytes that are not read yet. While there are many, the connection is paused. */
function createUnread({ pause, resume }: Pick<Flow, 'pause' | 'resume'>) {
  const chunks: Buffer[] = []
  let waiting = 0
  let paused = false
  return {
    add(chunk: Buffer): void {
      chunks.push(chunk)
      waiting += chunk.length
      if (waiting < PAUSE_BYTES || paused) return
      paused = true
      pause()
    },
    take(): Buffer | null {
      const chunk = chunks.shift() ?? null
      waiting -= chunk?.length ?? 0
      if (paused && waiting < PAUSE_BYTES) {
        paused = false
        resume()
      }
      return chunk
    },
    takeAll(): Buffer {
      const [first = Buffer.alloc(0), ...others] = chunks.splice(0)
      return others.length === 0 ? first : Buffer.concat([first, ...others])
    },
  }
}

/** Creates a body that holds received bytes until they are read. */
export function createBody(flow: Flow): IncomingBody {
  let state: 'open' | 'ended' | { error: unknown } = 'open'
  const resume = (): void => {
    if (state === 'open') flow.resume()
  }
  const unread = createUnread({ pause: flow.pause, resume })
  let received = 0
  let discarding = false
  let wake: (() => void) | null = null
  const changed = (): Promise<void> => new Promise((resolve) => (wake = resolve))
  const settle = (next: typeof state): void => {
    if (state === 'open') state = next
    wake?.()
  }
  const destroy = (error: Error = new Error('the body was not read to its end')): void => {
    if (state !== 'open') return
    settle({ error })
    flow.abort(error)
  }
  const add = (chunk: Buffer): void => {
    received += chunk.length
    if (!discarding) unread.add(chunk)
    else if (received > MAX_DISCARD) destroy()
    wake?.()
  }
  const dump = async (): Promise<void> => {
    discarding = true
    while (unread.take() !== null);
    if (received > MAX_DISCARD) destroy()
    while (state === 'open') await changed()
  }
  const chunks = async function* (): AsyncGenerator<Buffer, void, undefined> {
    try {
      for (;;) {
        const chunk = unread.take()
        if (chunk !== null) yield chunk
        else if (state === 'ended') return
        else if (state !== 'open') throw state.error
        else await changed()
      }
    } finally {
      destroy() // the reader left before the end
    }
  }
  const whole = (): Buffer | null => (state === 'ended' ? unread.takeAll() : null)
  return {
    push: add,
    end: () => settle('ended'),
    fail: (error) => settle({ error }),
    body: { whole, read: () => unread.take(), destroy, dump, [Symbol.asyncIterator]: chunks },
  }
}
