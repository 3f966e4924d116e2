import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import process from 'node:process'
import type { Account, Share } from './account.ts'
import { http } from './http.ts'
import type { Holder } from './ledger.ts'
import { clientNetwork } from './network.ts'
import { sentBytes } from './sent.ts'

/** Larger answers are given to Node in pieces of this size, bytes, each when the one before it has left. */
export const ANSWER_PIECE = 32 * 1024
/** A client that takes nothing of an answer for this long is cut off, milliseconds; it may come back with a range. */
const STALLED_MS = 120_000

/** Resolves when a response takes more, or is gone; ends one that takes nothing for two minutes. */
export function writable(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      clearTimeout(stalled)
      response.off('drain', go).off('close', go)
      resolve()
    }
    const stalled = setTimeout(() => response.destroy(), STALLED_MS)
    if (response.destroyed) go()
    else response.on('drain', go).on('close', go)
  })
}

const shared = new WeakSet<object>()

/** Marks a body that is in memory whether or not it is being sent: only what is on its way to a client counts for that client. */
export function markShared(body: Buffer): Buffer {
  shared.add(body)
  return body
}

/** Takes the mark away, as the body is kept for clients alone now. */
export function unmarkShared(body: Buffer): void {
  shared.delete(body)
}

/** What the responses of a server are counted by. */
export interface ResponseAccount {
  readonly account: Account
  /** Returns who sent a request. */
  readonly holderOf: (request: IncomingMessage) => Holder
}

/** Where nothing is counted: in a server without an account. */
const UNCOUNTED: Share = {
  take: () => true,
  give: () => undefined,
  waits: () => undefined,
  sends: () => undefined,
  queues: () => undefined,
  works: () => undefined,
  release: () => undefined,
}

/**
 * A response whose unsent bytes count in an account, and which leaves in pieces. Node takes the class of responses as an option:
 * it is the one place that every answer passes.
 */
abstract class CountedResponse extends http.ServerResponse {
  private request: Share | null = null
  private answer: Share | null = null
  /** Bytes that Node keeps because the client did not take them, as they count in the account. */
  private unsent = 0
  private hasBegun = false
  /** Whether the body is counted as a whole, and leaves in pieces. */
  private isLarge = false

  protected abstract counts(): ResponseAccount

  /** Returns who sent the request. */
  get holder(): Holder {
    return this.counts().holderOf(this.req)
  }

  /** Returns what the request itself holds: its body, and what is made for it. */
  share(): Share {
    return (this.request ??= this.hold())
  }

  override write(...given: unknown[]): boolean {
    this.hasBegun = true
    const goesOn = super.write(...(given as [Uint8Array]))
    if (!this.isLarge) process.nextTick(countSent, this)
    return goesOn
  }

  override end(...given: unknown[]): this {
    const [body] = given
    const isLarge = body instanceof Uint8Array && body.length > ANSWER_PIECE
    if (isLarge && !this.writableEnded && !this.destroyed) return this.endLarge(body)
    super.end(...(given as [Uint8Array]))
    if (!this.isLarge) process.nextTick(countSent, this)
    return this
  }

  private hold(): Share {
    const { account, holderOf } = this.counts()
    const share = account.hold(holderOf(this.req))
    if (this.closed) share.release()
    else this.once('close', () => share.release())
    return share
  }

  private holdAnswer(): Share {
    if (this.answer !== null) return this.answer
    const { socket } = this.req
    const share = this.hold()
    share.sends(
      () => sentBytes(socket),
      () => void this.destroy(),
    )
    this.on('drain', () => this.countUnsent())
    return (this.answer = share)
  }

  /** Counts what Node keeps because the client did not take it. */
  countUnsent(): void {
    const bytes = this.isLarge ? 0 : this.writableLength
    if (bytes === this.unsent) return
    const share = this.holdAnswer()
    const more = bytes - this.unsent
    this.unsent = bytes
    if (more < 0) share.give(-more)
    else if (!share.take(more)) this.destroy()
  }

  private endLarge(body: Uint8Array): this {
    const bytes = shared.has(body) ? ANSWER_PIECE : body.length
    if (!this.holdAnswer().take(bytes)) return this.refuse()
    if (!this.headersSent && !this.hasHeader('content-length')) this.setHeader('Content-Length', body.length)
    this.isLarge = true
    void this.sendPieces(body)
    return this
  }

  private async sendPieces(body: Uint8Array): Promise<void> {
    for (let at = 0; at < body.length; at += ANSWER_PIECE) {
      if (this.destroyed) return
      if (!this.write(body.subarray(at, at + ANSWER_PIECE))) await writable(this)
    }
    this.end()
  }

  /** Answers 503 instead. The head that was made for the answer is not sent, and its connection ends. */
  private refuse(): this {
    const { socket } = this
    if (socket === null || this.hasBegun) return this.destroy()
    this.statusCode = 503
    const message = 'too many answers wait for their clients: try again later'
    const body = JSON.stringify({ error: 'busy', message })
    const head = [
      'HTTP/1.1 503 Service Unavailable',
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
      'Cache-Control: no-store',
      'Retry-After: 30',
      'Connection: close',
    ]
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
    socket.destroySoon()
    return this
  }
}

/** Called when Node has tried to send what was written: most clients have taken it by then. */
function countSent(response: CountedResponse): void {
  if (!response.closed) response.countUnsent()
}

/** Returns the class of the responses of a server whose bytes count. */
export function countedResponses(counts: ResponseAccount): typeof ServerResponse {
  return class extends CountedResponse {
    protected counts(): ResponseAccount {
      return counts
    }
  } as unknown as typeof ServerResponse
}

/** Returns what a request holds until its response is closed; uncounted in a server without an account. */
export function shareFor(response: ServerResponse): Share {
  return response instanceof CountedResponse ? response.share() : UNCOUNTED
}

/** Of clients of a server without an account. */
const UNKNOWN: Holder = { address: () => '', hasKey: () => false }

/** Returns who waits for a response; all count as one client in a server without an account. */
export function holderFor(response: ServerResponse): Holder {
  return response instanceof CountedResponse ? response.holder : UNKNOWN
}

/** Counts a body that was written to a socket without a response, until its client has taken it. */
export function countWritten(account: Account, socket: Socket, body: Buffer): void {
  const address = (): string => clientNetwork(socket.remoteAddress ?? '')
  const share = account.hold({ address, hasKey: () => false })
  const release = (): void => {
    socket.off('drain', release).off('close', release)
    share.release()
  }
  share.sends(
    () => sentBytes(socket),
    () => void socket.destroy(),
  )
  socket.on('drain', release).on('close', release)
  if (!share.take(shared.has(body) ? ANSWER_PIECE : body.length)) socket.destroy()
}
