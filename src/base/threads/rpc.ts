import { type ErrorCode, MirrorError } from '../errors.ts'

/** The functions that the other side of a port answers, by name. */
type Functions<Name extends string> = Readonly<Record<Name, (...args: never[]) => unknown>>

/** A call of one function, with the number that its reply repeats. Arguments must survive a structured clone. */
export interface RpcCall<Name extends string> {
  readonly id: number
  readonly name: Name
  readonly args: readonly unknown[]
}

/** The reply to a call: the function's result, or the code and message of its error. */
export type RpcReply =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly code: ErrorCode; readonly message: string }

interface Pending {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

/** The calling side of numbered calls over a port. */
export interface Rpc<Name extends string, Called extends Functions<Name>> {
  /** Resolves with the function's result; rejects with its error, and with `unavailable` while the port is not connected. */
  readonly call: <N extends Name>(name: N, ...args: Parameters<Called[N]>) => Promise<ReturnType<Called[N]>>
  /** Settles the call that a reply belongs to. */
  readonly settle: (reply: RpcReply) => void
  /** Sends calls with `post` from now on. */
  readonly connect: (post: (call: RpcCall<Name>) => void) => void
  /** Rejects the calls without a reply, and all calls until the next `connect`. */
  readonly disconnect: () => void
}

/** Creates the calling side; `unavailable` makes the error of a call that will not be answered. */
export function createRpc<Name extends string, Called extends Functions<Name>>(
  unavailable: () => MirrorError,
): Rpc<Name, Called> {
  const pending = new Map<number, Pending>()
  let nextId = 0
  let send: ((call: RpcCall<Name>) => void) | null = null
  return {
    call: (name, ...args) =>
      new Promise((resolve, reject) => {
        if (send === null) return reject(unavailable())
        const id = nextId++
        // The other side returns what the function of this name returned.
        pending.set(id, { resolve: (result) => resolve(result as never), reject })
        send({ id, name, args })
      }),
    settle(reply) {
      const call = pending.get(reply.id)
      pending.delete(reply.id)
      if ('code' in reply) call?.reject(new MirrorError(reply.code, reply.message))
      else call?.resolve(reply.result)
    },
    connect(post) {
      send = post
    },
    disconnect() {
      send = null
      for (const { reject } of pending.values()) reject(unavailable())
      pending.clear()
    },
  }
}
