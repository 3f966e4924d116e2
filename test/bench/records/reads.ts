import { Agent, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { startDaemon } from '../world/daemon.ts'
import type { SandboxProcess } from '../world/processes.ts'
import { percentile } from '../report/figures.ts'

const CONNECTIONS = 8
const PAUSE_MS = 2

/** Latencies of steady reads (not a flood), milliseconds, until `until` is settled. */
async function latencies(url: string, until: Promise<unknown>): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  const taken: number[] = []
  let going = true
  const reader = async (): Promise<void> => {
    while (going) {
      const started = performance.now()
      await get(`${url}/external/globals/sys_matrix`, agent)
      taken.push(performance.now() - started)
      await delay(PAUSE_MS)
    }
  }
  const readers = Promise.all(Array.from({ length: CONNECTIONS }, reader))
  await until
  going = false
  await readers
  agent.destroy()
  return taken.sort((a, b) => a - b)
}

function get(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { agent }, (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`${url}: ${answer.statusCode}`))
      answer.on('end', resolve).resume()
    })
    asked.on('error', reject).end()
  })
}

/** Latencies of the same reads, milliseconds. */
export interface Reads {
  readonly idle: { readonly p50: number; readonly p99: number }
  readonly busy: { readonly p50: number; readonly p99: number }
}

/** Reads of a feed that is there already, idle, and while the first sync of the records runs. */
export async function readBesideIngest(sandbox: SandboxProcess, idleSeconds: number): Promise<Reads> {
  const daemon = await startDaemon(sandbox.url)
  const shares = (sorted: readonly number[]) => {
    return { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) }
  }
  try {
    await daemon.run('feeds')
    await latencies(daemon.url, delay(1000))
    const idle = shares(await latencies(daemon.url, delay(idleSeconds * 1000)))
    return { idle, busy: shares(await latencies(daemon.url, daemon.run('osv'))) }
  } finally {
    await daemon.stop()
  }
}
