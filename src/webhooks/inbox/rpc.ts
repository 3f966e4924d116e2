import { MirrorError } from '../../core/errors.ts'
import type { RpcReply, ArgumentsOf, OperationName, ResultOf } from './operations.ts'
import type { ToInbox } from './inbox.worker.ts'

interface Waiting {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

const GONE = 'the inbox is not available at the moment; the log says why'

/** The questions on their way; all that a dying thread leaves open are refused. */
export function createQuestions() {
  const waiting = new Map<number, Waiting>()
  let next = 0
  let send: ((message: ToInbox) => void) | null = null
  const ask = <Name extends OperationName>(
    name: Name,
    ...args: ArgumentsOf<Name>
  ): Promise<ResultOf<Name>> =>
    new Promise((resolve, reject) => {
      if (send === null) return reject(new MirrorError('storage', GONE))
      const id = next++
      // What comes back is what the operation of this name returned.
      waiting.set(id, { resolve: (result) => resolve(result as ResultOf<Name>), reject })
      send({ id, name, args })
    })
  const settle = (reply: RpcReply): void => {
    const asked = waiting.get(reply.id)
    waiting.delete(reply.id)
    if ('code' in reply) asked?.reject(new MirrorError(reply.code, reply.message))
    else asked?.resolve(reply.result)
  }
  return {
    ask,
    settle,
    sendTo: (post: (message: ToInbox) => void) => void (send = post),
    lose(): void {
      send = null
      for (const { reject } of waiting.values()) reject(new MirrorError('storage', GONE))
      waiting.clear()
    },
  }
}
