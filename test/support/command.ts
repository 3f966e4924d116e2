import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** The program's file. */
export const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
/** Gives the constants of a process the values of its environment, before the program starts. */
const LIMITS = new URL('limits-here.ts', import.meta.url).href
/** Node stores compiled code here, by its content: a process starts in half the time, also in the next run of the suite. */
export const COMPILED = fileURLToPath(new URL('../../node_modules/.cache/compiled', import.meta.url))

export interface Finished {
  code: number | null
  signal: NodeJS.Signals | null
  out: string
  err: string
}

export interface Started {
  child: ChildProcess
  /** Resolves when the process has ended and said all. */
  finished: Promise<Finished>
  /** Resolves with what was said so far once `pattern` shows up on either stream; rejects when the process ends first. */
  said(pattern: RegExp): Promise<string>
}

/**
 * Starts the `patchmirror` command as a user would: the real program in a process of its own, with this environment only.
 * `within`: a command that becomes the program, such as `ip netns exec NAME`.
 */
export function start(
  args: readonly string[],
  env: Record<string, string>,
  cwd: string,
  within: readonly string[] = [],
): Started {
  const limits = Object.keys(env).some((name) => name.startsWith('LIMIT_')) ? ['--import', LIMITS] : []
  const [command = process.execPath, ...rest] = [...within, process.execPath, ...limits, MAIN, ...args]
  const child = spawn(command, rest, {
    cwd,
    // As the unit for systemd sets it, and as the suites have it themselves.
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: COMPILED, MALLOC_ARENA_MAX: '2', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  let err = ''
  const listeners = new Set<() => void>()
  const heard = (): void => {
    for (const listener of listeners) listener()
  }
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString()
    heard()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString()
    heard()
  })
  const finished = new Promise<Finished>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, out, err }))
  })
  const said = (pattern: RegExp): Promise<string> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (!pattern.test(out + err)) return
        listeners.delete(look)
        resolve(out + err)
      }
      listeners.add(look)
      void finished.then(({ code }) => reject(new Error(`ended with ${code}: ${out}${err}`)))
      look()
    })
  return { child, finished, said }
}

/** Runs the command to its end. */
export function run(args: readonly string[], env: Record<string, string>, cwd: string): Promise<Finished> {
  return start(args, env, cwd).finished
}
