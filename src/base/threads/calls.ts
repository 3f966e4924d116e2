import type { MessagePort, Transferable } from 'node:worker_threads'
import { type ThreadFailure, errorOf, failureOf } from './failure.ts'

/** A call of the other side of a port, with the number that its reply repeats. What is asked must survive a structured clone. */
export interface NumberedCall<Asked> {
  readonly id: number
  readonly asked: Asked
}

/** The reply to a call: its result, or the error of the work. */
export type CallReply<Result> =
  { readonly id: number; readonly result: Result } | { readonly id: number; readonly failure: ThreadFailure }

interface Pending<Result> {
  readonly resolve: (result: Result) => void
  readonly reject: (error: Error) => void
}

/** Creates the calling side; `unavailable` makes the error of a call that will not be answered. */
export function createCalls<Asked, Result>(unavailable: () => Error) {
  const pending = new Map<number, Pending<Result>>()
  let nextId = 0
  let send: ((call: NumberedCall<Asked>) => void) | null = null
  return {
    /** Resolves with the result; rejects with the error of the work, and with another one where there will be no reply. */
    call: (asked: Asked): Promise<Result> =>
      new Promise((resolve, reject) => {
        if (send === null) return reject(unavailable())
        const id = nextId++
        pending.set(id, { resolve, reject })
        send({ id, asked })
      }),
    /** Settles the call that a reply belongs to. */
    settle: (reply: CallReply<Result>): void => {
      const call = pending.get(reply.id)
      pending.delete(reply.id)
      if ('failure' in reply) call?.reject(errorOf(reply.failure))
      else call?.resolve(reply.result)
    },
    /** Sends calls with `post` from now on. */
    connect(post: (call: NumberedCall<Asked>) => void): void {
      send = post
    },
    /** Rejects the calls without a reply with `error`, and all calls until the next `connect`. */
    disconnect(error: Error = unavailable()): void {
      send = null
      for (const { reject } of pending.values()) reject(error)
      pending.clear()
    },
  }
}

/** The calling side of numbered calls over a port. */
export type Calls<Asked, Result> = ReturnType<typeof createCalls<Asked, Result>>

/**
 * Answers calls that come over a port, each with what `work` returns or throws. `moved`: what of a result is handed over
 * instead of copied.
 */
export function answerCalls<Result>(
  port: MessagePort,
  work: (asked: never) => Result | Promise<Result>,
  moved: (result: Result) => Transferable[] = () => [],
): void {
  const answer = async ({ id, asked }: NumberedCall<never>): Promise<void> => {
    try {
      const result = await work(asked)
      port.postMessage({ id, result } satisfies CallReply<Result>, moved(result))
    } catch (error) {
      port.postMessage({ id, failure: failureOf(error) } satisfies CallReply<Result>)
    }
  }
  port.on('message', (call: NumberedCall<never>) => void answer(call))
}
