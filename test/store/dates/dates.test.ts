import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { namesFix } from '../../../src/base/domain/named-fix.ts'
import { MIGRATIONS } from '../../../src/store/database/migrations/mirror.ts'
import { databasePath } from '../../../src/store/database/open.ts'
import { migrate } from '../../../src/store/database/migrate.ts'
import type { RecordDates } from '../../../src/store/dates/reads.ts'
import type { Writes } from '../../../src/store/writer.ts'
import { record, scratch, snapshot, writes } from '../fixtures.ts'

const FIX = '{"id":"A-1","affected":[{"ranges":[{"events":[{"fixed" : "1.2"}]}]}]}'
const PLAIN = '{"id":"A-1","affected":[]}'

describe('a record names a fix', () => {
  test.each([
    [FIX, true],
    ['{"last_affected":"3"}', true],
    ['{"fixed":\n\t"1"}', true],
    [PLAIN, false],
    ['{"fixed":""}', false],
    ['{"fixed":true}', false],
    ['{"state":"fixed"}', false],
    [JSON.stringify({ details: 'see "fixed": "1.2"' }), false],
    ['{"state":"fixed","fixed":"1"}', true],
    ['{"unfixed":"1","fixed', false],
  ])('%s: %s', (text, expected) => {
    expect(namesFix(Buffer.from(text))).toBe(expected)
  })
})

/** Publishes what `work` writes as a snapshot at a time, as a sync does. `all`: without knowing what changed. */
function publish(store: Writes, at: number, work: () => void, all = false): Promise<unknown> {
  return store.transaction(() => {
    work()
    const change = store.snapshots.replaceSnapshot(snapshot({ id: `a${at}`, publishedAt: at }))
    store.dates.noteDates(all ? null : change, at)
    return Promise.resolve({ commit: true })
  })
}

const put = (store: Writes, id: string, text: string): void => store.osv.updateRecord(record(id, text), 1)

const dates = (more: Partial<RecordDates>): RecordDates => {
  const first = more.firstSeen ?? 0
  const none = { fixSeen: null, removedAt: null, returnedAt: null }
  return { id: 'A-1', firstSeen: first, changedAt: first, ...none, flags: 0, ...more }
}

describe.each([false, true])('dates of records (compared as a whole: %s)', (all) => {
  test('say when a record was first seen, with a fix, changed, removed and seen again', async () => {
    const store = writes()
    const read = (): RecordDates | null => store.dates.readDates('A-1')
    await publish(store, 100, () => put(store, 'A-1', PLAIN), all)
    expect(read()).toEqual(dates({ firstSeen: 100 }))
    await publish(store, 200, () => put(store, 'B-1', FIX), all)
    expect(read()).toEqual(dates({ firstSeen: 100 }))
    expect(store.dates.readDates('B-1')).toEqual(dates({ id: 'B-1', firstSeen: 200, fixSeen: 200 }))
    await publish(store, 300, () => store.osv.markRecord('A-1', 'another stamp'), all)
    expect(read()).toEqual(dates({ firstSeen: 100 }))
    await publish(store, 400, () => put(store, 'A-1', FIX), all)
    const fixed = { firstSeen: 100, changedAt: 400, fixSeen: 400 }
    expect(read()).toEqual(dates(fixed))
    await publish(store, 500, () => store.osv.removeRecord('A-1', 1, 500), all)
    expect(read()).toEqual(dates({ ...fixed, removedAt: 500 }))
    await publish(store, 600, () => store.osv.forgetTombstones(599), all)
    await publish(store, 700, () => put(store, 'A-1', FIX), all)
    expect(read()).toEqual(dates({ ...fixed, removedAt: 500, returnedAt: 700 }))
    await publish(store, 800, () => store.osv.dropRecord('A-1'), all)
    expect(read()).toEqual(dates({ ...fixed, removedAt: 800 }))
    await publish(store, 900, () => put(store, 'A-1', PLAIN), all)
    expect(read()).toEqual(dates({ ...fixed, changedAt: 900, removedAt: 800, returnedAt: 900 }))
    await publish(store, 950, () => put(store, 'A-1', FIX), all)
    expect(read()).toMatchObject({ changedAt: 950, fixSeen: 400 })
    expect([...store.dates.eachDates()].map(({ id }) => id)).toEqual(['A-1', 'B-1'])
  })
})

describe('dates of another mirror', () => {
  test('the earlier of two dates is kept, a later removal, and upper bounds of either side', async () => {
    const store = writes()
    await publish(store, 100, () => {
      for (const id of ['A-1', 'B-1', 'C-1']) put(store, id, FIX)
    })
    await publish(store, 200, () => store.osv.removeRecord('C-1', 1, 200))
    const adopt = (one: RecordDates): void => store.dates.adoptDates(one, 200, 1_000)
    adopt(dates({ firstSeen: 40, changedAt: 60, fixSeen: 50, flags: 4 }))
    expect(store.dates.readDates('A-1')).toEqual(dates({ firstSeen: 40, changedAt: 60, fixSeen: 50, flags: 4 }))
    adopt(dates({ firstSeen: 70, changedAt: 150, fixSeen: 70, removedAt: 80, returnedAt: 90 }))
    const merged = { firstSeen: 40, changedAt: 60, fixSeen: 50, flags: 4, removedAt: 80, returnedAt: 90 }
    expect(store.dates.readDates('A-1')).toEqual(dates(merged))
    adopt(dates({ firstSeen: 70, removedAt: 95 })) // it says that it is removed: not so here
    expect(store.dates.readDates('A-1')).toEqual(dates(merged))
    adopt(dates({ id: 'C-1', firstSeen: 10, changedAt: 10, fixSeen: 10, removedAt: 190 }))
    expect(store.dates.readDates('C-1')).toEqual(dates({ id: 'C-1', firstSeen: 10, fixSeen: 10, removedAt: 190 }))
    adopt(dates({ id: 'D-1', firstSeen: 10, removedAt: 5_000 })) // never here; its clock is ahead
    expect(store.dates.readDates('D-1')).toEqual(dates({ id: 'D-1', firstSeen: 10, removedAt: 1_000 }))
    adopt(dates({ id: 'E-1', firstSeen: 10 })) // not stored here
    expect(store.dates.readDates('E-1')).toBeNull()
  })
})

describe('a database of an earlier program', () => {
  const step = MIGRATIONS.findIndex((text) => text.includes('CREATE TABLE osv_dates'))

  /** A database of the step before, with these rows. */
  function older(rows: string): Writes {
    const dir = scratch()
    const old = new Database(databasePath(dir))
    old.function('random_bytes', (length) => Buffer.alloc(Number(length)))
    migrate(old, MIGRATIONS.slice(0, step))
    old.exec(rows)
    for (const [id, text] of [
      ['A-1', FIX],
      ['B-1', PLAIN],
      ['C-1', FIX],
    ] as const) {
      const { modified, crc32, size, sha256, body } = record(id, text)
      const { lastInsertRowid } = old.prepare('INSERT INTO osv_body (bytes) VALUES (?)').run(body)
      old
        .prepare(
          'INSERT INTO osv_record (id, body, modified, crc32, size, sha256, changed) VALUES (?, ?, ?, ?, ?, ?, 1)',
        )
        .run(id, lastInsertRowid, modified, crc32, size, sha256)
    }
    old.close()
    const store = writes(dir)
    store.dates.examineRecords()
    return store
  }
  const log = (id: number, at: number, previous: string, complete: number, sequence = id): string =>
    `INSERT INTO change_log (id, source, snapshot, previous, sequence, published_at, as_of, records, complete)
     VALUES (${id}, 'osv', 's${id}', ${previous}, ${sequence}, ${at}, ${at}, 1, ${complete});`
  const name = (id: number, text: string, kind: number): string =>
    `INSERT INTO change_name VALUES (${id}, '${text}', ${kind});`

  test('has exact dates where its log begins with the first snapshot', () => {
    const store = older(
      [
        log(1, 100, 'NULL', 0),
        ...[log(2, 200, "'s1'", 1), name(2, 'B-1', 0), name(2, 'C-1', 1)],
        ...[log(3, 300, "'s2'", 1), name(3, 'D-1', 2), name(3, 'A-1', 2)],
        ...[log(4, 400, "'s3'", 1), name(4, 'A-1', 0)],
        "INSERT INTO osv_tombstone VALUES ('D-1', 290, 1);",
      ].join('\n'),
    )
    expect([...store.dates.eachDates()]).toEqual([
      dates({ firstSeen: 100, changedAt: 400, fixSeen: 400, removedAt: 300, returnedAt: 400, flags: 6 }),
      dates({ id: 'B-1', firstSeen: 200 }),
      dates({ id: 'C-1', firstSeen: 100, changedAt: 200, fixSeen: 200, flags: 6 }),
      dates({ id: 'D-1', firstSeen: 100, removedAt: 290, flags: 6 }),
    ])
  })

  test('has dates "at the latest" where its log does not say more, until a record changes', async () => {
    const store = older(
      [
        log(7, 700, "'s6'", 1),
        ...[log(8, 800, "'s7'", 1), name(8, 'B-1', 0), name(8, 'C-1', 1)],
        "INSERT INTO osv_tombstone VALUES ('D-1', 600, 1);",
      ].join('\n'),
    )
    expect([...store.dates.eachDates()]).toEqual([
      dates({ firstSeen: 700, fixSeen: 700, flags: 7 }),
      dates({ id: 'B-1', firstSeen: 800, flags: 7 }),
      dates({ id: 'C-1', firstSeen: 700, changedAt: 800, fixSeen: 800, flags: 7 }),
      dates({ id: 'D-1', firstSeen: 600, removedAt: 600, flags: 7 }),
    ])
    await publish(store, 900, () => {
      put(store, 'B-1', FIX)
      put(store, 'D-1', FIX)
    })
    expect(store.dates.readDates('B-1')).toEqual(
      dates({ id: 'B-1', firstSeen: 800, changedAt: 900, fixSeen: 900, flags: 3 }),
    )
    expect(store.dates.readDates('D-1')).toEqual(
      dates({ id: 'D-1', firstSeen: 600, changedAt: 900, fixSeen: 900, removedAt: 600, returnedAt: 900, flags: 7 }),
    )
  })

  test('has the date of its snapshot without any log, and of a mass change', () => {
    const store = older(log(3, 300, "'s2'", 1) + name(3, 'A-1', 0) + log(4, 400, "'s3'", 0))
    expect(store.dates.readDates('A-1')).toMatchObject({ firstSeen: 400, fixSeen: 400, flags: 7 })
    const bare = older("INSERT INTO snapshot VALUES ('osv', 's', 1, 1, 50, 50, 3, 1, NULL, NULL);")
    expect(bare.dates.readDates('B-1')).toEqual(dates({ id: 'B-1', firstSeen: 50, flags: 7 }))
  })
})
