import { describe, expect, onTestFinished } from 'vitest'
import { doubtSentence } from '../../../src/base/domain/doubts.ts'
import { problemsOf } from '../../../src/server/status/problems.ts'
import { buildStatus } from '../../../src/server/status/status.ts'
import { createReads } from '../../../src/store/reads.ts'
import { openReader } from '../../../src/store/database/open.ts'
import { differences } from '../../support/mirror.ts'
import { mutated } from '../../guard/hostile.ts'
import { longTest, test } from '../../support/tables.ts'
import { LOWER, approve, attack, mutationOf } from './attacks.ts'
import { INDEX, contentsOf, expectAgreement, expectSound, synced } from '../fixtures.ts'

/** What is served: everything but the quarantine and dates of requests. */
function served(dir: string): Record<string, string> {
  const { quarantine: _kept, ...rest } = contentsOf(dir)
  return rest
}

describe('records whose fixes are lowered in mass', () => {
  longTest('are quarantined with the difference, and approval publishes them', async () => {
    const made = await synced()
    const before = served(made.dir)
    attack(made)
    const report = await made.run('osv')
    expect(report).toMatchObject({ state: 'quarantined', asOf: null, facts: { quarantine: report.id } })
    expect(report.message).toMatch(/\d+ of 120 records have fewer affected versions than before \(affectedLost/)
    expect(report.facts['doubts']).toBeGreaterThan(20)
    expect(report.facts['doubtfulIds']).toHaveLength(20)
    expect((report.facts['doubtfulIds'] as string[])[0]).toMatch(/^ROOT-\S+: .*: fix lowered from \S+ to \S+/)
    expect(served(made.dir)).toEqual(before)
    expect(made.store.quarantine.listOpenQuarantines()).toMatchObject([{ runId: report.id, path: INDEX }])
    expect(await made.run('osv')).toMatchObject({ state: 'quarantined', facts: { quarantine: report.id } })
    const approval = await approve(made, report.id)
    expect(approval).toMatchObject({ state: 'complete', facts: { changed: 30 } })
    expect(approval.message).toContain('published, as approved: 30 of ')
    expect(approval.message).not.toContain('doubtful')
    expect(differences(made)).toEqual([])
    const { id = 0 } = made.store.changes.readLatestLogged('osv') ?? {}
    expect(made.store.changes.readDoubts(id)).toMatchObject({ run: approval.id, approved: ['affectedLost'] })
    expect(made.store.changes.countDoubts('osv', 0)).toEqual({}) // no bundle warns of what was approved
    const marks = [...made.store.changes.listDoubts({ source: 'osv', after: id - 1, until: id }).values()].flat()
    expect(marks).toHaveLength(30)
    expect(marks.map(doubtSentence)[0]).toMatch(/^doubtful, and approved: it has fewer affected versions/)
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { requests: 1 } })
    await expectSound(made.dir)
  })

  longTest('stay refused when they are rejected, also beside other changes', async () => {
    const made = await synced()
    attack(made)
    const { id } = await made.run('osv')
    await made.store.exclusive(() => made.store.quarantine.decideQuarantine(id, 'rejected', 1))
    made.sandbox.feed.add(3)
    const again = await made.run('osv')
    expect(again).toMatchObject({ state: 'quarantined', facts: { quarantine: id } })
    expect(again.message).toContain(`rejected before (run ${id})`)
    expect(made.store.osv.countRecords()).toBe(120)
  })

  longTest('are quarantined again when upstream serves something else than was approved', async () => {
    const made = await synced()
    attack(made)
    const { id } = await made.run('osv')
    attack(made, mutationOf('every fix becomes version 0'), 35)
    const report = await approve(made, id)
    expect(report).toMatchObject({ state: 'quarantined', facts: { quarantine: report.id } })
    expect(report.message).toContain(`what run ${id} refused was something else`)
    expectAgreement(made)
    expect(await approve(made, report.id)).toMatchObject({ state: 'complete' })
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
  })

  longTest('are found in an archive as in single records', async () => {
    const made = await synced({ env: { LIMIT_OSV_ARCHIVE_THRESHOLD: '10' } })
    const before = served(made.dir)
    attack(made)
    const { id, state } = await made.run('osv')
    expect(state).toBe('quarantined')
    expect(served(made.dir)).toEqual(before)
    expect(await approve(made, id)).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
  })

  test('under unchanged stamps are refused by the reconcile, and syncs go on', async () => {
    const made = await synced()
    attack(made, LOWER, 30, null)
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    const before = served(made.dir)
    const { id, state } = await made.run('osv', { kind: 'reconcile' })
    expect(state).toBe('quarantined')
    expect(served(made.dir)).toEqual(before)
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(made.store.quarantine.readQuarantine(id)?.decision).toBe(null)
    expect(await approve(made, id)).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
  })

  longTest('are superseded when upstream serves the stored records again', async () => {
    for (const stamp of [null, '2026-06-15T00:00:00Z']) {
      const made = await synced()
      const { feed } = made.sandbox
      const stored = feed.ids().map((id) => [id, feed.record(id), feed.modified(id)] as const)
      attack(made, LOWER, 30, stamp)
      const { id, state } = await made.run('osv', { kind: 'reconcile' })
      expect(state).toBe('quarantined')
      for (const [one, bytes, modified] of stored) feed.put(one, bytes, modified)
      const kind = stamp === null ? 'reconcile' : 'sync'
      expect(await made.run('osv', { kind })).toMatchObject({ state: 'complete' })
      expect(made.store.quarantine.readQuarantine(id)?.decision).toBe('superseded')
    }
  })
})

describe('a doubt', () => {
  longTest('with the mode warn is published and reported', async () => {
    const made = await synced({ env: { PATCHMIRROR_GUARD_MODE: 'warn' } })
    attack(made)
    const report = await made.run('osv')
    expect(report).toMatchObject({ state: 'complete', facts: { changed: 30 } })
    expect(report.message).toContain('published, but doubtful: ')
    expect(report.facts['doubtfulIds']).toHaveLength(20)
    expect(differences(made)).toEqual([])
    const { id = 0, snapshot = '' } = made.store.changes.readLatestLogged('osv') ?? {}
    const { doubted } = made.store.changes.readDoubts(id) ?? {}
    expect(doubted?.affectedLost).toHaveLength(Number(report.facts['doubts'])) // all, not the first alone
    const doubts = made.store.changes.listDoubts({ source: 'osv', after: id - 1, until: id })
    expect(doubts.get(doubted?.affectedLost?.[0] ?? '')).toEqual([{ kind: 'affectedLost', snapshot, run: report.id }])
    const { facts } = await made.run('osv')
    expect(facts['doubts']).toBeUndefined()
    const db = openReader(made.dir)
    if (db === null) throw new Error('there is no database')
    onTestFinished(() => void db.close())
    const status = buildStatus({
      reads: createReads(db),
      version: 'test',
      config: made.config,
      active: ['osv'],
      startedAt: null,
      now: Date.now,
      nextRunAt: () => null,
    })
    expect(problemsOf(status, made.config, Date.now())).toMatchObject([
      {
        code: 'doubtful',
        subject: 'osv',
        text: 'changes were published that should not be believed',
        advice: [`patchmirror runs ${report.id}`, `patchmirror approve ${report.id}`],
      },
    ])
  })

  longTest('with the mode off, or below its limits, is not reported', async () => {
    for (const env of [{ PATCHMIRROR_GUARD_MODE: 'off' }, { PATCHMIRROR_GUARD_LIMIT: 'changed=30% and 20' }]) {
      const made = await synced({ env })
      attack(made)
      const report = await made.run('osv')
      expect(report).toMatchObject({ state: 'complete' })
      expect(report.facts).not.toHaveProperty('doubts')
    }
  })

  test('about a new record with a date far in the future is reported', async () => {
    const made = await synced()
    const [id = ''] = made.sandbox.feed.ids()
    const bytes = Buffer.from(made.sandbox.feed.record(id).toString().replaceAll(id, 'NEW-1'))
    made.sandbox.feed.put('NEW-1', bytes, '2999-01-01T00:00:00Z')
    const report = await made.run('osv')
    expect(report).toMatchObject({
      state: 'complete',
      facts: { doubtfulIds: ['NEW-1: modified is 2999-01-01T00:00:00Z'] },
    })
  })

  test('about a date far in the future is raised once, when it moves there', async () => {
    const made = await synced()
    const [id = ''] = made.sandbox.feed.ids()
    const move = (modified: string) => {
      const bytes = mutated(made.sandbox.feed.record(id), (doc) => (doc.modified = modified))
      made.sandbox.feed.put(id, bytes, modified)
      return made.run('osv')
    }
    expect(await move('2999-01-01T00:00:00Z')).toMatchObject({ facts: { doubts: 1 } })
    const again = await move('2999-01-02T00:00:00Z')
    expect(again).toMatchObject({ state: 'complete', facts: { changed: 1 } })
    expect(again.facts).not.toHaveProperty('doubts')
  })

  test('about a record that is too large to be compared is reported, and the record published', async () => {
    const made = await synced()
    attack(made, (doc) => (doc['details'] = 'x'.repeat(2 ** 20)), 1)
    const report = await made.run('osv')
    expect(report).toMatchObject({ state: 'complete', facts: { notCompared: 1, doubts: 1 } })
    expect(report.facts['doubtfulIds']).toMatchObject([
      expect.stringContaining('not compared: larger than 1048576 bytes'),
    ])
    expect(differences(made)).toEqual([])
  })

  test('is not raised by a first sync, however strange its records are', async () => {
    const made = await synced()
    const run = made.store.runs.readLatestEndedRun('osv')
    expect(run?.facts).not.toHaveProperty('doubts')
  })
})
