import AdmZip from 'adm-zip'
import { describe, expect, onTestFinished } from 'vitest'
import type { Fault } from '../../sandbox/faults/fault.ts'
import { createSandbox } from '../../sandbox/server.ts'
import { type Bench, differences } from '../../support/mirror.ts'
import { ARCHIVE, INDEX, RECORDS, contentsOf, expectAgreement, expectSound, synced, told } from '../fixtures.ts'
import { bothTest, longTest, telling, test } from '../../support/tables.ts'

const reconcile = (made: Bench) => made.run('osv', { kind: 'reconcile' })

function ranges({ sandbox }: Bench): number[] {
  return [...sandbox.requests].filter(({ path }) => path === ARCHIVE).map(({ status }) => status)
}

describe('a reconcile', () => {
  longTest('finds silent changes by the directory and fetches only those members', async () => {
    const made = await synced({ sandbox: { records: 1000, large: 0 } })
    const silent = made.sandbox.feed.changeSilently(7)
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(made)).not.toEqual([])
    made.sandbox.requests.clear()
    const report = await reconcile(made)
    expect(report).toMatchObject({ state: 'complete', facts: { silentChanges: 7 } })
    expect(differences(made)).toEqual([])
    expect(new Set(ranges(made))).toEqual(new Set([206]))
    expect(made.sandbox.requests.count()).toBeLessThanOrEqual(silent.length + 2)
    const size = made.sandbox.feed.archive().length
    const { savedBytes, bytes, archiveBytes } = report.facts
    expect(archiveBytes).toBe(size)
    expect(savedBytes).toBe(size - Number(bytes))
    expect(Number(bytes)).toBeLessThan(size / 4)
    await expectSound(made.dir)
  })

  test('of an unchanged archive costs two requests and writes nothing', async () => {
    const made = await synced()
    const before = contentsOf(made.dir)
    expect(await reconcile(made)).toMatchObject({
      state: 'complete',
      facts: { requests: 2, silentChanges: 0 },
    })
    expect(ranges(made)).toEqual([304])
    expect(contentsOf(made.dir)).toEqual(before)
  })

  test('of an archive with more than a confirmed index lists has the next sync ask for all of that', async () => {
    const made = await synced({ sandbox: { records: 5, large: 0 } })
    const { feed, faults, requests } = made.sandbox
    feed.add(1)
    faults.set(INDEX, { kind: 'status', status: 304 }, { times: 1 })
    expect(await reconcile(made)).toMatchObject({ state: 'complete', facts: { unlistedMembers: 1 } })
    requests.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { added: 1 } })
    const [asked] = requests.entries.filter(({ path }) => path === INDEX)
    expect(asked?.headers).not.toHaveProperty('if-none-match')
    expect(differences(made)).toEqual([])
  })

  test('of an archive without a record that a confirmed index lists has the next sync ask for all of that', async () => {
    const made = await synced({ sandbox: { records: 5, large: 0 } })
    const { feed, faults } = made.sandbox
    feed.remove(1)
    faults.set(INDEX, { kind: 'status', status: 304 }, { times: 1 })
    expect(await reconcile(made)).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { removed: 1 } })
    expect(differences(made)).toEqual([])
  })

  longTest('applies announced and silent changes, additions and removals together', async () => {
    const made = await synced()
    const { feed } = made.sandbox
    feed.changeSilently(4)
    feed.change(4)
    feed.add(3)
    feed.moveBackwards(2)
    feed.remove(3)
    expect(await reconcile(made)).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
    expectAgreement(made)
    made.sandbox.requests.clear()
    expect(await reconcile(made)).toMatchObject({ state: 'complete', facts: { requests: 2 } })
  })

  longTest('finds a silent change of a record that was fetched singly before', async () => {
    const made = await synced()
    const [id = ''] = made.sandbox.feed.change(1)
    await made.run('osv')
    const record = JSON.parse(made.sandbox.feed.record(id).toString()) as object
    made.sandbox.feed.put(id, JSON.stringify({ ...record, details: 'silently' }))
    expect(await reconcile(made)).toMatchObject({ facts: { silentChanges: 1 } })
    expect(differences(made)).toEqual([])
  })

  test('does not replace a record that was fetched singly after the archive was made', async () => {
    const made = await synced()
    made.sandbox.feed.archive()
    made.sandbox.feed.changeSilently(1)
    made.sandbox.feed.archive()
    made.sandbox.feed.freezeArchive()
    made.sandbox.feed.change(3)
    made.sandbox.feed.moveBackwards(3)
    await made.run('osv')
    const report = await reconcile(made)
    expect(report).toMatchObject({ state: 'complete' })
    expect(Number(report.facts['archiveBehind'])).toBeGreaterThan(0)
    expect(differences(made)).toEqual([])
    made.sandbox.feed.thawArchive()
    expect(await reconcile(made)).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
  })

  longTest.each([{ kind: 'reconcile' as const }, { full: true }])(
    'finds that the service went back to earlier bytes, whose archive is older than what is stored: %j',
    async (request) => {
      const made = await synced()
      const restored = await createSandbox({ records: 120, service: false }) // as before the changes
      onTestFinished(() => restored.close())
      const changed = made.sandbox.feed.changeSilently(3)
      expect(await reconcile(made)).toMatchObject({ facts: { silentChanges: 3 } })
      const env = { PATCHMIRROR_UPSTREAM_API_ROOT: restored.url }
      expect(await made.runWith(env, 'osv', request)).toMatchObject({
        state: 'complete',
        facts: { silentChanges: 3 },
        message: '0 added, 0 changed, 0 removed, 3 changed under the same date',
      })
      const ids = restored.feed.ids()
      expect(ids).toEqual(expect.arrayContaining(changed))
      for (const id of ids) expect(made.content(id)).toEqual(restored.feed.record(id))
      expect(restored.requests.count(RECORDS)).toBe(3)
      expectAgreement(made)
      expect(await made.runWith(env, 'osv', request)).toMatchObject({ state: 'complete' })
      expect(restored.requests.count(RECORDS)).toBe(3)
    },
  )

  test('fetches a record singly when an archive without a date contradicts the stored record', async () => {
    const made = await synced()
    made.sandbox.feed.archive()
    made.sandbox.feed.freezeArchive()
    made.sandbox.feed.moveBackwards(3)
    expect(await reconcile(made)).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
    expect(made.sandbox.requests.count(RECORDS)).toBeGreaterThan(0)
  })

  test('counts no change where the archive has other things in place of records, and the records are as stored', async () => {
    const made = await synced()
    const archive = new AdmZip()
    for (const id of made.sandbox.feed.ids()) archive.addFile(`${id}.json`, Buffer.from('{"error":"no content"}'))
    made.sandbox.faults.set(ARCHIVE, { kind: 'body', body: archive.toBuffer(), type: 'application/zip' })
    const report = await reconcile(made)
    expect(report).toMatchObject({ state: 'complete', message: '0 added, 0 changed, 0 removed' })
    expect(report.facts['silentChanges']).toBe(0)
    expect(differences(made)).toEqual([])
  })

  test('verifies each fetched member, and fetches damaged ones singly', async () => {
    const made = await synced()
    made.sandbox.feed.changeSilently(3)
    made.sandbox.faults.set(ARCHIVE, { kind: 'wrongRange', how: 'bytes' }, { after: 1 })
    expect(await reconcile(made)).toMatchObject({ state: 'complete' })
    expect(made.sandbox.requests.count(RECORDS)).toBe(3)
    expect(differences(made)).toEqual([])
  })

  test('that could not fetch a silent change is partial, and so is every sync until it is fetched', async () => {
    const made = await synced()
    made.sandbox.feed.changeSilently(3)
    made.sandbox.faults.set(ARCHIVE, { kind: 'wrongRange', how: 'bytes' }, { after: 1 })
    made.sandbox.faults.set(RECORDS, { kind: 'status', status: 404 })
    expect(await reconcile(made)).toMatchObject({ state: 'partial', facts: { lacking: 3 } })
    expectAgreement(made)
    expect(await made.run('osv')).toMatchObject({ state: 'partial', facts: { lacking: 3 } })
    made.sandbox.faults.clear()
    made.sandbox.requests.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(made.sandbox.requests.count(RECORDS)).toBe(3)
    expect(differences(made)).toEqual([])
    expect(await reconcile(made)).toMatchObject({ state: 'complete', facts: { silentChanges: 0 } })
  })
})

describe('a reconcile without usable ranges', () => {
  const WRONG: [string, Fault, number][] = [
    ['ignored from the start', { kind: 'ignoreRange' }, 0],
    ['ignored later', { kind: 'ignoreRange' }, 1],
    ['one byte off', { kind: 'wrongRange', how: 'shifted' }, 0],
    ['one byte off later', { kind: 'wrongRange', how: 'shifted' }, 1],
    ['of another total', { kind: 'wrongRange', how: 'total' }, 0],
    ['of other bytes', { kind: 'wrongRange', how: 'bytes' }, 0],
  ]
  const FEW = telling(WRONG, 'ignored from the start', 'one byte off later')
  bothTest.each(FEW)('fetches the whole archive when a range is %s', async (_name, fault, after) => {
    const made = await synced()
    made.sandbox.feed.changeSilently(3)
    made.sandbox.faults.set(ARCHIVE, fault, { after, times: 1 })
    const report = await reconcile(made)
    expect(report).toMatchObject({ state: 'complete', facts: { silentChanges: 3 } })
    expect(report.facts['rangesFailed']).toBeTypeOf('string')
    expect(differences(made)).toEqual([])
  })

  const WITHOUT: [string, { ranges: false } | { validators: false }][] = [
    ['the service ignores them', { ranges: false }],
    ['answers have no validators', { validators: false }],
  ]
  bothTest.each(telling(WITHOUT, 'answers have no validators'))(
    'fetches the whole archive because %s',
    async (_name, off) => {
      const made = await synced({ sandbox: off })
      made.sandbox.feed.changeSilently(3)
      expect(await reconcile(made)).toMatchObject({
        state: 'complete',
        facts: { silentChanges: 3 },
      })
      expect(differences(made)).toEqual([])
    },
  )

  test('fetches the whole archive when it is replaced between two ranges', async () => {
    const made = await synced()
    made.sandbox.feed.changeSilently(5)
    const stall = made.sandbox.faults.set(ARCHIVE, { kind: 'stall', at: 'body' }, { times: 1 })
    const running = reconcile(made)
    await expect.poll(() => ranges(made), { interval: 1 }).toEqual([206])
    made.sandbox.feed.changeSilently(2)
    stall.clear()
    const report = await running
    expect(ranges(made)).toEqual([206, 200, 200])
    expect(report).toMatchObject({ state: 'complete' })
    expect(report.facts['rangesFailed']).toBeTypeOf('string')
    await reconcile(made)
    expect(differences(made)).toEqual([])
  })

  test('does not accept an unrequested 304', async () => {
    const made = await synced()
    made.sandbox.feed.change(1)
    made.sandbox.feed.changeSilently(2)
    made.sandbox.faults.set(ARCHIVE, { kind: 'status', status: 304, body: '' }, { times: 1 })
    expect(await reconcile(made)).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
  })

  const BROKEN: [string, Fault, string][] = [
    ['500s', { kind: 'status', status: 500 }, 'upstream_status'],
    ['resets', { kind: 'reset', bytes: 10 }, 'upstream_unreachable'],
    ['HTML', { kind: 'html' }, 'upstream_shape'],
    ['half an archive', { kind: 'truncatedZip' }, 'archive'],
  ]
  bothTest.each(telling(BROKEN, 'half an archive'))(
    'fails when the archive cannot be fetched (%s), because it compared nothing',
    async (_name, fault, code) => {
      const made = await synced()
      made.sandbox.feed.changeSilently(3)
      const before = contentsOf(made.dir)
      made.sandbox.faults.set(ARCHIVE, fault)
      expect(told(await reconcile(made))).toEqual({ state: 'failed', code })
      expect(contentsOf(made.dir)).toEqual(before)
      expect(made.store.runs.readLastReconcile('osv')).toBeNull()
      made.sandbox.faults.clear()
      expect(await reconcile(made)).toMatchObject({ state: 'complete' })
      expect(differences(made)).toEqual([])
    },
  )

  test('changes nothing when the index is quarantined', async () => {
    const made = await synced()
    const before = contentsOf(made.dir)
    made.sandbox.faults.set(INDEX, { kind: 'status', status: 500 })
    expect(await reconcile(made)).toMatchObject({ state: 'failed' })
    expect(contentsOf(made.dir)).toEqual(before)
  })
})
