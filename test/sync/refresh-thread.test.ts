import { describe, expect, onTestFinished } from 'vitest'
import type { Run } from '../../src/store/runs/runs.ts'
import { type SyncThread, startSyncThread } from '../../src/sync/thread.ts'
import type { Bench } from '../support/mirror.ts'
import { INDEX, PATCH_FEED, bench as feedBench } from './fixtures.ts'
import { longTest, test } from '../support/tables.ts'
import { asked, bench, filledFolder } from './catalog/fixtures.ts'
import { WIDE, announced, targetOf } from './refreshes.ts'

async function withThread(made: Bench): Promise<{ thread: SyncThread; ended: Run[] }> {
  const ended: Run[] = []
  const thread = startSyncThread({
    config: made.config,
    version: 'test',
    onEnded: (report) => void ended.push(report),
    onFailed: () => undefined,
    onProgress: () => undefined,
    onCheckpoint: () => undefined,
  })
  await thread.started
  return { thread, ended }
}

/** A thread over a mirror that has everything; nothing was requested of its sandbox yet. */
async function filled() {
  const made = await bench(WIDE, { dir: await filledFolder(WIDE, {}, ['feeds', 'osv', 'catalog']) })
  const { thread, ended } = await withThread(made)
  onTestFinished(() => thread.stop())
  return { made, thread, ended }
}

const kindsOf = (reports: readonly Run[]): string[] =>
  reports.map(({ source, kind, trigger }) => `${source} ${kind} ${trigger}`).sort()

const EVENT_RUNS = ['catalog refresh webhook', 'feeds sync webhook', 'osv sync webhook']

describe('a refresh in the sync thread', () => {
  test('syncs the named part of the catalog and the feeds, and the announced tag is stored', async () => {
    const { made, thread } = await filled()
    const { service, feed } = made.sandbox
    feed.change(1)
    const target = announced(service, service.addTag())
    const result = await thread.refresh([target])
    expect(result).toMatchObject({ ok: true, reason: null })
    expect(kindsOf(result.reports)).toEqual(EVENT_RUNS)
    expect(made.store.catalog.findAnnounced(target)).toMatchObject({ artifacts: 'complete' })
    expect(made.store.runs.listRuns(3).map(({ state }) => state)).toEqual(Array(3).fill('complete'))
    expect(made.store.catalog.listNewTags(0)).toMatchObject([
      { repository: target.repository, tag: target.tag, digest: target.digest, trigger: 'webhook' },
    ])
  })

  longTest('without a credential syncs only the feeds', async () => {
    const made = await feedBench({ sandbox: { records: 5 } })
    const { thread } = await withThread(made)
    onTestFinished(() => thread.stop())
    const { reports, ok } = await thread.refresh([])
    expect([kindsOf(reports), ok]).toEqual([['feeds sync webhook', 'osv sync webhook'], true])
  })

  longTest('begins after the call, although a sync is running', async () => {
    const { made, thread, ended } = await filled()
    const { service, faults, requests } = made.sandbox
    const stall = faults.set('/v1/subscriptions/', { kind: 'stall' }, { times: 1 })
    thread.requestSync('catalog', 'sync', 'schedule')
    await expect.poll(() => requests.count('/v1/tags/'), { interval: 2 }).toBe(1)
    const target = announced(service, service.addTag()) // too late for the sync under way
    const refreshing = thread.refresh([target])
    stall.clear()
    const { reports } = await refreshing
    expect(ended.filter(({ source }) => source === 'catalog').map(({ kind }) => kind)).toEqual(['sync', 'refresh'])
    expect(reports.find(({ source }) => source === 'catalog')?.kind).toBe('refresh')
    expect(made.store.catalog.findAnnounced(target)).toMatchObject({ artifacts: 'complete' })
  })

  longTest('is served by a sync that is already queued, together with other refreshes', async () => {
    const { made, thread, ended } = await filled()
    const { service, faults, requests } = made.sandbox
    const tag = service.addTag()
    const target = announced(service, tag)
    faults.set(`/v1/tags/${tag}/vex`, { kind: 'status', status: 404 }, { times: 1 })
    const stall = faults.set('/v1/subscriptions/', { kind: 'stall' }, { times: 1 })
    thread.requestSync('catalog', 'sync', 'schedule')
    await expect.poll(() => requests.count('/v1/tags/'), { interval: 2 }).toBe(1)
    const first = thread.refresh([target])
    thread.requestSync('catalog', 'sync', 'schedule')
    const others = [thread.refresh([target]), thread.refresh([])]
    stall.clear()
    const results = await Promise.all([first, ...others])
    expect(results.map(({ ok }) => ok)).toEqual([true, true, true])
    const runs = ended.filter(({ source }) => source === 'catalog')
    expect(kindsOf(runs)).toEqual(['catalog sync schedule', 'catalog sync schedule'])
    expect(made.store.catalog.findAnnounced(target).artifacts).toBe('complete') // the vex came with the second look
  })

  longTest('requested many times at once costs one more run of each source', async () => {
    const { made, thread, ended } = await filled()
    const tags = [0, 1, 2].map(() => announced(made.sandbox.service, made.sandbox.service.addTag()))
    await Promise.all(Array.from({ length: 30 }, (_, i) => thread.refresh([tags[i % 3] ?? targetOf({})])))
    expect(ended.length).toBeLessThanOrEqual(6)
    for (const tag of tags) expect(made.store.catalog.findAnnounced(tag).artifacts).toBe('complete')
  })
})

describe('the result of a refresh', () => {
  longTest('is not ok when upstream is down or a credential is refused, and contains the reason', async () => {
    const { made, thread } = await filled()
    made.sandbox.faults.set(INDEX, { kind: 'status', status: 503 })
    const down = await thread.refresh([])
    expect(down.ok).toBe(false)
    expect(down.reason).toMatch(/^osv: failed: .*503/)
    made.sandbox.faults.clear()
    made.sandbox.faults.set(/^\/v1\//, { kind: 'status', status: 401 })
    const refused = await thread.refresh([])
    expect(refused.ok).toBe(false)
    expect(refused.reason).toMatch(/^catalog: failed: .*401/)
    expect(refused.reports).toHaveLength(3)
  })

  longTest('says that the catalog was checked where another source fails', async () => {
    const { made, thread } = await filled()
    made.sandbox.faults.set(INDEX, { kind: 'status', status: 401 })
    const failed = await thread.refresh([])
    expect(failed).toMatchObject({ ok: false, imageReason: null })
    expect(failed.reason).toMatch(/^osv: failed: .*401/)
    made.sandbox.faults.set('/v1/tags/', { kind: 'html' })
    const { imageReason } = await thread.refresh([])
    expect(imageReason).toBe('catalog: /v1/tags could not be read')
  })

  test('is not ok without the list of tags, but ok without a single artifact', async () => {
    const { made, thread } = await filled()
    const { faults, service } = made.sandbox
    faults.set('/v1/tags/', { kind: 'html' })
    expect(await thread.refresh([])).toMatchObject({
      ok: false,
      reason: 'catalog: /v1/tags could not be read',
    })
    faults.clear()
    const tag = service.addTag()
    faults.set(`/v1/tags/${tag}/sbom`, { kind: 'html' })
    const { ok, reports } = await thread.refresh([])
    expect([ok, reports.map(({ state }) => state).sort()]).toEqual([true, ['complete', 'complete', 'partial']])
  })

  longTest('is ok while a feed is in quarantine, and not ok while the catalog is', async () => {
    const made = await bench(
      { ...WIDE, tags: 12 },
      {
        env: { PATCHMIRROR_GUARD_LIMIT: 'removed=10% and 5' },
        sandbox: { records: 60 },
      },
    )
    for (const source of ['feeds', 'osv', 'catalog'] as const) await made.run(source)
    const { thread } = await withThread(made)
    onTestFinished(() => thread.stop())
    made.sandbox.feed.remove(40)
    const first = await thread.refresh([])
    expect(first.reports.map(({ state }) => state)).toContain('quarantined')
    expect(first.ok).toBe(true)
    const { service } = made.sandbox
    for (const id of service.ids('tags').slice(0, 8)) service.remove('tags', id)
    const second = await thread.refresh([])
    expect(second.ok).toBe(false)
    expect(second.reason).toMatch(/^catalog: quarantined: .*approve or reject run/)
  })

  longTest('is not ok when the thread is stopped, and later refreshes are refused', async () => {
    const { made, thread } = await filled()
    made.sandbox.faults.set('/v1/tags/', { kind: 'stall' })
    made.sandbox.faults.set(PATCH_FEED, { kind: 'stall' })
    const running = thread.refresh([])
    const waiting = thread.refresh([])
    await expect.poll(() => asked(made), { interval: 2 }).toContain('/v1/tags/')
    await thread.stop()
    for (const result of [await running, await waiting]) expect(result.ok).toBe(false)
    expect((await running).reason).toContain('stopped on request')
    expect(await thread.refresh([])).toEqual({
      reports: [],
      ok: false,
      reason: 'the program is stopping',
      imageReason: 'the program is stopping',
    })
  })

  longTest('reports that another process is syncing', async () => {
    const { made, thread } = await filled()
    const stall = made.sandbox.faults.set(INDEX, { kind: 'stall' })
    const running = made.run('osv')
    await expect.poll(() => stall.hits(), { interval: 2 }).toBe(1)
    const result = await thread.refresh([])
    expect(result).toMatchObject({ ok: false, reports: [] })
    expect(result.reason).toContain(`process ${process.pid}`)
    stall.clear()
    await running
  })
})
