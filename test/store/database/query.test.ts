import { expect, test } from 'vitest'
import { queries } from '../../../src/store/database/query.ts'
import { Database, compileWhenUsed } from '../../../src/store/database/sqlite.ts'

/** One-line queries of a table of packages. */
function packages() {
  const db = compileWhenUsed(new Database(':memory:'))
  db.exec('CREATE TABLE package (name TEXT, files INTEGER)')
  const { all, exists, one, run, value } = queries(db)
  return {
    add: run<[name: string, files: number | null]>('INSERT INTO package VALUES (?, ?)'),
    drop: run<{ most: number }>('DELETE FROM package WHERE files <= @most'),
    list: all<[], { name: string; files: number | null }>('SELECT * FROM package ORDER BY name'),
    read: one<[name: string], { name: string; files: number | null }>('SELECT * FROM package WHERE name = ?'),
    files: value<[name: string], number>('SELECT files FROM package WHERE name = ?'),
    has: exists<[name: string]>('SELECT 1 FROM package WHERE name = ?'),
  }
}

test('a one-line query gives rows, a row, a value, or whether there is one; where there is none, null or false', () => {
  const { add, list, read, files, has } = packages()
  expect(list()).toEqual([])
  add('a', 1)
  add('b', null)
  expect(list()).toEqual([
    { name: 'a', files: 1 },
    { name: 'b', files: null },
  ])
  expect([read('a'), read('c')]).toEqual([{ name: 'a', files: 1 }, null])
  expect([files('a'), files('b'), files('c')]).toEqual([1, null, null])
  expect([has('b'), has('c')]).toEqual([true, false])
})

test('a one-line write takes values by place or by name, and returns how many rows changed', () => {
  const { add, drop } = packages()
  expect([add('a', 1), add('b', 2), add('c', 3)]).toEqual([1, 1, 1])
  expect([drop({ most: 2 }), drop({ most: 2 })]).toEqual([2, 0])
})
