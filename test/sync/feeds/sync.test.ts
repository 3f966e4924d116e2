import { describe, expect } from 'vitest'
import type { Fault } from '../../sandbox/faults/fault.ts'
import { contentOf } from '../../../src/store/database/gzip.ts'
import type { Bench } from '../../support/mirror.ts'
import { bothTest, longTest, telling, test } from '../../support/tables.ts'
import {
  CVE_FEED,
  MATRIX,
  PATCH_FEED,
  bench,
  contentsOf,
  createClock,
  expectSound,
  runMeeting,
  told,
} from '../fixtures.ts'

const ALL = [PATCH_FEED, MATRIX, CVE_FEED]
const CAP = { PATCHMIRROR_UPSTREAM_MAX_BYTES: 'json=1 MB' }

function held({ store }: Bench, path: string): string | null {
  const document = store.feeds.readDocument(path)
  const body = document?.body ?? null
  return document === null || body === null ? null : contentOf(body, document.size).toString()
}

async function upstreamOf({ sandbox }: Bench, path: string): Promise<string> {
  return (await fetch(sandbox.url + path)).text()
}

async function expectEqual(made: Bench, paths = ALL): Promise<void> {
  made.sandbox.faults.clear()
  for (const path of paths) expect(held(made, path)).toBe(await upstreamOf(made, path))
  await expectSound(made.dir)
}

async function synced(env: Record<string, string> = {}): Promise<Bench> {
  const made = await bench({ sandbox: { records: 5, large: 0 }, env })
  expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
  await expectEqual(made)
  made.sandbox.requests.clear()
  return made
}

const json = (value: unknown): Fault => ({
  kind: 'body',
  body: JSON.stringify(value),
  type: 'application/json',
})

describe('the other feeds', () => {
  longTest('cost a conditional request each when nothing changed, and no write', async () => {
    const made = await synced()
    const before = contentsOf(made.dir)
    expect(await made.run('feeds')).toMatchObject({ state: 'complete', facts: { requests: 3 } })
    expect([...made.sandbox.requests].map(({ status }) => status)).toEqual([304, 304, 304])
    expect(contentsOf(made.dir)).toEqual(before)
  })

  test('are asked for without their ETags by a reconcile, as content may change under the same ones', async () => {
    const made = await synced()
    const before = contentsOf(made.dir)
    const report = await made.run('feeds', { kind: 'reconcile' })
    expect(report).toMatchObject({ state: 'complete', message: 'nothing changed', facts: { requests: 3 } })
    expect([...made.sandbox.requests].map(({ status }) => status)).toEqual([200, 200, 200])
    expect(contentsOf(made.dir)).toEqual(before)
  })

  longTest('are stored unchanged when they begin with a byte order mark', async () => {
    const made = await synced()
    for (const path of ALL) {
      const body = Buffer.from(`\ufeff${await upstreamOf(made, path)}`)
      made.sandbox.faults.set(path, {
        kind: 'body',
        body: body.toString(),
        type: 'application/json',
      })
    }
    expect(await made.run('feeds', { full: true })).toMatchObject({ state: 'complete' })
    for (const path of ALL) expect(held(made, path)?.startsWith('\ufeff')).toBe(true)
  })

  longTest('are replaced one by one as they change', async () => {
    const made = await synced()
    const before = made.store.snapshots.readSnapshot('feeds')
    const date = made.store.feeds.readDocument(PATCH_FEED)?.changed ?? 0
    made.sandbox.feed.touchFeeds()
    expect(await made.run('feeds')).toMatchObject({
      state: 'complete',
      facts: { documents: [PATCH_FEED, CVE_FEED] },
    })
    expect(made.store.snapshots.readSnapshot('feeds')?.id).not.toBe(before?.id)
    expect(made.store.feeds.readDocument(PATCH_FEED)?.changed).toBeGreaterThan(date)
    await expectEqual(made)
  })

  test('are complete without an extra path that upstream does not have', async () => {
    const made = await bench({ sandbox: { records: 5, cveFeed: false } })
    expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
    expect(made.store.feeds.readDocument(CVE_FEED)).toMatchObject({ body: null })
    const before = contentsOf(made.dir)
    expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
    expect(contentsOf(made.dir)).toEqual(before)
    await expectEqual(made, [PATCH_FEED, MATRIX])
  })

  test('include an extra path as soon as upstream has it', async () => {
    const made = await bench({ sandbox: { records: 5 } })
    made.sandbox.faults.set(CVE_FEED, { kind: 'status', status: 404 })
    expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
    made.sandbox.faults.clear()
    expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
    await expectEqual(made)
  })

  longTest('keep an extra path that upstream has removed, and report it', async () => {
    const made = await synced()
    made.sandbox.faults.set(CVE_FEED, { kind: 'status', status: 404 })
    const report = await made.run('feeds')
    expect(report).toMatchObject({ state: 'partial' })
    expect(report.message).toContain('the stored copy stays')
    await expectEqual(made)
  })

  longTest('drop a path that has left the settings', async () => {
    const made = await synced()
    const again = await bench({
      dir: made.dir,
      env: { PATCHMIRROR_FEEDS_EXTRA_PATHS: '/external/other' },
    })
    expect(await again.run('feeds')).toMatchObject({ state: 'complete' })
    expect(again.store.feeds.readDocument(CVE_FEED)).toBeNull()
    expect(again.store.feeds.readUpstreamState(CVE_FEED)).toBeNull()
    await expectSound(made.dir)
  })

  test('are not written in a dry run', async () => {
    const made = await synced()
    made.sandbox.feed.touchFeeds()
    const before = contentsOf(made.dir)
    expect(await made.run('feeds', { dryRun: true })).toMatchObject({ id: 0, state: 'complete' })
    expect(contentsOf(made.dir)).toEqual(before)
  })
})

const ROW = { ecosystem: 'npm', package_src_name: 'semver', fixed_version: '1' }

describe('a feed that cannot be used', () => {
  const FAULTS: [string, Fault][] = [
    ['a 500', { kind: 'status', status: 500 }],
    ['a 404', { kind: 'status', status: 404 }],
    ['a 401', { kind: 'status', status: 401 }],
    ['a 206', { kind: 'status', status: 206, body: '{"ecosystems":{}}' }],
    ['a long Retry-After', { kind: 'status', status: 429, headers: { 'Retry-After': '9999' } }],
    ['a stall', { kind: 'stall' }],
    ['a reset', { kind: 'reset', bytes: 50 }],
    ['a wrong Content-Length', { kind: 'wrongLength', by: 7 }],
    ['a redirect', { kind: 'redirect', location: 'http://127.0.0.2:9/' }],
    ['HTML', { kind: 'html' }],
    ['nothing', { kind: 'empty' }],
    ['garbage', { kind: 'garbage' }],
    ['corrupt bytes', { kind: 'corrupt' }],
    ['a gzip bomb', { kind: 'gzipBomb', bytes: 8_000_000 }],
    ['null', json(null)],
    ['a text', json('no')],
    ['an error', json({ errors: [{ message: 'no' }] })],
    ['a message', json({ message: 'no', status: 7 })],
  ]

  const LATER = telling(FAULTS, 'a wrong Content-Length')
  bothTest.each(LATER)(
    'does not stop the others, and its stored version stays, when its answer is %s',
    async (_name, fault) => {
      const made = await synced(CAP)
      made.sandbox.feed.touchFeeds()
      made.sandbox.faults.set(PATCH_FEED, fault)
      const old = held(made, PATCH_FEED)
      const report = await runMeeting(made, 'feeds', fault, { timeoutMs: 3000, retries: 0 })
      expect(report).toMatchObject({ state: 'partial', facts: { documents: [CVE_FEED] } })
      expect(report.message).toContain(PATCH_FEED)
      expect(made.store.snapshots.readSnapshot('feeds')).toMatchObject({ whole: false })
      expect(held(made, PATCH_FEED)).toBe(old)
      made.sandbox.faults.clear()
      expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
      expect(made.store.snapshots.readSnapshot('feeds')).toMatchObject({ whole: true })
      await expectEqual(made)
    },
  )

  const FIRST = telling(FAULTS, 'a gzip bomb')
  bothTest.each(FIRST)('is not stored in the first run either when its answer is %s', async (_name, fault) => {
    const made = await bench({ sandbox: { records: 5 }, env: CAP })
    made.sandbox.faults.set(MATRIX, fault)
    const first = await runMeeting(made, 'feeds', fault, { timeoutMs: 3000, retries: 0 })
    expect(first).toMatchObject({ state: 'partial' })
    expect(made.store.feeds.readDocument(MATRIX)).toBeNull()
    expect(held(made, PATCH_FEED)).not.toBeNull()
    made.sandbox.faults.clear()
    expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
    await expectEqual(made)
  })

  const SHAPES: [string, unknown, number][] = [
    ['rows in an array', [ROW, ROW], 2],
    ['rows under data', { data: [ROW], total: 1 }, 1],
    ['rows two levels deep', { result: { rows: [ROW, ROW, ROW] }, meta: { next: null } }, 3],
    ['fields of other names', [{ a: 1 }], 1],
    ['a tree in a wrapper', { data: { alpine: [{ packages: [{}, {}] }], npm: [] } }, 2],
    ['objects to the CVE', { alpine: { 3.18: { curl: { 'CVE-1': '8', 'CVE-2': '9' } } } }, 2],
    ['a package called next', { npm: { next: '14.1', more: '2' } }, 2],
    ['two lists', { a: [ROW], b: [ROW] }, 2],
    ['numbers', { data: [1, 2, 3] }, 3],
    ['numbers among rows', [ROW, 1], 4],
    ['releases without packages', { alpine: [{ distroversion: '3.18' }], ecosystems: [] }, 1],
    ['no errors', { data: [ROW], errors: [], error: null }, 1],
    ['nothing', [], 0],
  ]
  const TWO = telling(SHAPES, 'rows two levels deep', 'objects to the CVE', 'a package called next')
  bothTest.each(TWO)('is not a feed of another shape that has %s', async (_, feed, entries) => {
    const made = await bench({ sandbox: { records: 5 }, env: CAP })
    made.sandbox.faults.set(PATCH_FEED, json(feed))
    expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
    expect(held(made, PATCH_FEED)).toBe(JSON.stringify(feed))
    expect(made.store.feeds.readDocument(PATCH_FEED)?.entries).toBe(entries)
  })

  test.each<[string, unknown, string]>([
    ['one page of several', { data: [ROW], cursor: { after: 'x' } }, 'one page of several'],
    ['one page of several by its number', { data: [ROW], page: 1, pages: 9 }, 'pages is 9'],
    ['one page of a larger total', { data: [ROW], meta: { total: 9 } }, 'meta.total is 9'],
    ['a part by its own word', { data: [ROW], partial: true }, 'something is missing: partial is true'],
    ['an error', { errors: [{ message: 'no' }] }, 'it has errors'],
    ['a state of failure', { status: 'failed', message: 'no', data: [] }, 'it is an error: no'],
    ['not ready yet', { status: 'processing' }, 'it is not ready yet (it says: processing)'],
    ['a number', 7, 'neither a JSON object nor a list'],
  ])('is %s, and the run reports it', async (_, feed, why) => {
    const made = await bench({ sandbox: { records: 5 }, env: CAP })
    made.sandbox.faults.set(PATCH_FEED, json(feed))
    const report = await made.run('feeds')
    expect([report.state, report.message]).toEqual(['partial', expect.stringContaining(why)])
    expect(made.store.feeds.readDocument(PATCH_FEED)).toBeNull()
  })

  test('is one page of several by its headers, and the run reports it', async () => {
    const made = await synced()
    const old = held(made, PATCH_FEED)
    const pages: [Record<string, string>, string][] = [
      [{ link: '</x?page=2>; rel="next"' }, 'the header link leads to /x?page=2'],
      [{ 'x-total-count': '900' }, 'the header x-total-count says 900 items'],
    ]
    for (const [headers, why] of pages) {
      made.sandbox.faults.set(PATCH_FEED, { ...json({ data: [ROW] }), headers } as Fault)
      const report = await made.run('feeds')
      expect([report.state, report.message]).toEqual(['partial', expect.stringContaining(why)])
      expect(held(made, PATCH_FEED)).toBe(old)
      made.sandbox.faults.clear()
    }
    const headers = { 'x-total-count': '1', 'x-envoy-attempt-count': '7', 'x-last-deploy': 'v2' }
    made.sandbox.faults.set(MATRIX, { ...json({ data: [ROW] }), headers } as Fault)
    expect(await made.run('feeds')).not.toMatchObject({ state: 'partial' })
  })

  test.each<[string, unknown]>([
    ['an array', [{ name: 'alpine' }]],
    ['an object of other names', { supported: { alpine: ['3.18'] } }],
  ])('is not a system matrix that is %s', async (_, matrix) => {
    const made = await bench({ sandbox: { records: 5 } })
    made.sandbox.faults.set(MATRIX, json(matrix))
    expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
    expect(held(made, MATRIX)).toBe(JSON.stringify(matrix))
  })

  longTest('is quarantined where another form has far fewer entries', async () => {
    const made = await synced()
    made.sandbox.faults.set(PATCH_FEED, json({ alpine: {} }))
    const old = held(made, PATCH_FEED)
    expect(await made.run('feeds')).toMatchObject({ state: 'quarantined' })
    expect(held(made, PATCH_FEED)).toBe(old)
  })

  test('is stored again after a transient error', async () => {
    const made = await synced()
    made.sandbox.feed.touchFeeds()
    made.sandbox.faults.set(MATRIX, { kind: 'status', status: 500 })
    expect(await made.run('feeds')).toMatchObject({ state: 'partial' })
    expect(made.store.snapshots.readSnapshot('feeds')).toMatchObject({ whole: false })
    made.sandbox.faults.clear()
    expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
    expect(made.store.snapshots.readSnapshot('feeds')).toMatchObject({ whole: true })
  })

  test('is an unrequested 304', async () => {
    const made = await bench({ sandbox: { records: 5 } })
    made.sandbox.faults.set(MATRIX, { kind: 'status', status: 304, body: '' })
    expect(await made.run('feeds')).toMatchObject({ state: 'partial' })
    expect(made.store.feeds.readDocument(MATRIX)).toBeNull()
  })

  longTest('like all the others fails the run', async () => {
    for (const made of [await synced(), await bench({ sandbox: { records: 5 } })]) {
      const before = contentsOf(made.dir)
      made.sandbox.faults.set(/external/, { kind: 'status', status: 503 })
      expect(told(await made.run('feeds'))).toEqual({ state: 'failed', code: 'upstream_status' })
      expect(contentsOf(made.dir)).toEqual(before)
      made.sandbox.faults.clear()
      expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
    }
  })

  test('fails the run when only a missing extra path was answered', async () => {
    const made = await bench({ sandbox: { records: 5, cveFeed: false } })
    made.sandbox.faults.set(PATCH_FEED, { kind: 'status', status: 503 })
    made.sandbox.faults.set(MATRIX, { kind: 'status', status: 503 })
    expect(told(await made.run('feeds'))).toEqual({ state: 'failed', code: 'upstream_status' })
    made.sandbox.faults.clear()
    expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
    await expectEqual(made, [PATCH_FEED, MATRIX])
  })
})

describe('a feed that shrinks', () => {
  const NO_PACKAGES = json({ alpine: [{ distroversion: '3.18', packages: [] }] })

  test('by too many entries is quarantined, and the other feeds are published', async () => {
    const made = await synced()
    made.sandbox.feed.touchFeeds()
    const old = held(made, PATCH_FEED)
    made.sandbox.faults.set(PATCH_FEED, NO_PACKAGES)
    const report = await made.run('feeds')
    expect(report).toMatchObject({
      state: 'quarantined',
      facts: { quarantine: report.id, documents: [CVE_FEED] },
    })
    expect(held(made, PATCH_FEED)).toBe(old)
    expect(await made.run('feeds')).toMatchObject({
      state: 'quarantined',
      facts: { quarantine: report.id },
    })
    expect(made.store.quarantine.listOpenQuarantines()).toHaveLength(1)
    made.sandbox.faults.clear()
    expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
    expect(made.store.quarantine.readQuarantine(report.id)?.decision).toBe('superseded')
    await expectEqual(made)
  })

  longTest('leaves quarantine when upstream serves the stored feed again', async () => {
    const made = await synced()
    made.sandbox.faults.set(PATCH_FEED, NO_PACKAGES)
    const { id } = await made.run('feeds')
    made.sandbox.faults.clear()
    expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
    expect(made.store.quarantine.readQuarantine(id)?.decision).toBe('superseded')
    expect(made.store.snapshots.readSnapshot('feeds')).toMatchObject({ whole: true })
  })

  longTest('is quarantined beside another that shrinks', async () => {
    const made = await synced()
    const old = ALL.map((path) => held(made, path))
    made.sandbox.faults.set(PATCH_FEED, NO_PACKAGES)
    made.sandbox.faults.set(CVE_FEED, json({ alpine: [] }))
    const first = await made.run('feeds')
    expect(first).toMatchObject({ state: 'quarantined', facts: { quarantine: first.id } })
    expect(first.message).toContain(CVE_FEED)
    const second = await made.run('feeds')
    expect(second).toMatchObject({ state: 'quarantined' })
    expect(made.store.quarantine.listOpenQuarantines()).toMatchObject([
      { runId: first.id, path: PATCH_FEED },
      { runId: second.id, path: CVE_FEED },
    ])
    expect(ALL.map((path) => held(made, path))).toEqual(old)
    expect(await made.run('feeds')).toMatchObject({ state: 'quarantined' })
    expect(made.store.quarantine.listOpenQuarantines()).toHaveLength(2)
  })

  test('is applied exactly by approval, while the others keep their age', async () => {
    const clock = createClock()
    const made = await bench({ now: clock.now, sandbox: { records: 5, now: clock.now } })
    await made.run('feeds')
    const asOf = made.store.snapshots.readSnapshot('feeds')?.asOf
    clock.pass(3_600_000)
    made.sandbox.faults.set(PATCH_FEED, NO_PACKAGES)
    const { id } = await made.run('feeds')
    const approved = made.store.quarantine.readQuarantine(id)
    if (approved === null) throw new Error('nothing in quarantine')
    made.sandbox.requests.clear()
    expect(await made.run('feeds', { kind: 'approve', approved })).toMatchObject({
      state: 'complete',
    })
    expect(made.sandbox.requests.count()).toBe(0)
    expect(held(made, PATCH_FEED)).toBe(NO_PACKAGES.kind === 'body' ? NO_PACKAGES.body : '')
    expect(made.store.snapshots.readSnapshot('feeds')?.asOf).toBe(asOf)
    expect(made.store.quarantine.readQuarantine(id)?.decision).toBe('approved')
    await expectSound(made.dir)
  })

  bothTest.each(telling(['serves the stored one', 'serves a newer one'], 'serves a newer one'))(
    'and was rejected is not applied by an approval once upstream %s',
    async (what) => {
      const made = await synced()
      made.sandbox.faults.set(PATCH_FEED, NO_PACKAGES)
      const { id } = await made.run('feeds')
      await made.store.exclusive(() => made.store.quarantine.decideQuarantine(id, 'rejected', Date.now()))
      made.sandbox.faults.clear()
      if (what === 'serves a newer one') made.sandbox.feed.touchFeeds()
      expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
      const approved = made.store.quarantine.readQuarantine(id)
      if (approved === null) throw new Error('nothing in quarantine')
      const late = await made.run('feeds', { kind: 'approve', approved })
      expect(late).toMatchObject({ state: 'failed', code: 'usage' })
      expect(late.message).toContain(`upstream serves something else now than run ${id} refused`)
      await expectEqual(made)
      made.sandbox.faults.set(PATCH_FEED, NO_PACKAGES)
      expect(await made.run('feeds', { kind: 'approve', approved })).toMatchObject({ state: 'complete' })
      expect(held(made, PATCH_FEED)).toBe(NO_PACKAGES.kind === 'body' ? NO_PACKAGES.body : '')
    },
  )

  longTest('stays refused when it was rejected', async () => {
    const made = await synced()
    made.sandbox.faults.set(PATCH_FEED, NO_PACKAGES)
    const { id } = await made.run('feeds')
    await made.store.exclusive(() => made.store.quarantine.decideQuarantine(id, 'rejected', Date.now()))
    const report = await made.run('feeds')
    expect(report).toMatchObject({ state: 'quarantined' })
    expect(report.message).toContain(`rejected before (run ${id})`)
    await expectEqual(made)
  })
})

test('a feed of other bytes that is older than the stored one waits for a decision', async () => {
  const made = await synced()
  const before = held(made, MATRIX)
  const matrix = JSON.parse(before ?? '{}') as Record<string, unknown>
  const headers = { 'last-modified': 'Mon, 01 Jan 2024 00:00:00 GMT' }
  made.sandbox.faults.set(MATRIX, { ...json({ ...matrix, platforms: [] }), headers } as Fault)
  const report = await made.run('feeds')
  expect(report).toMatchObject({ state: 'quarantined' })
  expect(report.message).toContain('document of 2024-01-01T00:00:00.000Z is older than the last one')
  expect(held(made, MATRIX)).toBe(before)
  made.sandbox.faults.clear()
  expect(await made.run('feeds')).toMatchObject({ state: 'complete' })
})

test('a feed is not held back by a date of its last version that is still to come', async () => {
  const made = await synced()
  const matrix = JSON.parse(held(made, MATRIX) ?? '{}') as Record<string, unknown>
  for (const [year, more] of [
    [2199, 'a'],
    [2024, 'b'],
  ] as const) {
    const headers = { 'last-modified': `Tue, 01 Jan ${year} 00:00:00 GMT` }
    const body = { ...matrix, more }
    made.sandbox.faults.clear()
    made.sandbox.faults.set(MATRIX, { ...json(body), headers } as Fault)
    const { state } = await made.run('feeds')
    expect([year, state]).toEqual([year, 'complete'])
    expect(held(made, MATRIX)).toBe(JSON.stringify(body))
  }
})
