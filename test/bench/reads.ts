import { Agent, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { startDaemon } from './daemon.ts'
import type { SandboxProcess } from './processes.ts'
import { type Line, percentile, ratioLine } from './table.ts'

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

/** Reads of a feed that is there already, while the first sync of the 100,000 records runs, against the same reads idle. */
export async function benchReads(sandbox: SandboxProcess): Promise<Line> {
  const daemon = await startDaemon(sandbox.url)
  try {
    await daemon.run('feeds')
    await latencies(daemon.url, delay(1_000))
    const idle = await latencies(daemon.url, delay(5_000))
    const busy = await latencies(daemon.url, daemon.run('osv'))
    const [quiet, loaded] = [percentile(idle, 0.99), percentile(busy, 0.99)]
    const medians = `medians ${percentile(idle, 0.5).toFixed(2)} and ${percentile(busy, 0.5).toFixed(2)} ms`
    const detail = `p99 ${loaded.toFixed(2)} to ${quiet.toFixed(2)} ms, ${medians}`
    return ratioLine(
      'reads while a cold ingest runs, p99',
      'the same reads idle',
      loaded / quiet,
      2,
      detail,
    )
  } finally {
    await daemon.stop()
  }
}
