import { describe, expect } from 'vitest'
import { operatorName } from '../../../src/base/domain/run-facts.ts'
import type { Bench } from '../../support/mirror.ts'
import { differences } from '../../support/mirror.ts'
import type { Doc } from '../../guard/hostile.ts'
import { bench, expectAgreement, synced } from '../fixtures.ts'
import { LOWER, approve, attack } from './attacks.ts'
import { bothTest, longTest, telling, test } from '../../support/tables.ts'

const decisionOf = ({ store }: Bench, run: number) => store.quarantine.readQuarantine(run)?.decision
const reject = ({ store }: Bench, run: number) =>
  store.exclusive(() => store.quarantine.decideQuarantine(run, 'rejected', 1))

/** Returns what puts the records back as they are now. */
function kept({ sandbox: { feed } }: Bench): () => void {
  const records = feed.ids().map((id) => [id, feed.record(id), feed.modified(id)] as const)
  return () => {
    for (const [id, bytes, modified] of records) feed.put(id, bytes, modified)
  }
}

describe('records that leave the scope by their content', () => {
  const toGo = (doc: Doc): void => {
    for (const one of doc.affected ?? []) if ('package' in one) one.package.ecosystem = 'Go'
  }

  bothTest.each(telling(['10', '500'], '10'))(
    'are kept until they are approved, archive from %s',
    async (threshold) => {
      const env = { PATCHMIRROR_OSV_SCOPE: 'npm', LIMIT_OSV_ARCHIVE_THRESHOLD: threshold }
      const made = await bench({ sandbox: { records: 200, large: 0 }, env })
      await made.run('osv')
      const stored = made.store.osv.countRecords()
      expect(stored).toBeGreaterThan(20)
      attack(made, toGo, 200)
      const report = await made.run('osv')
      expect(report).toMatchObject({ state: 'quarantined' })
      expect(report.message).toContain(
        `${stored} records left the scope (osv.scope): it would remove all ${stored} records`,
      )
      expect(report.facts['doubtfulIds']).toContainEqual(expect.stringContaining(': out of the mirrored scope now'))
      expect(made.store.osv.countRecords()).toBe(stored)
      expect(await made.run('osv')).toMatchObject({ state: 'quarantined', facts: { quarantine: report.id } })
      expect(await approve(made, report.id)).toMatchObject({ state: 'complete', facts: { removedByScope: stored } })
      expect(made.store.osv.countRecords()).toBe(0)
      const by = { decision: 'approved', decidedBy: operatorName() } // stored with the records, before the command ends
      expect(made.store.runs.readRun(report.id)?.facts).toMatchObject(by)
      expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    },
  )

  longTest('are counted with the records that the index removes', async () => {
    const made = await bench({ sandbox: { records: 200, large: 0 }, env: { PATCHMIRROR_OSV_SCOPE: 'npm' } })
    await made.run('osv')
    const { feed } = made.sandbox
    const stored = JSON.parse(made.index()?.toString() ?? '[]') as { id: string }[]
    const count = stored.length
    const gone = stored.slice(0, 3)
    for (const { id } of gone) feed.delete(id)
    attack(made, toGo, 200)
    const report = await made.run('osv')
    expect(report).toMatchObject({ state: 'quarantined', facts: { plannedRemoved: 3, removedByScope: count - 3 } })
    expect(report.message).toContain(
      `${count - 3} records left the scope (osv.scope), and the index removes 3: it would remove all ${count} records`,
    )
    expect(await approve(made, report.id)).toMatchObject({ state: 'complete' })
    expect(made.store.osv.countRecords()).toBe(0)
  })

  longTest('are judged against what remains of an approved removal', async () => {
    const made = await bench({ sandbox: { records: 200, large: 0 }, env: { PATCHMIRROR_OSV_SCOPE: 'npm' } })
    await made.run('osv')
    const { feed } = made.sandbox
    const stored = JSON.parse(made.index()?.toString() ?? '[]') as { id: string }[]
    for (const { id } of stored.slice(1)) feed.delete(id)
    attack(made, toGo, 200)
    const removal = await made.run('osv')
    expect(removal.message).toMatch(/^it would remove \d+ of \d+ records/)
    const rest = await approve(made, removal.id)
    expect(rest.message).toContain('1 record left the scope (osv.scope): it would remove the only one of the records')
    expect(await approve(made, rest.id)).toMatchObject({ state: 'complete' })
    expect(made.store.osv.countRecords()).toBe(0)
  })

  longTest('count as lost below the limits of removals', async () => {
    const env = { PATCHMIRROR_OSV_SCOPE: '!Go', PATCHMIRROR_GUARD_LIMIT: 'changed=1% and 5' }
    const made = await bench({ sandbox: { records: 120, large: 0 }, env })
    await made.run('osv')
    attack(made, toGo, 10)
    const report = await made.run('osv')
    expect(report.message).toMatch(/\d+ of \d+ records have fewer affected versions/)
    expect(report.state).toBe('quarantined')
  })
})

describe('an approval', () => {
  longTest('of records that upstream corrected since publishes no older state', async () => {
    const made = await synced()
    const restore = kept(made)
    attack(made)
    const { id } = await made.run('osv')
    await reject(made, id)
    restore()
    made.sandbox.feed.add(100)
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    const report = await made.run('osv', { kind: 'approve', approved: approvedOf(made, id) })
    expect(report).toMatchObject({ state: 'failed', code: 'usage' })
    expect(report.message).toContain(`upstream serves something else now than run ${id} refused`)
    expect(made.store.osv.countRecords()).toBe(220)
    expect(differences(made)).toEqual([])
  })

  bothTest.each(telling(['0', '2'], '0'))(
    'of removals that upstream corrected since publishes no older state, with %s new records',
    async (added) => {
      const made = await synced()
      const restore = kept(made)
      for (const id of made.sandbox.feed.ids().slice(40)) made.sandbox.feed.delete(id)
      const { id } = await made.run('osv')
      await reject(made, id)
      restore()
      if (added !== '0') made.sandbox.feed.add(Number(added))
      expect(await made.run('osv')).toMatchObject({ state: 'complete' })
      const report = await made.run('osv', { kind: 'approve', approved: approvedOf(made, id) })
      expect(report).toMatchObject({ state: 'failed', code: 'usage' })
      expect(made.store.osv.countRecords()).toBe(120 + Number(added))
    },
  )

  test('of removals, then of records in the same index, publishes both', async () => {
    const made = await synced()
    attack(made)
    for (const id of made.sandbox.feed.ids().slice(40)) made.sandbox.feed.delete(id)
    const removal = await made.run('osv')
    expect(removal.message).toContain('it would remove 80 of 120 records')
    const records = await approve(made, removal.id)
    expect(records).toMatchObject({ state: 'quarantined', facts: { quarantine: records.id } })
    expect(records.message).toContain(`what run ${removal.id} would remove is approved now`)
    expect(decisionOf(made, removal.id)).toBe('approved')
    expect(await made.run('osv')).toMatchObject({ state: 'quarantined', facts: { quarantine: records.id } })
    expect(await approve(made, records.id)).toMatchObject({ state: 'complete' })
    const { id = 0 } = made.store.changes.readLatestLogged('osv') ?? {}
    const marked = { approved: ['affectedLost', 'removed'], counts: { removed: 80 } }
    expect(made.store.changes.readDoubts(id)).toMatchObject(marked)
    expect(made.store.osv.countRecords()).toBe(40)
    expect(differences(made)).toEqual([])
  })

  test('of records that would by now also remove others asks about these', async () => {
    const made = await synced()
    attack(made)
    const { id } = await made.run('osv')
    for (const one of made.sandbox.feed.ids().slice(40)) made.sandbox.feed.delete(one)
    const report = await approve(made, id)
    expect(report.state).toBe('quarantined')
    expect(report.message).toContain('it would remove 80 of 120 records')
    expectAgreement(made)
  })
})

longTest('a silent change that was refused stays refused through syncs with other news', async () => {
  const made = await synced()
  attack(made, LOWER, 30, null)
  const { id } = await made.run('osv', { kind: 'reconcile' })
  for (const added of [2, 3]) {
    made.sandbox.feed.add(added)
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { added } })
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(decisionOf(made, id)).toBe(null)
  }
  expect(await made.run('osv', { kind: 'reconcile' })).toMatchObject({ facts: { quarantine: id } })
  expect(await approve(made, id)).toMatchObject({ state: 'complete', facts: { silentChanges: 30 } })
  expect(made.store.osv.countRecords()).toBe(125)
  expect(differences(made)).toEqual([])
})

function approvedOf({ store }: Bench, run: number) {
  const found = store.quarantine.readQuarantine(run)
  if (found === null) throw new Error(`run ${run} has nothing in quarantine`)
  return found
}

longTest('records that were removed and come back are compared with what they were', async () => {
  const made = await bench({ sandbox: { records: 400, large: 0 } })
  await made.run('osv')
  const restore = kept(made)
  const gone = made.sandbox.feed.ids().slice(0, 38)
  for (const id of gone) made.sandbox.feed.delete(id)
  expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { removed: 38 } })
  restore()
  attack(made, LOWER, 38)
  const report = await made.run('osv')
  expect(report).toMatchObject({ state: 'quarantined', facts: { plannedAdded: 38 } })
  expect(report.message).toContain('(affectedLost')
  restore()
  expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { added: 38 } })
})
