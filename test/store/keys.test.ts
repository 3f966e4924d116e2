import Database from 'better-sqlite3'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { databasePath } from '../../src/store/database/open.ts'
import { hashKey } from '../../src/store/keys.ts'
import { MIGRATIONS } from '../../src/store/database/migrations/mirror.ts'
import { NOW, reads, scratch, writes } from './fixtures.ts'

describe('a local key', () => {
  test('is told once, and nothing that is kept contains it', () => {
    const store = writes()
    const { id, key } = store.createKey('ci', NOW)
    expect(key).toMatch(/^pmk_[\w-]{32}$/)
    expect(store.listKeys()).toEqual([
      { id, name: 'ci', prefix: key.slice(0, 8), createdAt: NOW, revokedAt: null },
    ])
    expect(JSON.stringify([store.listKeys(), store.listKeyHashes()])).not.toContain(key.slice(8))
    store.checkpoint()
    expect(readFileSync(databasePath(store.dir)).includes(key.slice(8))).toBe(false)
  })

  test('is found by the hash that only this database’s secret gives', () => {
    const [one, other] = [writes(), writes()]
    const { id, key } = one.createKey('', NOW)
    const hash = hashKey(key, one.readSecret('keys'))
    expect(one.listKeyHashes()).toEqual([{ id, name: '', hash }])
    expect(hashKey(key, other.readSecret('keys')).equals(hash)).toBe(false)
  })

  test('is no other: each is new, ids too, in the order they were made', () => {
    const store = writes()
    const keys = Array.from({ length: 20 }, () => store.createKey('same', NOW))
    expect(new Set(keys.map(({ key }) => key)).size).toBe(20)
    expect(store.listKeys().map(({ id }) => id)).toEqual(keys.map(({ id }) => id))
  })

  test('that is revoked stays in the list, with the moment, and is valid no more', () => {
    const store = writes()
    expect(store.hadKeys()).toBe(false)
    const { id } = store.createKey('', NOW)
    expect(store.revokeKey(id, NOW + 1)).toBe(true)
    expect(store.revokeKey(id, NOW + 2)).toBe(false)
    expect(store.revokeKey(99, NOW)).toBe(false)
    expect(store.listKeys()[0]?.revokedAt).toBe(NOW + 1)
    expect(store.listKeyHashes()).toEqual([])
    expect(store.hadKeys()).toBe(true)
  })

  test('opens a new database too that its backup was put into', () => {
    const [old, young] = [writes(), writes()]
    const { key } = old.createKey('ci', NOW)
    old.revokeKey(old.createKey('gone', NOW).id, NOW + 1)
    const backup = old.readKeyBackup()
    expect(backup).not.toBeNull()
    if (backup !== null) young.restoreKeys(backup)
    expect(young.listKeys()).toEqual(old.listKeys())
    expect(young.listKeyHashes()).toMatchObject([{ hash: hashKey(key, young.readSecret('keys')) }])
    expect(young.createKey('', NOW).id).toBe(3)
  })

  test('of another process is announced by the count of commits', () => {
    const store = writes()
    const reader = reads(store.dir)
    const before = reader.commits()
    expect(reader.commits()).toBe(before)
    store.createKey('', NOW)
    expect(reader.commits()).not.toBe(before)
    expect(reader.live.listKeyHashes()).toHaveLength(1)
  })
})

describe('the secret', () => {
  test('is made with the database, stays, and gives each purpose bytes of its own', () => {
    const store = writes()
    const links = store.readSecret('links')
    expect(links).toHaveLength(32)
    expect(store.readSecret('keys').equals(links)).toBe(false)
    store.close()
    expect(reads(store.dir).live.readSecret('links')).toEqual(links)
    expect(writes().readSecret('links').equals(links)).toBe(false)
  })

  test('comes to a database that was made before there were keys', () => {
    const dir = scratch()
    const old = new Database(databasePath(dir))
    const before = MIGRATIONS.findIndex((step) => step.includes('CREATE TABLE secret'))
    for (const step of MIGRATIONS.slice(0, before)) old.exec(step)
    old.pragma(`user_version = ${before}`)
    old.close()
    const store = writes(dir)
    expect(store.readSecret('links')).toHaveLength(32)
    expect(store.listKeys()).toEqual([])
  })

  test('that is lost is a fault, never an empty one', () => {
    const store = writes()
    const db = new Database(databasePath(store.dir))
    db.exec('DELETE FROM secret')
    db.close()
    expect(() => store.readSecret('links')).toThrow(/lost its secret/)
  })
})
