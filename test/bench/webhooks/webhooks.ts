import { createHmac } from 'node:crypto'
import { open } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { percentile } from '../report/figures.ts'
import { startDaemon } from '../world/daemon.ts'
import type { SandboxProcess } from '../world/processes.ts'

const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='
const KEY = Buffer.from(SECRET.slice(6), 'base64')
/** Events that are sent each second. */
export const PER_SECOND = 500
const TICK_MS = 10

let sent = 0

/** One new event, signed; milliseconds from when it was due to its acknowledgement. */
function deliver(url: string, agent: Agent, dueAt: number): Promise<number> {
  const id = `evt_${sent++}`
  const timestamp = Math.floor(Date.now() / 1000)
  const body = JSON.stringify({
    specversion: '1.0',
    id,
    source: 'https://service.example.com/registry',
    type: 'io.service.cr.image.created.v1',
    subject: `cr.example.com/library/python:${id}`,
    data: { image_repo: 'library/python', image_tag: id, arch: 'amd64' },
  })
  const signature = createHmac('sha256', KEY).update(`${id}.${timestamp}.${body}`).digest('base64')
  const headers = {
    'content-type': 'application/cloudevents+json',
    'content-length': Buffer.byteLength(body),
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,${signature}`,
  }
  return new Promise((resolve, reject) => {
    const asked = request(`${url}/-/webhooks`, { method: 'POST', headers, agent }, (answer) => {
      const { statusCode = 0 } = answer
      if (![200, 202].includes(statusCode)) reject(new Error(`a webhook got ${statusCode}`))
      answer.on('end', () => resolve(performance.now() - dueAt)).resume()
    })
    asked.on('error', reject).end(body)
  })
}

/** When an event is due, by its number from 0. */
function dueAt(started: number, event: number): number {
  return started + ((event + 1) * 1000) / PER_SECOND
}

/** Latencies at a rate that waits for no answer (open loop), sorted, until `until` is settled. */
async function latencies(url: string, until: Promise<unknown>): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 256 })
  const under: Promise<number>[] = []
  const state = { going: true }
  const stop = (): void => void (state.going = false)
  void until.then(stop, stop)
  const started = performance.now()
  while (state.going) {
    const due = Math.floor(((performance.now() - started) * PER_SECOND) / 1000)
    while (under.length < due) {
      const one = deliver(url, agent, dueAt(started, under.length))
      one.catch(stop)
      under.push(one)
    }
    await delay(TICK_MS / 5)
  }
  const taken = await Promise.all(under)
  agent.destroy()
  return taken.sort((a, b) => a - b)
}

/**
 * What the same events would wait for the disk alone, milliseconds, sorted, until `until` is settled: each for the first
 * fdatasync of 4 KiB that begins after it came. No program that acknowledges what is on the disk can do better, since a pause of the disk delays
 * every event that comes meanwhile.
 */
async function bareLatencies(dir: string, until: Promise<unknown>): Promise<number[]> {
  const file = await open(join(dir, 'floor'), 'w')
  const taken: number[] = []
  const state = { going: true }
  const stop = (): void => void (state.going = false)
  void until.then(stop, stop)
  const started = performance.now()
  while (state.going) {
    const due = Math.floor(((performance.now() - started) * PER_SECOND) / 1000)
    if (taken.length < due) {
      await file.write(Buffer.alloc(4096, due), 0, 4096, 0)
      await file.datasync()
      const now = performance.now()
      while (taken.length < due) taken.push(now - dueAt(started, taken.length))
    } else await delay(TICK_MS / 5)
  }
  await file.close()
  return taken.sort((a, b) => a - b)
}

/** Acknowledgements, milliseconds, and what the disk alone takes beside another first sync. */
export interface Acknowledged {
  readonly busy: { readonly p50: number; readonly p99: number }
  readonly idle: { readonly p50: number; readonly p99: number }
  readonly floor: number
  readonly events: number
}

/** Acknowledgements of 500 events a second while a first sync runs, and idle. */
export async function acknowledge({ url }: SandboxProcess, idleSeconds: number): Promise<Acknowledged> {
  // Events of other types are verified and stored alike, acknowledged with 200, and cause no sync of their own.
  const settings = {
    PATCHMIRROR_WEBHOOKS_SECRETS: SECRET,
    PATCHMIRROR_WEBHOOKS_TYPES: 'io.{vendor}.none',
  }
  const shares = (sorted: readonly number[]) => {
    return { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) }
  }
  const daemon = await startDaemon(url, undefined, settings)
  try {
    await latencies(daemon.url, delay(2000))
    const idle = await latencies(daemon.url, delay(idleSeconds * 1000))
    const busy = await latencies(daemon.url, daemon.run('osv'))
    await daemon.stop() // what it does after its sync is no part of the other's
    const floor = percentile(await besideSync(url), 0.99)
    return { busy: shares(busy), idle: shares(idle), floor, events: busy.length }
  } finally {
    await daemon.stop()
  }
}

/** What the disk alone takes beside the first sync of a daemon that receives nothing. */
async function besideSync(url: string): Promise<number[]> {
  const daemon = await startDaemon(url)
  try {
    return await bareLatencies(daemon.dir, daemon.run('osv'))
  } finally {
    await daemon.stop()
  }
}
