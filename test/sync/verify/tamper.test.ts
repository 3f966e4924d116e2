import { rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { packContent } from '../../../src/store/database/gzip.ts'
import { deflate } from '../../../src/base/gzip/member.ts'
import { copyFilledFolder } from '../../support/filled-folder.ts'
import { type Bench, differences } from '../../support/mirror.ts'
import { bothTest, longTest, telling, test } from '../../support/tables.ts'
import { INDEX, PATCH_FEED, bench, expectAgreement, expectSound, tamper, verify } from '../fixtures.ts'

const SMALL = { records: 40, large: 0 }
const FOREIGN = packContent(Buffer.from('{"id":"FOREIGN"}'), deflate)

async function whole(): Promise<Bench> {
  const dir = await copyFilledFolder({ sandbox: SMALL }, ['feeds', 'osv'])
  return bench({ sandbox: SMALL, dir })
}

function victim({ sandbox }: Bench): string {
  return sandbox.feed.ids()[7] ?? ''
}

function derived({ store, dir }: Bench): string {
  return join(dir, 'derived', store.osv.readArchive()?.file ?? '')
}

const BODY_OF = '(SELECT body FROM osv_record WHERE id = ?)'

type Damage = [name: string, how: (made: Bench) => void]

/** What a fault of the disk, or a person with a shell, could do: the run after it must not call it complete. */
const SEEN_BY_A_RUN: Damage[] = [
  ['bytes of a record are deleted', (m) => del(m, `DELETE FROM osv_body WHERE rowid = ${BODY_OF}`)],
  ['a record is deleted', (m) => del(m, 'DELETE FROM osv_record WHERE id = ?')],
  [
    'the newest bytes are deleted',
    ({ dir }) => tamper(dir, 'DELETE FROM osv_body WHERE rowid = (SELECT max(rowid) FROM osv_body)'),
  ],
  [
    'a record is added',
    ({ dir }) => {
      tamper(dir, 'INSERT INTO osv_body SELECT 99999, bytes FROM osv_body LIMIT 1')
      const columns = 'modified, crc32, size, sha256, changed, as_of, body_crc32'
      tamper(
        dir,
        `INSERT INTO osv_record (id, body, ${columns}) SELECT 'ROOT-X-1', 99999, ${columns} FROM osv_record LIMIT 1`,
      )
    },
  ],
  ['all records are deleted', ({ dir }) => tamper(dir, 'DELETE FROM osv_record')],
  ['the index is deleted', ({ dir }) => tamper(dir, 'DELETE FROM document WHERE path = ?', INDEX)],
  ['the archive is forgotten', ({ dir }) => tamper(dir, 'DELETE FROM osv_archive')],
  ['the index is another', ({ dir }) => tamper(dir, 'UPDATE document SET sha256 = zeroblob(32) WHERE path = ?', INDEX)],
  ['the archive is another', ({ dir }) => tamper(dir, "UPDATE osv_archive SET sha256 = 'ab'")],
]

/** What only reading every byte can find. */
const SEEN_BY_VERIFY: Damage[] = [
  ['bytes are another record’s', (m) => del(m, swapBody(m))],
  ['bytes are cut short', (m) => del(m, `UPDATE osv_body SET bytes = substr(bytes, 1, 40) WHERE rowid = ${BODY_OF}`)],
  ['bytes are no gzip', (m) => del(m, `UPDATE osv_body SET bytes = zeroblob(400) WHERE rowid = ${BODY_OF}`)],
  ['bytes are empty', (m) => del(m, `UPDATE osv_body SET bytes = x'' WHERE rowid = ${BODY_OF}`)],
  ['a checksum is wrong', (m) => del(m, 'UPDATE osv_record SET crc32 = crc32 + 1 WHERE id = ?')],
  ['a size is wrong', (m) => del(m, 'UPDATE osv_record SET size = size + 1 WHERE id = ?')],
  [
    'a checksum of the stored bytes is wrong',
    (m) => del(m, 'UPDATE osv_record SET body_crc32 = body_crc32 + 1 WHERE id = ?'),
  ],
  ['a digest is wrong', (m) => del(m, 'UPDATE osv_record SET sha256 = zeroblob(32) WHERE id = ?')],
  ['a date is wrong', (m) => del(m, "UPDATE osv_record SET modified = '2001' WHERE id = ?")],
  [
    'the index’s bytes are others',
    ({ dir }) => tamper(dir, 'UPDATE document SET body = ? WHERE path = ?', FOREIGN, INDEX),
  ],
  [
    'the index’s bytes are cut short',
    ({ dir }) => tamper(dir, 'UPDATE document SET body = substr(body, 1, 40) WHERE path = ?', INDEX),
  ],
  [
    'a feed’s bytes are cut short',
    ({ dir }) => tamper(dir, 'UPDATE document SET body = substr(body, 1, 40) WHERE path = ?', PATCH_FEED),
  ],
  [
    'a feed’s bytes are others',
    ({ dir }) => tamper(dir, 'UPDATE document SET body = ? WHERE path = ?', FOREIGN, PATCH_FEED),
  ],
  ['a feed’s size is wrong', ({ dir }) => tamper(dir, 'UPDATE document SET size = 7 WHERE path = ?', PATCH_FEED)],
  ['a feed is deleted', ({ dir }) => tamper(dir, 'DELETE FROM document WHERE path = ?', PATCH_FEED)],
  ['the archive is overwritten', (m) => writeFileSync(derived(m), 'no zip')],
  ['the archive is cut short', (m) => truncateSync(derived(m), 1000)],
  ['the archive is deleted', (m) => rmSync(derived(m))],
]

function del(made: Bench, sql: string): void {
  tamper(made.dir, sql, victim(made))
}

function swapBody({ sandbox }: Bench): string {
  const other = (sandbox.feed.ids()[9] ?? '').replaceAll("'", "''")
  const bytes = `SELECT bytes FROM osv_body WHERE rowid = (SELECT body FROM osv_record WHERE id = '${other}')`
  return `UPDATE osv_body SET bytes = (${bytes}) WHERE rowid = ${BODY_OF}`
}

/** As `patchmirror doctor --data --repair` does it. */
async function repair(made: Bench): Promise<void> {
  const { damagedRecords } = await verify(made.dir)
  const common = { kind: 'repair', full: true } as const
  const osv = await made.run('osv', { ...common, suspectIds: damagedRecords })
  const feeds = await made.run('feeds', common)
  expect([osv, feeds]).toMatchObject([{ state: 'complete' }, { state: 'complete' }])
}

async function expectHealed(made: Bench): Promise<void> {
  await expectSound(made.dir)
  expect(differences(made)).toEqual([])
  expectAgreement(made)
  expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { requests: 1 } })
}

const OF_A_RUN = ['a record is deleted']
const OF_ALL = [...['a record is added', 'bytes are another record’s', 'a feed is deleted'], 'the archive is cut short']

describe('a run after an alteration of the database', () => {
  bothTest.each(telling(SEEN_BY_A_RUN, ...OF_A_RUN))('is not reported as complete when %s', async (_name, damage) => {
    const made = await whole()
    damage(made)
    const report = await made.run('osv')
    expect(report).toMatchObject({ state: 'failed', code: 'proof', asOf: null })
    expect(report.message).toContain('doctor --data --repair')
  })

  bothTest.each(telling(SEEN_BY_A_RUN, ...OF_A_RUN))(
    'is either correct or not complete after a change when %s',
    async (_name, damage) => {
      const made = await whole()
      damage(made)
      made.sandbox.feed.change(1)
      const report = await made.run('osv')
      if (report.state === 'complete') {
        expect(differences(made)).toEqual([])
        await expectSound(made.dir)
      } else expect(report).toMatchObject({ state: 'failed', code: 'proof' })
    },
  )

  bothTest.each(telling(SEEN_BY_VERIFY.slice(0, 6), 'bytes are another record’s'))(
    'publishes no damaged archive when %s',
    async (_name, damage) => {
      const made = await whole()
      damage(made)
      const before = made.store.snapshots.readSnapshot('osv')
      const old = victim(made)
      made.sandbox.feed.put('ROOT-NEW-1', '{"id":"ROOT-NEW-1","modified":"2026-05-01T00:00:00Z"}')
      const report = await made.run('osv')
      expect(report).toMatchObject({ state: 'failed', code: 'proof' })
      expect(report.message).toContain(old)
      expect(made.store.snapshots.readSnapshot('osv')).toEqual(before)
      await repair(made)
      await expectHealed(made)
    },
  )

  test('rebuilds a missing archive byte for byte', async () => {
    const made = await whole()
    const info = made.store.osv.readArchive()
    rmSync(derived(made))
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(made.store.osv.readArchive()).toEqual(info)
    await expectHealed(made)
  })
})

describe('verification', () => {
  bothTest.each(telling([...SEEN_BY_A_RUN, ...SEEN_BY_VERIFY], ...OF_ALL))(
    'finds an alteration, and repair corrects it when %s',
    async (_name, damage) => {
      const made = await whole()
      await expectSound(made.dir)
      damage(made)
      const { records: _count, ...findings } = await verify(made.dir)
      expect(Object.values(findings).flat()).not.toEqual([])
      await repair(made)
      await expectHealed(made)
    },
  )

  longTest('names the damaged records, and repair fetches only those', async () => {
    const made = await whole()
    const ids = made.sandbox.feed.ids().slice(3, 6)
    for (const id of ids) tamper(made.dir, `UPDATE osv_body SET bytes = ? WHERE rowid = ${BODY_OF}`, FOREIGN, id)
    expect(await verify(made.dir)).toMatchObject({ damagedRecords: ids, records: 40 })
    await repair(made)
    await expectHealed(made)
  })

  test('finds nothing before the first sync, and nothing in a partial snapshot', async () => {
    const made = await bench({ sandbox: SMALL })
    await expectSound(made.dir)
    made.sandbox.faults.set(INDEX, { kind: 'ghostIds' })
    expect(await made.run('osv')).toMatchObject({ state: 'partial' })
    await expectSound(made.dir)
  })
})
