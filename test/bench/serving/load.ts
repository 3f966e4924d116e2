import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { messageOf, stopped, type ServerChild } from './child.ts'
import type { Load, LoadResult } from './load-child.ts'

/** What a measurement gave: answers a second, and how many were not a 200. */
export interface Measured {
  rate: number
  failures: number
}

/** Puts a server under load for a while, from a process of its own. */
export async function measure(server: ServerChild, load: Omit<Load, 'port'>): Promise<Measured> {
  const child = fork(fileURLToPath(new URL('load-child.ts', import.meta.url)), {
    serialization: 'advanced',
  })
  try {
    await messageOf(child)
    child.send({ ...load, port: server.port })
    const result = await messageOf<LoadResult>(child, (load.seconds ?? 30) + 30)
    return { rate: result.answers / result.seconds, failures: result.failures }
  } finally {
    await stopped(child)
  }
}
