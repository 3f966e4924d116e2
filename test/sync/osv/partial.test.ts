import { describe, expect } from 'vitest'
import { missingOf } from '../../../src/server/snapshot/missing.ts'
import { differences } from '../../support/mirror.ts'
import { ARCHIVE, INDEX, RECORDS, bench, contentsOf, expectAgreement, expectSound, synced } from '../fixtures.ts'
import { longTest, test } from '../../support/tables.ts'

const SMALL = { records: 40, large: 0 }

describe('listed ids without a record', () => {
  longTest('are omitted from the served index, and no others are', async () => {
    const made = await bench({ sandbox: SMALL })
    made.sandbox.faults.set(INDEX, { kind: 'ghostIds', count: 3 })
    expect(await made.run('osv')).toMatchObject({
      state: 'partial',
      message: expect.stringMatching(/^40 added, 0 changed, 0 removed; 3 /) as string,
      facts: { added: 40, lacking: 3, records: 40 },
    })
    expect(made.index()).toEqual(made.sandbox.feed.index())
    expect(made.store.snapshots.readSnapshot('osv')).toMatchObject({ whole: false, records: 40 })
    expectAgreement(made)
    await expectSound(made.dir)
  })

  test('are requested again in each run, which writes nothing as long as they are missing', async () => {
    const made = await bench({ sandbox: SMALL })
    made.sandbox.faults.set(INDEX, { kind: 'ghostIds', count: 3 })
    await made.run('osv')
    made.sandbox.requests.clear()
    const before = contentsOf(made.dir)
    expect(await made.run('osv')).toMatchObject({ state: 'partial', facts: { lacking: 3 } })
    expect(made.sandbox.requests.entries[0]).toMatchObject({ path: INDEX, status: 304 })
    expect(made.sandbox.requests.count(RECORDS)).toBe(3)
    expect(missingOf(made.store, 'osv')).toEqual({ partial: true, missing: 3 })
    expect(contentsOf(made.dir)).toEqual(before)
  })

  test('leave the mirror complete when the index no longer lists them', async () => {
    const made = await bench({ sandbox: SMALL })
    made.sandbox.faults.set(INDEX, { kind: 'ghostIds', count: 3 })
    await made.run('osv')
    made.sandbox.faults.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(made.store.snapshots.readSnapshot('osv')).toMatchObject({ whole: true })
    expect(differences(made)).toEqual([])
    made.sandbox.requests.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { requests: 1 } })
  })

  test('are stored on a 304, when the record appears after the index', async () => {
    const made = await synced({ sandbox: SMALL })
    const [late = ''] = made.sandbox.feed.add(1)
    const [changed = ''] = made.sandbox.feed.ids().filter((id) => id !== late)
    made.sandbox.feed.put(changed, made.sandbox.feed.record(changed), '2026-08-01T00:00:00Z')
    const old = made.store.osv.readEntry(changed)?.modified
    made.sandbox.faults.set(RECORDS, { kind: 'status', status: 404 })
    expect(await made.run('osv')).toMatchObject({ state: 'partial', facts: { lacking: 2 } })
    expect(missingOf(made.store, 'osv')).toEqual({ partial: true, missing: 2 }) // a missing and an outdated one
    const served = JSON.parse(made.index()?.toString() ?? '') as { id: string; modified: string }[]
    expect(served.map(({ id }) => id)).not.toContain(late)
    expect(served.find(({ id }) => id === changed)?.modified).toBe(old)
    expectAgreement(made)
    made.sandbox.faults.clear()
    made.sandbox.requests.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(made.sandbox.requests.entries[0]).toMatchObject({ path: INDEX, status: 304 })
    expect(differences(made)).toEqual([])
    expect(missingOf(made.store, 'osv')).toEqual({ partial: false, missing: 0 })
  })

  test('count for a snapshot that was replaced since, whose views may still be in use', async () => {
    const made = await synced({ sandbox: SMALL })
    const whole = made.store.snapshots.readSnapshot('osv')?.id ?? ''
    const [changed = ''] = made.sandbox.feed.change(2)
    made.sandbox.faults.set(`/external/osv/${changed}.json`, { kind: 'status', status: 500 })
    expect(await made.run('osv')).toMatchObject({ state: 'partial' })
    const partial = made.store.snapshots.readSnapshot('osv')?.id ?? ''
    for (const id of [whole, partial]) expect(missingOf(made.store, 'osv', id)).toEqual({ partial: true, missing: 1 })
    made.sandbox.faults.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(missingOf(made.store, 'osv', partial)).toEqual({ partial: true, missing: null })
    expect(missingOf(made.store, 'osv', whole)).toEqual({ partial: false, missing: 0 })
  })

  longTest('beyond the bound of single fetches wait for the next runs', async () => {
    const made = await bench({ sandbox: SMALL, limits: { singleFetches: 15 } })
    made.sandbox.feed.archive()
    made.sandbox.feed.freezeArchive()
    made.sandbox.feed.add(40)
    expect(await made.run('osv')).toMatchObject({ state: 'partial', facts: { lacking: 25 } })
    expectAgreement(made)
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
  })
})

describe('an archive that is older than the index', () => {
  test('provides records under its own dates until they are fetched singly', async () => {
    const made = await bench({ sandbox: SMALL })
    made.sandbox.feed.archive()
    made.sandbox.feed.freezeArchive()
    const changed = made.sandbox.feed.change(5)
    made.sandbox.faults.set(RECORDS, { kind: 'status', status: 404 })
    expect(await made.run('osv')).toMatchObject({ state: 'partial', facts: { lacking: 5 } })
    expect(made.store.osv.countRecords()).toBe(40)
    expectAgreement(made)
    for (const id of changed) expect(made.store.osv.readEntry(id)?.modified).not.toBe(made.sandbox.feed.modified(id))
    made.sandbox.faults.clear()
    made.sandbox.requests.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(made.sandbox.requests.count(RECORDS)).toBe(5)
    expect(made.sandbox.requests.count(ARCHIVE)).toBe(0)
    expect(differences(made)).toEqual([])
  })
})

describe('an index that is older than the stored one', () => {
  /** A feed that got one more record, and its index of before, as a copy of the service still has it. */
  async function behind() {
    const made = await bench({ sandbox: SMALL })
    const old = made.sandbox.feed.index()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    const [added = ''] = made.sandbox.feed.add(1)
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { added: 1 } })
    const answers = (headers: Record<string, string>): void => {
      made.sandbox.faults.set(INDEX, { kind: 'body', body: old, type: 'application/json', headers })
    }
    return { ...made, added, answers }
  }

  test('by its own date removes nothing unless that is approved, and says why', async () => {
    const made = await behind()
    made.answers({ 'last-modified': 'Thu, 01 Jan 2015 00:00:00 GMT' })
    const refused = await made.run('osv')
    expect(refused).toMatchObject({ state: 'quarantined' })
    expect(refused.message).toMatch(
      /remove 1 record that may still be listed: .* 2015-01-01T.* is older than the last one/,
    )
    expect(made.store.osv.readEntry(made.added)).not.toBeNull()
    const approved = made.store.quarantine.readQuarantine(refused.id)
    if (approved === null) throw new Error('nothing was refused')
    expect(await made.run('osv', { kind: 'approve', approved })).toMatchObject({ state: 'partial' })
    expect(made.store.osv.readEntry(made.added)).toBeNull()
    made.sandbox.faults.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
  })

  test('by its time in a cache is not taken', async () => {
    const made = await behind()
    made.answers({ age: '90000' })
    const report = await made.run('osv')
    expect(report).toMatchObject({ state: 'failed', code: 'upstream_shape' })
    expect(report.message).toContain('a cache answered for upstream')
    made.sandbox.faults.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
  })
})
