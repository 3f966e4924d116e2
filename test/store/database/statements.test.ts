import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { createOrderings } from '../../../src/store/catalog/list-query.ts'
import { createChangeTracker } from '../../../src/store/changes/tracker.ts'
import { databasePath, openReader, openWriter } from '../../../src/store/database/open.ts'
import { Database, compileWhenUsed } from '../../../src/store/database/sqlite.ts'
import { createReads } from '../../../src/store/reads.ts'
import { createVexReader } from '../../../src/store/catalog/vex.ts'
import { createTableWriters } from '../../../src/store/writes.ts'
import { scratch } from '../fixtures.ts'

test('every statement of the tables compiles on the newest schema', () => {
  const dir = scratch()
  openWriter(dir).close()
  const db = new Database(databasePath(dir)) // compiles each statement when it is created
  for (const create of [createReads, createVexReader, createOrderings])
    expect(() => create(db), create.name).not.toThrow()
  expect(() => createTableWriters(db, createChangeTracker())).not.toThrow()
  db.close()
})

test('a statement is compiled at its first use, with the form of its rows', () => {
  const db = compileWhenUsed(new Database(':memory:'))
  const insert = db.prepare<[string, number]>('INSERT INTO package VALUES (?, ?)')
  const plucked = db.prepare<[], string>('SELECT name FROM package ORDER BY name').pluck()
  const raw = db.prepare<[string], [string, number]>('SELECT * FROM package WHERE name = ?').raw()
  const plain = db.prepare<{ most: number }>('SELECT * FROM package WHERE files <= @most')
  expect(() => plain.get({ most: 1 })).toThrow('no such table: package')
  db.exec('CREATE TABLE package (name TEXT, files INTEGER)')
  expect(insert.run('b', 2).changes).toBe(1)
  insert.run('a', 1)
  expect(plucked.all()).toEqual(['a', 'b'])
  expect([...plucked.iterate()]).toEqual(['a', 'b'])
  expect(raw.get('b')).toEqual(['b', 2])
  expect(raw.pluck().get('b')).toBe('b')
  expect(plain.get({ most: 1 })).toEqual({ name: 'a', files: 1 })
  db.close()
})

test('a database whose schema cannot be read is refused when it is opened', () => {
  const dir = scratch()
  openWriter(dir).close()
  const path = databasePath(dir)
  const text = readFileSync(path, 'latin1') // each byte is one character
  writeFileSync(path, text.replaceAll('CREATE TABLE', 'CREATE TIBLE'), 'latin1')
  for (const open of [openReader, openWriter])
    expect(() => open(dir)).toThrow(expect.objectContaining({ code: 'corrupt' }))
})
