import Database from 'better-sqlite3'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { databasePath } from '../../src/store/database/open.ts'
import { hashKey } from '../../src/store/keys.ts'
import { startLocalKey } from '../../src/store/local-key.ts'
import { overwriteTable } from '../support/damage.ts'
import { NOW, reads, writes } from './fixtures.ts'

describe('a local key', () => {
  test('is shown once, and nothing that is stored contains it', () => {
    const store = writes()
    const { id, key } = store.keys.createKey('ci', NOW)
    expect(key).toMatch(/^pmk_[\w-]{32}$/)
    expect(store.keys.listKeys()).toEqual([
      {
        id,
        name: 'ci',
        prefix: key.slice(0, 8),
        createdAt: NOW,
        createdBy: null,
        revokedAt: null,
        revokedBy: null,
      },
    ])
    expect(JSON.stringify([store.keys.listKeys(), store.keys.listKeyHashes()])).not.toContain(key.slice(8))
    store.checkpoint()
    expect(readFileSync(databasePath(store.dir)).includes(key.slice(8))).toBe(false)
  })

  test('is found by a hash that only this database’s secret produces', () => {
    const one = writes()
    const other = writes()
    const { id, key } = one.keys.createKey('', NOW)
    const hash = hashKey(key, one.secrets.readSecret('keys'))
    expect(one.keys.listKeyHashes()).toEqual([{ id, name: '', hash }])
    expect(hashKey(key, other.secrets.readSecret('keys')).equals(hash)).toBe(false)
  })

  test('is unique, its id too, and keys are listed in the order of their creation', () => {
    const store = writes()
    const keys = Array.from({ length: 20 }, () => store.keys.createKey('same', NOW))
    expect(new Set(keys.map(({ key }) => key)).size).toBe(20)
    expect(store.keys.listKeys().map(({ id }) => id)).toEqual(keys.map(({ id }) => id))
  })

  test('that is revoked stays in the list with its date, and is no longer valid', () => {
    const store = writes()
    expect(store.keys.hadKeys()).toBe(false)
    const { id } = store.keys.createKey('', NOW, 'alice')
    expect(store.keys.revokeKey(id, NOW + 1, 'bob')).toBe(true)
    expect(store.keys.revokeKey(id, NOW + 2, 'carol')).toBe(false)
    expect(store.keys.revokeKey(99, NOW)).toBe(false)
    const dates = { createdBy: 'alice', revokedAt: NOW + 1, revokedBy: 'bob' }
    expect(store.keys.listKeys()).toMatchObject([dates])
    expect(store.keys.listKeyHashes()).toEqual([])
    expect(store.keys.hadKeys()).toBe(true)
  })

  test('made by another process is noticed by the count of commits', () => {
    const store = writes()
    const reader = reads(store.dir)
    const before = reader.commits()
    expect(reader.commits()).toBe(before)
    store.keys.createKey('', NOW)
    expect(reader.commits()).not.toBe(before)
    expect(reader.live.keys.listKeyHashes()).toHaveLength(1)
  })
})

describe('the secret', () => {
  test('is created with the database, stays, and gives each purpose its own bytes', () => {
    const store = writes()
    const links = store.secrets.readSecret('links')
    expect(links).toHaveLength(32)
    expect(store.secrets.readSecret('keys').equals(links)).toBe(false)
    store.close()
    expect(reads(store.dir).live.secrets.readSecret('links')).toEqual(links)
    expect(writes().secrets.readSecret('links').equals(links)).toBe(false)
  })

  test('that is lost is an error, never an empty secret', () => {
    const store = writes()
    const db = new Database(databasePath(store.dir))
    db.exec('DELETE FROM secret')
    db.close()
    expect(() => store.secrets.readSecret('links')).toThrow(/lost its secret/)
  })
})

test('a first key that cannot be created because keys cannot be read is an error of the start, and no line of its own', () => {
  const { dir } = writes()
  overwriteTable(databasePath(dir), 'local_key')
  const lines: string[] = []
  const write = (_: object, text: string): void => void lines.push(text)
  const start = (): unknown => startLocalKey(dir, () => NOW, { info: write, warn: write })
  expect(start).toThrow(/mirror\.db is damaged/)
  expect(lines).toEqual([])
})

/** What a start says about the first key of a folder. */
function told(dir: string): string[] {
  const lines: string[] = []
  const write = (_: object, text: string): void => void lines.push(text)
  startLocalKey(dir, () => NOW, { info: write, warn: write })()
  return lines
}

test('a key that cannot be taken into a new database is named when it is replaced', () => {
  const { dir } = writes()
  const path = join(dir, 'local.key')
  const target = join(dir, 'elsewhere')
  const key = `pmk_${'k'.repeat(32)}`
  writeFileSync(target, key, { mode: 0o600 })
  symlinkSync(target, path)
  expect(told(dir)).toEqual([expect.stringMatching(/was created: .* It replaces the key pmk_kkkk…, .* 401/)])
  expect(readFileSync(path, 'utf8').trim()).not.toBe(key)
  expect(told(dir)).toEqual([])
})

test('a key that the database of other keys does not know stays in its file, and is named', () => {
  const store = writes()
  store.keys.createKey('other', NOW)
  const path = join(store.dir, 'local.key')
  const key = `pmk_${'k'.repeat(32)}`
  writeFileSync(path, key, { mode: 0o600 })
  expect(told(store.dir)).toEqual([expect.stringMatching(/^the key pmk_kkkk… in .* is not valid .*keys create/)])
  expect(readFileSync(path, 'utf8')).toBe(key)
})
