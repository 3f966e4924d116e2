import fc from 'fast-check'
import { expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { openWriter } from '../../../src/store/database/open.ts'
import { record, snapshot, writes } from '../fixtures.ts'

type Store = ReturnType<typeof writes>

const idOf = (number: number): string => `R-${String(number).padStart(4, '0')}`

/** A mirror with every second record of a thousand: three whole blocks and a begun one. */
async function filled(): Promise<Store> {
  const store = writes()
  await store.transaction(() => {
    for (let number = 2; number < 1000; number += 2) store.osv.putRecord(record(idOf(number)), 5)
    store.snapshots.replaceSnapshot(snapshot())
    return Promise.resolve({ commit: true })
  })
  return store
}

const read = ({ carried }: Store): string => carried.digestOf('osv')
const known = ({ carried }: Store): string => carried.known.digestOf('osv')

const change = fc.oneof(
  fc.record({ kind: fc.constant('put' as const), number: fc.nat(1001) }),
  fc.record({ kind: fc.constant('drop' as const), number: fc.nat(1001) }),
  fc.record({ kind: fc.constant('drop all' as const), number: fc.nat(1001) }),
)

longTest('a state digest after any writes of an import is that of all rows, read again', async () => {
  const store = await filled()
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(change, { maxLength: 8 }), { maxLength: 3 }), async (parts) => {
      expect(known(store)).toBe(read(store))
      await store.transaction(() => {
        for (const part of parts) {
          for (const { kind, number } of part)
            if (kind === 'put') store.osv.putRecord(record(idOf(number), `{"n":${number}}`), 6)
            else for (let i = number; i < (kind === 'drop' ? number + 1 : 1001); i++) store.osv.dropRecord(idOf(i))
          store.carried.putTombstone({ key: idOf(part.length), removedAt: part.length }, 1)
          store.carried.known.wrote(store.osv.listWritten())
          store.snapshots.replaceSnapshot(snapshot())
          expect(known(store)).toBe(read(store))
        }
        return Promise.resolve({ commit: false })
      })
      store.carried.known.forget()
    }),
    { numRuns: 30 },
  )
})

test('a state digest of a mirror without records, and after too many writes, is that of all rows', async () => {
  const store = writes()
  expect(known(store)).toBe(read(store))
  await store.transaction(() => {
    store.osv.putRecord(record('a'), 5)
    store.carried.known.wrote(store.osv.listWritten())
    expect(known(store)).toBe(read(store))
    store.osv.insertRecord(record('b'), 5)
    store.carried.known.wrote(store.osv.listWritten())
    expect(known(store)).toBe(read(store))
    return Promise.resolve({ commit: true })
  })
})

longTest('a state digest is read completely when another program has written', async () => {
  const store = await filled()
  const before = known(store)
  const other = openWriter(store.dir)
  other.prepare('UPDATE osv_record SET modified = ? WHERE id = ?').run('2026-01-01T00:00:00Z', idOf(500))
  other.close()
  expect(known(store)).not.toBe(before)
  expect(known(store)).toBe(read(store))
})
