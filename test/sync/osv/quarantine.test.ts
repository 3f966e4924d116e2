import { describe, expect } from 'vitest'
import type { Quarantine } from '../../../src/store/runs/quarantine.ts'
import { findRejected } from '../../../src/store/runs/rejected.ts'
import { refuseRemoval } from '../../../src/sync/refusals.ts'
import { type Bench, differences } from '../../support/mirror.ts'
import { INDEX, RECORDS, archiveOf, bench, contentsOf, expectAgreement, synced, tamper, verify } from '../fixtures.ts'
import { bothTest, longTest, telling, test } from '../../support/tables.ts'

/** The tables that a quarantined run may not touch. */
function served(dir: string): Record<string, string> {
  const { quarantine: _kept, ...rest } = contentsOf(dir)
  return rest
}

function quarantineOf({ store }: Bench, run: number): Quarantine {
  const found = store.quarantine.readQuarantine(run)
  if (found === null) throw new Error(`run ${run} has nothing in quarantine`)
  return found
}

/** As `patchmirror approve RUN` does it. */
async function approve(made: Bench, run: number) {
  const approved = quarantineOf(made, run)
  const report = await made.run(approved.source, { kind: 'approve', approved })
  await made.store.exclusive(() => made.store.quarantine.decideQuarantine(run, 'approved', Date.now()))
  return report
}

function reject({ store }: Bench, run: number): Promise<boolean> {
  return store.exclusive(() => store.quarantine.decideQuarantine(run, 'rejected', Date.now()))
}

async function shrunk(): Promise<{ made: Bench; run: number }> {
  const made = await synced()
  made.sandbox.faults.set(INDEX, { kind: 'shrinkIndex', keep: 0.5 })
  const report = await made.run('osv')
  expect(report).toMatchObject({ state: 'quarantined', facts: { plannedRemoved: 60 } })
  return { made, run: report.id }
}

describe('an index that suddenly shrinks', () => {
  test('changes nothing, and the run reports what it would do', async () => {
    const made = await synced()
    const before = served(made.dir)
    const archive = archiveOf(made)
    made.sandbox.faults.set(INDEX, { kind: 'shrinkIndex', keep: 0.5 })
    const report = await made.run('osv')
    expect(report).toMatchObject({ state: 'quarantined', code: null, asOf: null })
    expect(report.message).toContain('it would remove 60 of 120 records (50.0 %)')
    expect(report.facts['quarantine']).toBe(report.id)
    expect(report.facts['plannedRemovedIds']).toHaveLength(20)
    expect(served(made.dir)).toEqual(before)
    expect(archiveOf(made)).toEqual(archive)
    expect(differences(made)).toEqual([])
    expectAgreement(made)
  })

  test('is stored in quarantine once, however often upstream serves it', async () => {
    const { made, run } = await shrunk()
    for (let i = 0; i < 3; i++) {
      const again = await made.run('osv')
      expect(again).toMatchObject({ state: 'quarantined', facts: { quarantine: run } })
    }
    expect(made.store.quarantine.listOpenQuarantines()).toMatchObject([{ runId: run, path: INDEX }])
  })

  test('replaces an earlier one in quarantine when it shrinks further', async () => {
    const { made, run } = await shrunk()
    made.sandbox.faults.clear()
    made.sandbox.faults.set(INDEX, { kind: 'shrinkIndex', keep: 0.25 })
    const second = await made.run('osv')
    expect(made.store.quarantine.listOpenQuarantines().map(({ runId }) => runId)).toEqual([second.id])
    expect(made.store.quarantine.readQuarantine(run)?.decision).toBe('superseded')
  })

  test('is quarantined in a reconcile and in a full sync too', async () => {
    const { made, run } = await shrunk()
    for (const how of [{ kind: 'reconcile' }, { full: true }, { kind: 'repair', full: true }] as const)
      expect(await made.run('osv', how)).toMatchObject({
        state: 'quarantined',
        facts: { quarantine: run },
      })
    expect(differences(made)).toEqual([])
  })

  longTest('is applied by approval exactly as it was reported', async () => {
    const { made, run } = await shrunk()
    const shown = made.store.quarantine.readQuarantine(run)
    made.sandbox.faults.clear()
    made.sandbox.faults.set(INDEX, { kind: 'shrinkIndex', keep: 0.1 })
    expect(await approve(made, run)).toMatchObject({
      state: 'complete',
      facts: { removed: 60, records: 60 },
    })
    expect(made.store.osv.countRecords()).toBe(60)
    expect(made.store.feeds.readDocument(INDEX)?.sha256).toEqual(shown?.sha256)
    expect(made.store.quarantine.readQuarantine(run)?.decision).toBe('approved')
    expectAgreement(made)
    expect(await made.run('osv')).toMatchObject({
      state: 'quarantined',
      facts: { plannedRemoved: 48 },
    })
    made.sandbox.faults.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
  })

  test('is applied with its additions and changes by approval', async () => {
    const made = await synced()
    made.sandbox.feed.change(5)
    made.sandbox.feed.remove(40)
    made.sandbox.feed.add(10)
    const { id, state } = await made.run('osv')
    expect(state).toBe('quarantined')
    expect(await approve(made, id)).toMatchObject({ state: 'complete', facts: { removed: 40 } })
    expect(differences(made)).toEqual([])
    made.sandbox.requests.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { requests: 1 } })
  })

  test('stays refused when it is rejected', async () => {
    const { made, run } = await shrunk()
    await reject(made, run)
    const again = await made.run('osv')
    expect(again).toMatchObject({ state: 'quarantined', facts: { quarantine: run } })
    expect(again.message).toContain(`rejected before (run ${run})`)
    expect(made.store.quarantine.listOpenQuarantines()).toEqual([])
    expect(differences(made)).toEqual([])
  })

  test('is named as rejected until a run compares it again, whatever fails meanwhile', async () => {
    const { made, run } = await shrunk()
    await reject(made, run)
    const rejected = () => findRejected(made.store, 'osv')?.runId
    expect(rejected()).toBe(run)
    const unreachable = {
      PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:9',
      LIMIT_UPSTREAM_RETRIES: '0',
    }
    for (let i = 0; i < 2; i++) expect(await made.runWith(unreachable, 'osv')).toMatchObject({ state: 'failed' })
    expect(rejected()).toBe(run)
    made.sandbox.faults.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(rejected()).toBeUndefined()
  })

  test('is superseded by a healthy index', async () => {
    const { made, run } = await shrunk()
    made.sandbox.faults.clear()
    made.sandbox.feed.change(1)
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(made.store.quarantine.readQuarantine(run)?.decision).toBe('superseded')
    expect(made.store.quarantine.listOpenQuarantines()).toEqual([])
  })

  const AGAIN = [
    ['a 304', {}],
    ['the same bytes', { full: true }],
    ['the same bytes without validators', { kind: 'reconcile' }],
  ] as const
  bothTest.each(telling(AGAIN, 'a 304'))(
    'is superseded when upstream serves the stored feed again by %s',
    async (_name, how) => {
      const { made, run } = await shrunk()
      made.sandbox.faults.clear()
      expect(await made.run('osv', how)).toMatchObject({ state: 'complete' })
      expect(made.store.quarantine.readQuarantine(run)?.decision).toBe('superseded')
    },
  )

  test('is superseded when upstream serves the stored feed again, while a record is still missing', async () => {
    const made = await synced()
    made.sandbox.feed.add(1)
    made.sandbox.faults.set(RECORDS, { kind: 'status', status: 404 })
    expect(await made.run('osv')).toMatchObject({ state: 'partial' })
    const shrinking = made.sandbox.faults.set(INDEX, { kind: 'shrinkIndex', keep: 0.5 })
    const { id, state } = await made.run('osv')
    expect(state).toBe('quarantined')
    shrinking.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
    expect(made.store.quarantine.readQuarantine(id)?.decision).toBe('superseded')
  })

  test('is superseded by the same bytes under another ETag', async () => {
    const { made, run } = await shrunk()
    made.sandbox.faults.clear()
    made.sandbox.faults.set(INDEX, {
      kind: 'body',
      body: made.sandbox.feed.index(),
      headers: { ETag: '"another"' },
    })
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(made.store.quarantine.readQuarantine(run)?.decision).toBe('superseded')
    expect(made.store.feeds.readUpstreamState(INDEX)?.etag).toBe('"another"')
  })

  test('leaves no trace after a dry run', async () => {
    const made = await synced()
    const before = contentsOf(made.dir)
    made.sandbox.faults.set(INDEX, { kind: 'shrinkIndex', keep: 0.5 })
    expect(await made.run('osv', { dryRun: true })).toMatchObject({ state: 'quarantined', id: 0 })
    expect(contentsOf(made.dir)).toEqual(before)
  })
})

describe('the guard of the index', () => {
  const LOSSES: [string, number, number, string][] = [
    ['accepts the loss of exactly 20 of 100', 100, 20, 'complete'],
    ['refuses the loss of 21 of 100', 100, 21, 'quarantined'],
    ['accepts the loss of exactly 10 % of 300', 300, 30, 'complete'],
    ['refuses the loss of 31 of 300', 300, 31, 'quarantined'],
    ['refuses the loss of all but one of 21, which are of several ecosystems', 21, 20, 'quarantined'],
    ['refuses the loss of all of 5', 5, 5, 'quarantined'],
  ]
  const ENDS = [...['accepts the loss of exactly 20 of 100', 'refuses the loss of 21 of 100']]
  bothTest.each(telling(LOSSES, ...ENDS))('%s', async (_name, records, removed, state) => {
    const made = await synced({ sandbox: { records, large: 0 } })
    made.sandbox.feed.remove(removed)
    const fact = state === 'complete' ? 'removed' : 'plannedRemoved'
    expect(await made.run('osv')).toMatchObject({ state, facts: { [fact]: removed } })
    expect(made.store.osv.countRecords()).toBe(state === 'complete' ? records - removed : records)
    expectAgreement(made)
  })

  test('quarantines an index with only other ids', async () => {
    const made = await synced({ sandbox: { records: 8, large: 0 } })
    const old = made.sandbox.feed.ids()
    made.sandbox.feed.add(8)
    for (const id of old) made.sandbox.feed.delete(id)
    expect(await made.run('osv')).toMatchObject({
      state: 'quarantined',
      facts: { plannedAdded: 8 },
    })
  })

  longTest('quarantines an empty index, in the first run too', async () => {
    for (const first of [true, false]) {
      const made = first ? await bench() : await synced()
      made.sandbox.faults.set(INDEX, { kind: 'shrinkIndex', keep: 0 })
      const report = await made.run('osv')
      expect(report).toMatchObject({ state: 'quarantined' })
      expect(report.message).toContain('lists no record at all')
      expect(made.store.osv.countRecords()).toBe(first ? 0 : 120)
      expect(await approve(made, report.id)).toMatchObject({ state: 'complete' })
      expect(made.store.osv.countRecords()).toBe(0)
      expect(made.index()?.toString()).toBe('[]')
      expectAgreement(made)
      made.sandbox.faults.clear()
      expect(await made.run('osv')).toMatchObject({ state: 'complete' })
      expect(differences(made)).toEqual([])
    }
  })

  test('uses the limits of the settings', async () => {
    const env = { PATCHMIRROR_GUARD_LIMIT: 'removed=100% and 20' }
    const made = await synced({ env })
    made.sandbox.feed.remove(119)
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { removed: 119 } })
    expect(differences(made)).toEqual([])
  })
})

test('the reason names the limit as it is set', () => {
  const limits = { fraction: 0.07, count: 20 }
  expect(refuseRemoval(100, 50, limits, 'records')).toMatch(/more than 20 and more than 7 %$/)
})

test('a repair puts a damaged record back while the index waits for a decision', async () => {
  const { made, run } = await shrunk()
  const [id = ''] = made.sandbox.feed.ids()
  tamper(
    made.dir,
    'UPDATE osv_body SET bytes = zeroblob(9) WHERE rowid = (SELECT body FROM osv_record WHERE id = ?)',
    id,
  )
  expect((await verify(made.dir)).damagedRecords).toEqual([id])
  const repair = { kind: 'repair', full: true, suspectIds: [id] } as const
  expect(await made.run('osv', repair)).toMatchObject({ state: 'quarantined', facts: { quarantine: run } })
  expect((await verify(made.dir)).damagedRecords).toEqual([])
  expect(await approve(made, run)).toMatchObject({ state: 'complete' })
})
