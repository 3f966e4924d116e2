import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { applyLimits } from './limits.ts'

/** A run of the command that is asked for. */
export interface Ask {
  /** Of this run alone: the entry module is evaluated once for each. */
  number: number
  args: readonly string[]
  env: Record<string, string>
  cwd: string
}

/** What is written to both streams once a run has ended. */
export function endOf(number: number): string {
  return `\0end of run ${number}\0`
}

const MAIN = new URL('../../src/main.ts', import.meta.url)

/** A pause between two looks at what keeps this process alive, milliseconds. */
const LOOK_MS = 2

/**
 * Runs the program of `src/main.ts` once with these arguments, this environment and this folder. The run has ended when
 * nothing of its own would keep a process alive: a command that does not end by itself does not end here either.
 */
async function perform({ number, args, env, cwd }: Ask): Promise<void> {
  const forget = rememberListeners()
  const idle = alive().length // with both streams, which are opened when they are first used
  for (const name of Object.keys(process.env)) Reflect.deleteProperty(process.env, name)
  Object.assign(process.env, env)
  applyLimits(env)
  process.chdir(cwd)
  process.argv.splice(1, Infinity, fileURLToPath(MAIN), ...args)
  process.exitCode = undefined
  await import(`${MAIN.href}?run=${number}`)
  do await setTimeout(LOOK_MS)
  while (alive().length > idle)
  const code = exitCode()
  process.exitCode = undefined
  forget()
  for (const stream of [process.stdout, process.stderr])
    await new Promise((resolve) => stream.write(endOf(number), resolve))
  process.send?.({ code })
}

/** The exit code that a process would end with now. */
function exitCode(): number {
  return Number(process.exitCode ?? 0)
}

/** What keeps this process alive. */
function alive(): string[] {
  return process.getActiveResourcesInfo()
}

/** Remembers who listens to this process and its streams; what it returns removes every other listener. */
function rememberListeners(): () => void {
  const emitters: NodeJS.EventEmitter[] = [process, process.stdout, process.stderr]
  const all = emitters.map((emitter) => ({
    emitter,
    before: emitter.eventNames().flatMap((name) => emitter.listeners(name)),
  }))
  return () => {
    for (const { emitter, before } of all)
      for (const name of emitter.eventNames())
        for (const listener of emitter.listeners(name))
          if (!before.includes(listener)) emitter.off(name, listener as () => void)
  }
}

// Tests import this file too, for its types. It ends with the process that asks, whatever a run has left behind.
if (process.argv[1] === fileURLToPath(import.meta.url))
  process
    .on('message', (ask: Ask) => void perform(ask))
    .once('disconnect', () => {
      process.exit()
    })
