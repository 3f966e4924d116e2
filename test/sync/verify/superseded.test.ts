import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { expect } from 'vitest'
import { isSoundVerdict } from '../../../src/sync/verify/report.ts'
import { copyFilledFolder } from '../../support/filled-folder.ts'
import { commandHost } from '../../support/hosted.ts'
import type { Bench } from '../../support/mirror.ts'
import { bench, expectSound, tamper, verify } from '../fixtures.ts'
import { longTest, test } from '../../support/tables.ts'
import { countSuperseded } from '../../support/stored-counts.ts'

const SMALL = { records: 40, large: 0 }
const patchmirror = commandHost()

/** Three records that have two superseded versions each, and the positions that replaced these. */
async function replaced(): Promise<{ made: Bench; ids: string[]; logs: number[] }> {
  const made = await bench({ sandbox: SMALL, dir: await copyFilledFolder({ sandbox: SMALL }, ['feeds', 'osv']) })
  const ids = made.sandbox.feed.ids().slice(0, 3)
  const logs: number[] = []
  for (const round of ['1', '2']) {
    for (const id of ids) {
      const record = JSON.parse(made.sandbox.feed.record(id).toString()) as object
      made.sandbox.feed.put(id, JSON.stringify({ ...record, modified: `2026-01-0${round}T00:00:00Z`, details: round }))
    }
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    logs.push(made.store.changes.readLatestLogged('osv')?.id ?? 0)
  }
  return { made, ids, logs }
}

const BODY_OF = '(SELECT body FROM osv_superseded WHERE id = ? AND log = ?)'

longTest('a superseded version is verified, and removed by a repair, which needs no upstream', async () => {
  const { made, ids, logs } = await replaced()
  await expectSound(made.dir)
  const [cut = '', lost = '', sound = ''] = ids
  const [first = 0, second = 0] = logs
  tamper(made.dir, `UPDATE osv_body SET bytes = zeroblob(99) WHERE rowid = ${BODY_OF}`, cut, first)
  tamper(made.dir, `DELETE FROM osv_body WHERE rowid = ${BODY_OF}`, lost, second)
  const report = await verify(made.dir)
  expect(report.damagedVersions).toHaveLength(2)
  expect(report.damagedVersions).toEqual(
    expect.arrayContaining([
      { id: cut, log: first },
      { id: lost, log: second },
    ]),
  )
  expect(isSoundVerdict(report)).toBe(true) // what is served

  const env = { PATCHMIRROR_DATA_DIR: made.dir }
  const found = await patchmirror(['doctor', '--data'], env, made.dir)
  expect(found.code).toBe(1)
  expect(found.out).toContain('40 records, the index, the feeds and the archive are sound')
  expect(found.out).toContain(
    `superseded version of record ${cut}, replaced by the snapshot of entry ${first} in the log of changes: damaged or lost`,
  )
  expect(found.out).toContain('which nothing brings back')
  const repaired = await patchmirror(['doctor', '--data', '--repair'], env, made.dir)
  expect([repaired.code, repaired.out]).toEqual([0, expect.stringContaining('2 damaged superseded versions removed')])
  await expectSound(made.dir)

  const { osv } = made.store
  expect([osv.readEarlier(cut, first), osv.readEarlier(lost, second)]).toEqual([null, null])
  const left = [osv.readEarlier(cut, second), osv.readEarlier(lost, first), osv.readEarlier(sound, first)]
  expect(left.map((one) => one?.body?.length ?? 0).every((bytes) => bytes > 0)).toBe(true)
  expect(countSuperseded(made.dir)).toMatchObject({ versions: 4, bodies: 4 })
  expect(await made.run('osv')).toMatchObject({ state: 'complete' })
})

test('stamps that have the bytes of a damaged version go with it', async () => {
  const { made, ids, logs } = await replaced()
  const [id = ''] = ids
  const [first = 0, second = 0] = logs
  // As of a version whose bytes stayed when only its stamp changed.
  tamper(made.dir, 'UPDATE osv_superseded SET body = NULL WHERE id = ? AND log = ?', id, first)
  tamper(made.dir, `UPDATE osv_body SET bytes = zeroblob(99) WHERE rowid = ${BODY_OF}`, id, second)
  expect((await verify(made.dir)).damagedVersions).toEqual([{ id, log: second }])
  await made.store.exclusive(() => made.store.changes.dropVersions([{ id, log: second }]))
  const { osv } = made.store
  expect([osv.readEarlier(id, first), osv.readEarlier(id, second)]).toEqual([null, null])
  await expectSound(made.dir)
})

longTest('a row that another record uses by now stays, and a writer is waited for', async () => {
  const { made, ids, logs } = await replaced()
  const [id = '', live = ''] = ids
  const [first = 0] = logs
  // As when the row of a version was lost and its number given to a new record.
  const row = made.store.osv.readRecord(live)
  tamper(made.dir, `DELETE FROM osv_body WHERE rowid = ${BODY_OF}`, id, first)
  tamper(
    made.dir,
    'UPDATE osv_superseded SET body = (SELECT body FROM osv_record WHERE id = ?) WHERE id = ? AND log = ?',
    live,
    id,
    first,
  )
  expect((await verify(made.dir)).damagedVersions).toEqual([{ id, log: first }])
  const env = { PATCHMIRROR_DATA_DIR: made.dir }
  const writer = new Database(join(made.dir, 'mirror.db'))
  writer.exec('BEGIN IMMEDIATE')
  const repairing = patchmirror(['doctor', '--data', '--repair', '--json'], env, made.dir)
  await delay(1500)
  writer.exec('COMMIT')
  writer.close()
  const repaired = await repairing
  expect(repaired.code).toBe(0)
  expect(JSON.parse(repaired.out)).toMatchObject({ damagedVersions: [{ id, log: first }] })
  expect(made.store.osv.readRecord(live)).toEqual(row)
  await expectSound(made.dir)
})

longTest('a repair removes versions before it asks for the upstream that records need', async () => {
  const { made, ids, logs } = await replaced()
  const [id = '', live = ''] = ids
  const [first = 0] = logs
  tamper(made.dir, `UPDATE osv_body SET bytes = zeroblob(99) WHERE rowid = ${BODY_OF}`, id, first)
  tamper(
    made.dir,
    'UPDATE osv_body SET bytes = zeroblob(99) WHERE rowid = (SELECT body FROM osv_record WHERE id = ?)',
    live,
  )
  rmSync(join(made.dir, 'derived'), { recursive: true }) // the archive has the record
  const repaired = await patchmirror(['doctor', '--data', '--repair'], { PATCHMIRROR_DATA_DIR: made.dir }, made.dir)
  expect(repaired.code).toBe(2)
  expect(repaired.out).toContain('1 damaged superseded version removed')
  expect(repaired.err).toContain('upstream.apiRoot')
  expect(await verify(made.dir)).toMatchObject({ damagedVersions: [], damagedRecords: [live] })
})
