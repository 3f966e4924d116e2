import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** What a block said, and its exit code: of the first command that failed. */
export interface Said {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** A block that takes longer waits for what does not come, milliseconds. */
const BLOCK_MS = 150_000
/** The end of a block in the output of its shell. */
const END = /\0(\d+)\0/

/** Opens a shell that runs one block after the other, with the variables and background jobs of those before. */
export function openShell(env: Record<string, string>, root: string, cwd: string) {
  const child = spawn('sh', ['-e'], { cwd, env, detached: true, stdio: 'pipe' })
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve))
  child.once('exit', () => killGroup(child)) // what a failed block left in the background would keep its output open
  let out = ''
  let err = ''
  let heard = (): void => undefined
  let number = 0
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString()
    heard()
  })
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  child.stdin.on('error', () => undefined) // a block that failed has ended the shell
  return {
    async run(script: string): Promise<Said> {
      const file = join(root, `block-${++number}.sh`)
      writeFileSync(file, script)
      child.stdin.write(`. '${file}' </dev/null; printf '\\0%s\\0' $?\n`)
      const ended = new Promise<void>((resolve) => {
        heard = () => {
          if (END.test(out)) resolve()
        }
      })
      const deadline = setTimeout(() => killGroup(child), BLOCK_MS)
      const code = await Promise.race([ended.then(() => 0), closed.then((status) => status ?? 1)])
      clearTimeout(deadline)
      const said = { code, out: out.replace(END, ''), err }
      out = ''
      err = ''
      return said
    },
    async close() {
      child.stdin.end()
      killGroup(child)
      await closed
    },
  }
}

/** Ends the processes that a shell has started and left. */
function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // all have ended
  }
}
