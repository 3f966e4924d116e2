import { describe, expect } from 'vitest'
import type { Fault } from '../../sandbox/faults/fault.ts'
import { type Bench, differences } from '../../support/mirror.ts'
import { bothTest, longTest, telling, test } from '../../support/tables.ts'
import {
  ARCHIVE,
  INDEX,
  RECORDS,
  bench,
  contentsOf,
  expectAgreement,
  expectSound,
  runMeeting,
  synced,
  told,
} from '../fixtures.ts'

const CAPS = {
  PATCHMIRROR_UPSTREAM_MAX_BYTES: 'json=1 MB,record=1 MB',
}

const SMALL = { records: 40, large: 0 }
const ELSEWHERE = 'http://127.0.0.2:9/external/osv/all.json'

type Row = [name: string, fault: Fault, code: string]

/** Faults of any answer that must look like what they are, and never like an empty or a shorter feed. */
const UNUSABLE: Row[] = [
  ['a 500', { kind: 'status', status: 500 }, 'upstream_status'],
  ['a 503', { kind: 'status', status: 503 }, 'upstream_status'],
  ['a 401', { kind: 'status', status: 401 }, 'upstream_auth'],
  ['a 404', { kind: 'status', status: 404 }, 'upstream_not_found'],
  ['a 204', { kind: 'status', status: 204, body: '' }, 'upstream_status'],
  ['a 206', { kind: 'status', status: 206, body: '[]' }, 'upstream_status'],
  ['a stall before the headers', { kind: 'stall' }, 'upstream_unreachable'],
  ['a stall in the body', { kind: 'stall', at: 'body', bytes: 50 }, 'upstream_unreachable'],
  ['a reset before the headers', { kind: 'reset' }, 'upstream_unreachable'],
  ['a reset in the body', { kind: 'reset', bytes: 60 }, 'upstream_unreachable'],
  ['a body cut short', { kind: 'truncate', bytes: 60 }, 'upstream_unreachable'],
  ['a Content-Length too large', { kind: 'wrongLength', by: 10 }, 'upstream_unreachable'],
  ['a redirect to another host', { kind: 'redirect', location: ELSEWHERE }, 'upstream_status'],
  ['a redirect to nowhere', { kind: 'redirect', location: 'http://' }, 'upstream_status'],
  ['a page of HTML', { kind: 'html' }, 'upstream_shape'],
  ['an empty body', { kind: 'empty' }, 'upstream_shape'],
  ['garbage', { kind: 'garbage' }, 'upstream_shape'],
  ['corrupt bytes', { kind: 'corrupt' }, 'upstream_shape'],
  ['a gzip bomb', { kind: 'gzipBomb', bytes: 8_000_000 }, 'upstream_too_large'],
]

const UNUSABLE_INDEX: Row[] = [
  ...UNUSABLE,
  ['an index cut within an entry', body('[{"id":"A","modified":"x"},{"id'), 'upstream_shape'],
  ['an index with text behind it', body('[] and more'), 'upstream_shape'],
  ['entries without ids', body(JSON.stringify(Array(30).fill({ a: 1 }))), 'upstream_shape'],
]

function body(text: string): Fault {
  return { kind: 'body', body: text, type: 'application/json' }
}

/** After the fault is gone, one run brings everything. */
async function expectRecovery(made: Bench): Promise<void> {
  made.sandbox.faults.clear()
  expect(told(await made.run('osv'))).toEqual({ state: 'complete', code: null })
  expect(differences(made)).toEqual([])
  expectAgreement(made)
  await expectSound(made.dir)
}

describe('an unusable index:', () => {
  const FIRST = telling(UNUSABLE_INDEX, 'entries without ids')
  bothTest.each(FIRST)('%s fails the first run', async (_name, fault, code) => {
    const made = await bench({ sandbox: SMALL, env: CAPS })
    made.sandbox.faults.set(INDEX, fault)
    expect(told(await runMeeting(made, 'osv', fault))).toEqual({ state: 'failed', code })
    expect(made.store.snapshots.readSnapshot('osv')).toBeNull()
    expect(made.store.osv.countRecords()).toBe(0)
    await expectRecovery(made)
  })

  const LATER = telling(
    UNUSABLE_INDEX,
    ...['a 401', 'a reset in the body', 'a redirect to another host'],
    'an index with text behind it',
  )
  bothTest.each(LATER)('%s leaves the stored feed unchanged', async (_name, fault, code) => {
    const made = await synced({ sandbox: SMALL, env: CAPS })
    const before = contentsOf(made.dir)
    made.sandbox.feed.change(2)
    made.sandbox.feed.remove(2)
    made.sandbox.faults.set(INDEX, fault)
    const report = await runMeeting(made, 'osv', fault)
    expect(told(report)).toEqual({ state: 'failed', code })
    expect(report.message).not.toBe('')
    expect(made.store.runs.readLatestRun('osv')).toMatchObject({ id: report.id, state: 'failed' })
    expect(contentsOf(made.dir)).toEqual(before)
    await expectRecovery(made)
  })

  const PASSING: [string, Fault][] = [
    ['a 500', { kind: 'status', status: 500 }],
    ['a reset', { kind: 'reset', bytes: 60 }],
    ['a stall', { kind: 'stall' }],
    ['a 429', { kind: 'status', status: 429, headers: { 'Retry-After': '0' } }],
  ]
  bothTest.each(telling(PASSING, 'a reset'))('%s that happens once is retried', async (_name, fault) => {
    const made = await bench({ sandbox: SMALL, env: CAPS })
    made.sandbox.faults.set(INDEX, fault, { times: 1 })
    const report = await runMeeting(made, 'osv', fault, { timeoutMs: 5000, retries: 1 })
    expect(report).toMatchObject({ state: 'complete', facts: { retries: 1 } })
    expect(differences(made)).toEqual([])
  })

  test('an unrequested 304 is not accepted as an index', async () => {
    const made = await bench({ sandbox: SMALL })
    made.sandbox.faults.set(INDEX, { kind: 'status', status: 304, body: '' })
    expect(told(await made.run('osv'))).toEqual({ state: 'failed', code: 'upstream_status' })
    await expectRecovery(made)
  })
})

describe('Retry-After', () => {
  const limited = (seconds: string): Fault => ({
    kind: 'status',
    status: 429,
    headers: { 'Retry-After': seconds },
  })

  longTest('under the ceiling delays the next attempt', async () => {
    const made = await bench({ sandbox: SMALL })
    const retry = new Date(Date.now() - 5000).toUTCString()
    made.sandbox.faults.set(INDEX, limited(retry), { times: 1 })
    made.sandbox.faults.set(INDEX, limited('1'), { times: 1 })
    const report = await made.run('osv')
    expect(report).toMatchObject({ state: 'complete', facts: { retries: 2 } })
    expect((report.endedAt ?? 0) - report.startedAt).toBeGreaterThanOrEqual(990)
  })

  test('beyond the ceiling ends the run at the first answer', async () => {
    const made = await synced({ sandbox: SMALL })
    made.sandbox.feed.change(1)
    made.sandbox.faults.set(INDEX, limited('3600'))
    const report = await made.run('osv')
    expect(told(report)).toEqual({ state: 'failed', code: 'upstream_status' })
    expect(report.message).toContain('3600 s')
    expect(made.sandbox.requests.count()).toBe(1)
    await expectRecovery(made)
  })

  longTest('beyond the ceiling on one record ends the run too', async () => {
    const made = await synced({
      sandbox: SMALL,
      env: { PATCHMIRROR_UPSTREAM_CONCURRENCY: '1' },
    })
    const before = contentsOf(made.dir)
    made.sandbox.feed.change(8)
    made.sandbox.faults.set(RECORDS, limited('3600'))
    expect(told(await made.run('osv'))).toEqual({ state: 'failed', code: 'upstream_status' })
    expect(made.sandbox.requests.count(RECORDS)).toBe(1)
    expect(contentsOf(made.dir)).toEqual(before)
    await expectRecovery(made)
  })
})

describe('redirects of the feed', () => {
  test('within the host are followed', async () => {
    const made = await bench({ sandbox: SMALL })
    const { faults } = made.sandbox
    faults.set('/moved/all.json', { kind: 'body', body: made.sandbox.feed.index() })
    faults.set(INDEX, { kind: 'redirect', location: '/moved/all.json' })
    faults.set(ARCHIVE, { kind: 'redirect', status: 308, location: `${ARCHIVE}?at=2` }, { times: 1 })
    expect(told(await made.run('osv'))).toEqual({ state: 'complete', code: null })
    expect(differences(made)).toEqual([])
  })

  test('that lead back to themselves end', async () => {
    const made = await bench({ sandbox: SMALL })
    made.sandbox.faults.set(INDEX, { kind: 'redirect', location: INDEX })
    expect(told(await made.run('osv'))).toEqual({ state: 'failed', code: 'upstream_status' })
    expect(made.sandbox.requests.count()).toBe(6)
  })
})

describe('an unusable archive:', () => {
  const BROKEN: Row[] = [
    ...UNUSABLE.filter(([name]) => !/gzip|stall|corrupt|too large|body/.test(name)),
    // A download continues from the bytes of a broken attempt: only an attempt without any bytes fails it.
    ['a reset before the first byte', { kind: 'reset', bytes: 0 }, 'upstream_unreachable'],
    ['a body that never begins', { kind: 'truncate', bytes: 0 }, 'upstream_unreachable'],
    ['half an archive', { kind: 'truncatedZip' }, 'archive'],
    ['a damaged end', { kind: 'corrupt', offset: -22, length: 22 }, 'archive'],
    ['a Content-Length too small', { kind: 'wrongLength', by: -30 }, 'archive'],
  ]

  const CUT: [string, 'reset' | 'truncate'][] = [
    ['a download that is reset', 'reset'],
    ['a download that is cut short', 'truncate'],
  ]

  const FEW = telling(BROKEN, 'a reset before the first byte', 'half an archive')

  bothTest.each(FEW)('%s is replaced by single records', async (_name, fault) => {
    const made = await bench({ sandbox: SMALL, env: CAPS })
    made.sandbox.faults.set(ARCHIVE, fault)
    const report = await made.run('osv')
    if (_name === 'a 401') expect(told(report)).toEqual({ state: 'failed', code: 'upstream_auth' })
    else expect(report).toMatchObject({ state: 'complete' })
    if (report.state === 'complete') {
      expect(report.facts['archiveFailed']).toBeTypeOf('string')
      expect(made.sandbox.requests.count(RECORDS)).toBe(40)
      expect(differences(made)).toEqual([])
    }
    await expectRecovery(made)
  })

  bothTest.each(telling(CUT, 'a download that is cut short'))(
    '%s in every answer is resumed to the end',
    async (_name, kind) => {
      const made = await bench({ sandbox: SMALL })
      made.sandbox.faults.set(ARCHIVE, { kind, bytes: 20_000 })
      expect(told(await made.run('osv'))).toEqual({ state: 'complete', code: null })
      expect(made.sandbox.requests.count(RECORDS)).toBe(0)
      expect(differences(made)).toEqual([])
    },
  )

  const MANY = telling(BROKEN, 'a 503')
  bothTest.each(MANY)('%s fails a run with too many records for that', async (_name, fault) => {
    const made = await bench({ sandbox: SMALL, env: CAPS, limits: { singleFetches: 10 } })
    made.sandbox.faults.set(ARCHIVE, fault)
    expect(await made.run('osv')).toMatchObject({ state: 'failed' })
    expect(made.store.osv.countRecords()).toBe(0)
    await expectRecovery(made)
  })

  const DAMAGED: [string, Fault][] = [
    ['a wrong CRC-32', { kind: 'wrongCrc', member: 3 }],
    ['bytes flipped in the middle', { kind: 'corrupt' }],
    ['bytes flipped in the first member', { kind: 'corrupt', offset: 200 }],
  ]
  const TWO = telling(DAMAGED, 'a wrong CRC-32')
  bothTest.each(TWO)('%s costs the records it hits, singly', async (_name, fault) => {
    const made = await bench({ sandbox: SMALL })
    made.sandbox.faults.set(ARCHIVE, fault)
    const report = await made.run('osv')
    expect(report).toMatchObject({ state: 'complete' })
    expect(made.sandbox.requests.count(RECORDS)).toBe(Number(report.facts['contradicted']))
    expect(made.sandbox.requests.count(RECORDS)).toBeGreaterThan(0)
    expect(made.sandbox.requests.count(RECORDS)).toBeLessThan(5)
    expect(differences(made)).toEqual([])
    await expectRecovery(made)
  })

  longTest('one damaged on its way is fetched once more', async () => {
    const made = await bench({ sandbox: SMALL })
    made.sandbox.faults.set(ARCHIVE, { kind: 'truncatedZip' }, { times: 1 })
    const report = await made.run('osv')
    expect(report).toMatchObject({ state: 'complete', facts: { requests: 3 } })
    expect(report.facts['archiveRefetched']).toBeTypeOf('string')
    expect(differences(made)).toEqual([])
  })
})

describe('an unusable record:', () => {
  const SINGLE = telling(UNUSABLE, 'a 500', 'a gzip bomb')
  bothTest.each(SINGLE)('%s makes the run partial, or ends it as failed', async (name, fault) => {
    const made = await synced({ sandbox: SMALL, env: CAPS })
    const [id = '', other = ''] = made.sandbox.feed.change(2)
    const [added = ''] = made.sandbox.feed.add(1)
    const old = made.content(id)
    const path = (of: string): string => `/external/osv/${of}.json`
    made.sandbox.faults.set(path(id), fault)
    made.sandbox.faults.set(path(added), fault)
    const report = await runMeeting(made, 'osv', fault, { timeoutMs: 3000, retries: 0 })
    if (name === 'a 401') expect(told(report)).toEqual({ state: 'failed', code: 'upstream_auth' })
    else {
      expect(report).toMatchObject({ state: 'partial', facts: { lacking: 2 } })
      expect(made.content(other)).toEqual(made.sandbox.feed.record(other))
      expect(made.store.snapshots.readSnapshot('osv')).toMatchObject({ whole: false })
    }
    expect(made.content(id)).toEqual(old)
    expect(made.content(added)).toBeNull()
    expectAgreement(made)
    await expectRecovery(made)
    expect(made.store.snapshots.readSnapshot('osv')).toMatchObject({ whole: true })
  })

  longTest('many in one run end it early, with nothing changed', async () => {
    const made = await synced()
    const before = contentsOf(made.dir)
    made.sandbox.feed.change(100)
    made.sandbox.faults.set(RECORDS, { kind: 'status', status: 500 })
    expect(told(await made.run('osv'))).toEqual({ state: 'failed', code: 'upstream_status' })
    expect(made.sandbox.requests.count(RECORDS)).toBeLessThan(100)
    expect(contentsOf(made.dir)).toEqual(before)
    await expectRecovery(made)
  })

  test('one over the size cap is left out', async () => {
    const made = await synced({ sandbox: SMALL, env: CAPS })
    const record = { id: 'ROOT-BIG-1', modified: '2026-01-01T00:00:00Z', x: 'x'.repeat(1 << 20) }
    made.sandbox.feed.put('ROOT-BIG-1', JSON.stringify(record))
    expect(await made.run('osv')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
    expect(made.content('ROOT-BIG-1')).toBeNull()
    expectAgreement(made)
  })

  const WRONG: [string, string][] = [
    ['has another id', '{"id":"ROOT-OTHER-1","modified":"2026-01-01T00:00:00Z"}'],
    ['has no id', '{"modified":"2026-01-01T00:00:00Z"}'],
    ['is no object', '["ROOT-ODD-1"]'],
    ['is no JSON', '{"id":"ROOT-ODD-1",'],
    ['is null', 'null'],
  ]
  const SOME = telling(WRONG, 'has another id', 'is no JSON')
  bothTest.each(SOME)('one that %s is never stored', async (_name, bytes) => {
    const made = await synced({ sandbox: SMALL })
    made.sandbox.feed.put('ROOT-ODD-1', bytes, '2026-01-01T00:00:00Z')
    expect(await made.run('osv')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
    expect(made.content('ROOT-ODD-1')).toBeNull()
    expectAgreement(made)
    expect(await made.run('osv', { kind: 'reconcile' })).toMatchObject({ state: 'partial' })
    expect(made.content('ROOT-ODD-1')).toBeNull()
    made.sandbox.feed.put('ROOT-ODD-1', '{"id":"ROOT-ODD-1","modified":"2026-01-02T00:00:00Z"}')
    await expectRecovery(made)
  })
})

describe('records with another date than the index', () => {
  test('are stored when they are newer', async () => {
    const made = await synced({ sandbox: SMALL })
    made.sandbox.feed.change(3)
    made.sandbox.faults.set(RECORDS, { kind: 'newerRecords' })
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expectAgreement(made)
    made.sandbox.faults.clear()
    made.sandbox.feed.change(1)
    await made.run('osv')
    expect(await made.run('osv', { kind: 'reconcile' })).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
  })

  longTest('are stored when they are older, and replaced by the next run when a cache returned them', async () => {
    const made = await synced({ sandbox: SMALL })
    made.sandbox.feed.change(3)
    made.sandbox.faults.set(RECORDS, { kind: 'staleRecords' })
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expectAgreement(made)
    expect(differences(made)).not.toEqual([])
    made.sandbox.faults.clear()
    made.sandbox.requests.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(made.sandbox.requests.count(RECORDS)).toBe(3)
    expect(differences(made)).toEqual([])
  })

  longTest('are requested only once more when upstream always returns older ones', async () => {
    const made = await synced({ sandbox: SMALL })
    const [first] = made.sandbox.feed.ids()
    const older = JSON.stringify({ id: first, modified: '2001-01-01T00:00:00Z' })
    made.sandbox.feed.change(40)
    made.sandbox.faults.set(`/external/osv/${String(first)}.json`, { kind: 'body', body: older })
    for (const requests of [40, 1, 0]) {
      made.sandbox.requests.clear()
      expect(await made.run('osv')).toMatchObject({ state: 'complete' })
      expect(made.sandbox.requests.count(RECORDS)).toBe(requests)
      expectAgreement(made)
    }
  })

  longTest('are as an old index lists them, and the next index adds the rest', async () => {
    const made = await bench({ sandbox: SMALL })
    made.sandbox.feed.freezeIndex()
    made.sandbox.feed.change(5)
    made.sandbox.feed.add(2)
    expect(await made.run('osv')).toMatchObject({
      state: 'complete',
      facts: { newerThanListed: 5, unlistedMembers: 2 },
    })
    expectAgreement(made)
    made.sandbox.feed.thawIndex()
    await expectRecovery(made)
  })

  test('are a change also when the date moves backwards', async () => {
    const made = await synced({ sandbox: SMALL })
    const moved = made.sandbox.feed.moveBackwards(4)
    expect(await made.run('osv')).toMatchObject({ facts: { changed: moved.length } })
    expect(differences(made)).toEqual([])
  })

  longTest('count once for an id listed twice, with the last date', async () => {
    const made = await synced({ sandbox: SMALL })
    made.sandbox.faults.set(INDEX, { kind: 'duplicateIds', count: 3 })
    expect(await made.run('osv')).toMatchObject({
      state: 'complete',
      facts: { duplicateIds: 3, changed: 3, records: 40 },
    })
    await expectRecovery(made)
  })
})
