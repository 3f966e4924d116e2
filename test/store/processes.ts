import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url))

/** Another process at work on a data folder; killed when the test ends, if it still lives. */
export interface Child {
  pid: number
  /** Kills it as a power cut would, and waits until it is gone. */
  kill(): Promise<void>
  /** Its exit code, once it has ended by itself. */
  ended: Promise<number | null>
}

/** Starts `child.ts` and waits for its first line of output. */
export async function startChild(what: string, dir: string): Promise<Child> {
  const child = spawn(process.execPath, [CHILD, what, dir], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'exit').then(([code]) => code as number | null)
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
  }
  onTestFinished(kill)
  await firstOutput(child, ended)
  return { pid: child.pid ?? 0, kill, ended }
}

async function firstOutput(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  if (child.stdout === null) throw new Error('no output to read')
  await Promise.race([once(child.stdout, 'data'), ended])
}
