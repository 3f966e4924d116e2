import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** A server in a process of its own. */
export interface ServerChild {
  readonly port: number
  stop(): Promise<void>
}

/** In a child: tells the parent where it listens. */
export function portOf(port: number): void {
  process.send?.({ port })
}

/** In a child: ends when the parent goes. */
export function endWithParent(): void {
  process.on('disconnect', () => process.exit(0))
}

/** Starts a script of this folder and waits for its port. */
export async function startChild(script: string, args: readonly string[]): Promise<ServerChild> {
  const child = fork(fileURLToPath(new URL(script, import.meta.url)), args)
  const { port } = await messageOf<{ port: number }>(child)
  return { port, stop: () => stopped(child) }
}

/** The next message of a child; throws when it ends first, or stays silent for `seconds`. */
export function messageOf<T>(child: ChildProcess, seconds = 30): Promise<T> {
  return new Promise((resolve, reject) => {
    const silent = () => reject(new Error(`a child said nothing for ${seconds} s`))
    const timer = setTimeout(silent, seconds * 1000)
    const gone = (code: number | null) => {
      clearTimeout(timer)
      reject(new Error(`a child ended with ${code ?? 'a signal'}`))
    }
    child.once('exit', gone)
    child.once('message', (message) => {
      clearTimeout(timer)
      child.off('exit', gone)
      resolve(message as T)
    })
  })
}

/** Ends a child and waits until it is gone. */
export function stopped(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    child.once('exit', () => resolve())
    child.kill()
  })
}
