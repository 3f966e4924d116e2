import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

/**
 * Kills a process -9 as soon as it says `here`; null where it was killed, otherwise the number that it says before it ends, after a
 * word.
 */
export async function killWhenHere(child: ChildProcess): Promise<number | null> {
  let said = ''
  child.stdout?.on('data', (text: Buffer) => {
    said += text.toString()
    if (said.includes('here')) child.kill('SIGKILL')
  })
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  if (signal === 'SIGKILL') return null
  const [, count] = /^\w+ (\d+)$/m.exec(said) ?? []
  if (code === 0 && count !== undefined) return Number(count)
  throw new Error(`the process ended with ${code}: ${said}`)
}
