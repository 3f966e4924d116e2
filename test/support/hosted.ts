import { type ChildProcess, fork } from 'node:child_process'
import { finished } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll } from 'vitest'
import { type Ask, endOf } from './command-host.ts'
import { COMPILED, type Finished, run } from './command.ts'

const HOST = fileURLToPath(new URL('command-host.ts', import.meta.url))

/** How long a host waits for the next test file that uses it, milliseconds. */
const IDLE_MS = 3_000
/** After so many runs a host is not used for another file: its memory grows a little with each. */
const MANY_RUNS = 80
/** A young heap of 2 MB and two arenas: a quarter less memory in the end. */
const SMALL = { execArgv: ['--max-semi-space-size=2'], env: { MALLOC_ARENA_MAX: '2' } }

/** The host of all test files of this process; it ends with the process too. */
let host: Host | null = null
let isBusy = false
let idle: NodeJS.Timeout | undefined

/**
 * Runs commands one after the other in one process of their own, with the streams, environment and folder of each: for
 * tests of what a command says and does, half a second of processor time less for each than `run`. A command that is run
 * beside another, or whose environment Node reads when it starts, gets a process of its own. Call it once in a test file.
 */
export function commandHost(): typeof run {
  beforeAll(() => clearTimeout(idle))
  afterAll(() => {
    if (host !== null && host.runs() > MANY_RUNS) return host.close()
    idle = setTimeout(() => void host?.close(), IDLE_MS).unref()
    return undefined
  })
  return async (args, env, cwd) => {
    if (isBusy || Object.keys(env).some((name) => name.startsWith('NODE_'))) return run(args, env, cwd)
    isBusy = true
    try {
      if (host === null || host.hasEnded()) host = startHost()
      return await host.run(args, env, cwd)
    } finally {
      isBusy = false
    }
  }
}

interface Host {
  run: typeof run
  hasEnded(): boolean
  /** How many commands it has run. */
  runs(): number
  close(): Promise<void>
}

function startHost(): Host {
  const env = { PATH: process.env['PATH'], NODE_COMPILE_CACHE: COMPILED, ...SMALL.env }
  const { execArgv } = SMALL
  const child = fork(HOST, [], { env, execArgv, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  child.unref() // it ends when this process does
  const out = collect(child.stdout)
  const err = collect(child.stderr)
  const said = [child.stdout, child.stderr].flatMap((stream) => stream ?? []).map((one) => finished(one))
  const ended = new Promise<Pick<Finished, 'code' | 'signal'>>((resolve) => {
    child.once('exit', (code, signal) => {
      void Promise.allSettled(said).then(() => resolve({ code, signal }))
    })
  })
  let number = 0
  return {
    async run(args, own, cwd) {
      const path = process.env['PATH']
      const ask: Ask = {
        number: ++number,
        args,
        env: { ...(path !== undefined && { PATH: path }), ...own },
        cwd,
      }
      const answered = answerOf(child)
      child.send(ask)
      const end = await Promise.race([answered, ended])
      if (end.signal === null && child.connected)
        await Promise.race([Promise.all([out.has(endOf(number)), err.has(endOf(number))]), ended])
      return { ...end, out: out.take(endOf(number)), err: err.take(endOf(number)) }
    },
    hasEnded: () => !child.connected,
    runs: () => number,
    async close() {
      if (child.connected) child.disconnect()
      await ended
    },
  }
}

function answerOf(child: ChildProcess): Promise<Pick<Finished, 'code' | 'signal'>> {
  return new Promise((resolve) => {
    child.once('message', (answer) => {
      const { code } = answer as { code: number } // the host sends nothing else
      resolve({ code, signal: null })
    })
  })
}

/** Keeps what a stream says until it is taken. */
function collect(stream: NodeJS.ReadableStream | null) {
  let text = ''
  let heard = (): void => undefined
  stream?.on('data', (chunk: Buffer) => {
    text += chunk.toString()
    heard()
  })
  return {
    /** Resolves once the text ends with this. */
    has: (end: string): Promise<void> =>
      new Promise((resolve) => {
        heard = () => {
          if (text.endsWith(end)) resolve()
        }
        heard()
      }),
    /** Gives back what was said, without this end. */
    take(end: string): string {
      const said = text.endsWith(end) ? text.slice(0, -end.length) : text
      text = ''
      return said
    },
  }
}
