import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished } from 'vitest'
import { type Hosted, type World, openWorld } from '../support/daemons.ts'
import { feedDifferences } from '../support/feed-differences.ts'
import { longTest, test } from '../support/tables.ts'

let world: World
let daemon: Hosted

beforeAll(async () => {
  world = await openWorld({ records: 200, service: false }) // two of them large
  daemon = await world.host()
  await daemon.said(/osv sync: complete/)
  await daemon.said(/feeds sync: complete/)
})

afterEach(() => world.sandbox.faults.clear())
afterAll(() => world.close())

/** The daemon of all tests, after a sync of whatever an earlier test has left. */
async function synced(): Promise<Hosted> {
  const ended = daemon.next('osv')
  daemon.agent.requestSync('osv', 'sync')
  expect((await ended).state).toBe('complete')
  return daemon
}

interface SourceStatus {
  name: string
  state: string
  nextRunAt: string | null
  progress: { phase: string; unit: string; done: number; total: number | null } | null
  lastRun: { id: number; message: string }
}

/** What the status says of the records. */
async function osvOf({ url }: Hosted): Promise<SourceStatus> {
  const { sources } = (await (await fetch(`${url}/-/status`)).json()) as { sources: SourceStatus[] }
  const osv = sources.find(({ name }) => name === 'osv')
  if (osv === undefined) throw new Error('the status has no osv')
  return osv
}

describe('the agent', () => {
  test('mirrors a made-up feed at start and serves every byte of it under the same paths', async () => {
    const running = await synced()
    expect(await feedDifferences(running, world)).toEqual([])
    expect((await fetch(`${running.url}/-/ready`)).status).toBe(200)
  })

  longTest('serves a change of upstream after the next run in index, record, archive and headers', async () => {
    const running = await synced()
    const before = await fetch(`${running.url}/external/osv/all.json`)
    const [removed = ''] = world.sandbox.feed.remove(1)
    world.sandbox.feed.change(3)
    const ended = running.next('osv')
    running.agent.requestSync('osv', 'sync')
    expect((await ended).state).toBe('complete')
    const after = await fetch(`${running.url}/external/osv/all.json`)
    expect(after.headers.get('etag')).not.toBe(before.headers.get('etag'))
    expect(after.headers.get('x-mirror-snapshot')).not.toBe(before.headers.get('x-mirror-snapshot'))
    expect(Date.parse(after.headers.get('last-modified') ?? '')).toBeGreaterThan(
      Date.parse(before.headers.get('last-modified') ?? ''),
    )
    expect((await fetch(`${running.url}/external/osv/${encodeURIComponent(removed)}.json`)).status).toBe(404)
    expect(await feedDifferences(running, world)).toEqual([])
  })

  longTest('serves the stored data while upstream fails, and reports the failure', async () => {
    const running = await synced()
    world.sandbox.feed.change(5)
    world.sandbox.faults.set('*', { kind: 'status', status: 503 })
    const ended = running.next('osv')
    running.agent.requestSync('osv', 'sync')
    expect((await ended).state).toBe('failed')
    expect((await fetch(`${running.url}/external/osv/all.zip`)).status).toBe(200)
    // The server follows a run shortly after its end.
    await expect.poll(async () => (await osvOf(running)).state).toBe('failed')
    const osv = await osvOf(running)
    expect(osv.lastRun.message).toContain('503')
    expect(Date.parse(osv.nextRunAt ?? '')).toBeGreaterThan(Date.now())
    expect((await fetch(`${running.url}/-/ready`)).status).toBe(200)
  })

  longTest('says how far the first run is, in the status, for the command and on the overview', async () => {
    const young = await openWorld({ records: 300, service: false })
    onTestFinished(() => young.close())
    young.sandbox.faults.set('/external/osv/all.zip', { kind: 'stall', at: 'body', bytes: 20_000 })
    const running = await young.host()
    await expect.poll(async () => (await osvOf(running)).progress?.done ?? 0).toBeGreaterThan(0)
    const { state, progress } = await osvOf(running)
    expect([state, progress]).toMatchObject(['running', { phase: 'archive', unit: 'bytes' }])
    expect(progress?.done).toBeLessThanOrEqual(20_000)
    expect(progress?.total).toBeGreaterThan(20_000)
    const words = `downloading the archive: 0.0 MB of ${(Number(progress?.total) / 1e6).toFixed(1)} MB`
    expect((await young.patchmirror('status')).out).toContain(`osv: the run in progress is ${words}`)
    const html = await (await fetch(`${running.url}/`, { headers: { accept: 'text/html' } })).text()
    expect(html).toContain(words)
    const ended = running.next('osv')
    young.sandbox.faults.clear()
    expect((await ended).state).toBe('complete')
    await expect.poll(async () => (await osvOf(running)).progress).toBe(null)
  })

  longTest('coalesces requests for a source that is running into one more run', async () => {
    const running = await synced()
    world.sandbox.faults.set('/external/osv/all.json', { kind: 'stall', at: 'headers', ms: 300 }, { times: 1 })
    const ended = running.next('osv')
    for (let i = 0; i < 6; i++) running.agent.requestSync('osv', 'sync')
    const one = await ended
    const two = await running.next('osv')
    expect(two.id).toBe(one.id + 1)
    await expect.poll(async () => (await osvOf(running)).lastRun.id).toBe(two.id)
  })

  longTest('answers 503 with Retry-After, never an empty list, until the first sync has ended', async () => {
    const empty = await openWorld({ records: 1, service: false })
    onTestFinished(() => empty.close())
    const running = await empty.host({ LIMIT_SYNC_CATCH_UP: 'false' })
    const answer = await fetch(`${running.url}/external/osv/all.json`)
    expect(answer.status).toBe(503)
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await fetch(`${running.url}/-/ready`)).status).toBe(503)
    expect((await fetch(`${running.url}/-/health`)).status).toBe(200)
  })
})
