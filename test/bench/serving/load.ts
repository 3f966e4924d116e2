import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { messageOf, stopped, type ServerChild } from './child.ts'
import type { Load, LoadResult } from './load-child.ts'

/** What one measurement gave. `cpu`: microseconds of the server's processor time per answer. */
export interface Measured {
  rate: number
  cpu: number | null
  failures: number
}

/** Puts a server under load for a while, from a process of its own. */
export async function measure(server: ServerChild, load: Omit<Load, 'port'>): Promise<Measured> {
  const child = fork(fileURLToPath(new URL('load-child.ts', import.meta.url)), {
    serialization: 'advanced',
  })
  try {
    await messageOf(child)
    const before = await server.cpu()
    child.send({ ...load, port: server.port })
    const result = await messageOf<LoadResult>(child, load.seconds + 30)
    const after = await server.cpu()
    const cpu = before === null || after === null ? null : (after - before) / result.answers
    return { rate: result.answers / result.seconds, cpu, failures: result.failures }
  } finally {
    await stopped(child)
  }
}
