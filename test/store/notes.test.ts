import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished } from 'vitest'
import { longTest, test } from '../support/tables.ts'
import { toIso } from '../../src/base/time.ts'
import { type RegistryNote, readRegistryNote, sumOf, writeRegistryNote } from '../../src/store/catalog/in-registry.ts'
import { announceAddress, acquireLock } from '../../src/store/database/lock.ts'
import {
  announceSettings,
  daemonSettings,
  databaseNote,
  noteDatabases,
} from '../../src/store/database/daemon-settings.ts'
import { noteVerification, readLastVerification } from '../../src/store/notes.ts'
import { settleCopies } from '../../src/store/given-numbers.ts'
import { openWrites } from '../../src/store/writes.ts'
import { oddNotes } from '../support/odd-notes.ts'

const AT = '2026-05-01T00:00:00.000Z'
const NOW = Date.parse(AT)
const REGISTRY = 'registry.example.com/mirror'

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-notes-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** Returns what puts a text in the place of a note of a folder. */
function replacing(dir: string, name: string): (text: string) => void {
  const path = join(dir, name)
  mkdirSync(dirname(path), { recursive: true })
  return (text) => writeFileSync(path, text)
}

function texts(notes: readonly unknown[]): string[] {
  return notes.map((one) => JSON.stringify(one))
}

describe('a note of another shape is none:', () => {
  const images: RegistryNote['images'] = {
    'a@sha256:0': { is: 'there', at: NOW },
    'b@sha256:1': { is: 'not known', why: 'it did not answer', code: 'upstream_status', at: NOW },
  }
  const good: RegistryNote = { registry: REGISTRY, checkedAt: AT, incomplete: 'a page was refused', images }
  const none = { registry: REGISTRY, checkedAt: null, incomplete: null, images: {} }

  test.each(
    texts([
      { ...good, images: null },
      { ...good, images: ['x'], checkedAt: 5 },
      { ...good, images: { 'a@sha256:0': null } },
      { ...good, images: { 'a@sha256:0': { is: 'there' } } },
      { ...good, images: { 'a@sha256:0': { is: 'there', at: 1e300 } } },
      { ...good, checkedAt: 'x' },
      { registry: REGISTRY, images },
      null,
      [],
      5,
    ]),
  )('of the registry: %s', (text) => {
    const dir = folder()
    replacing(dir, 'derived/registry.json')(text)
    expect(readRegistryNote(dir, REGISTRY)).toEqual(none)
  })

  test('what is read of the registry can be counted and printed', () => {
    const dir = folder()
    const replace = replacing(dir, 'derived/registry.json')
    for (const text of oddNotes(good)) {
      replace(text)
      const note = readRegistryNote(dir, REGISTRY)
      const { checkedAt } = sumOf(note)
      if (checkedAt !== null) toIso(Date.parse(checkedAt))
      for (const one of Object.values(note.images)) toIso(one.at)
    }
    writeRegistryNote(dir, good)
    expect(readRegistryNote(dir, REGISTRY)).toEqual(good)
  })

  const last = { problem: null, inForce: ['a.b'], restart: [] }
  const used = { instance: 'ab', salt: 'cd', digests: { 'a.b': 'ef' }, reloads: 1, last }
  const noted = { given: { change_log: 3 }, mirror: 'name' }

  test.each(
    texts([
      { ...used, given: null, mirror: null },
      { instance: null, salt: null, digests: null, reloads: null, last: null, given: null, mirror: null },
      { ...used, given: { change_log: null }, mirror: 'name' },
      { ...used, given: { change_log: 1e300 }, mirror: 'name' },
      { ...used, given: [], mirror: 5 },
      null,
      [[]],
      5,
    ]),
  )('of the databases: %s', (text) => {
    const dir = folder()
    openWrites(dir).close()
    replacing(dir, 'serve.settings')(text)
    expect(databaseNote(dir)).toEqual({ given: {}, mirror: null })
    expect(settleCopies(dir, { now: NOW, before: 0 })).toEqual([])
  })

  longTest('of the settings of a daemon, and the note of the databases beside it stays', () => {
    const dir = folder()
    const lock = acquireLock(dir, 'serve')
    onTestFinished(() => lock.release())
    announceAddress(dir, used.instance, { port: 1 })
    const replace = replacing(dir, 'serve.settings')
    for (const one of [{ digests: null }, { salt: 5 }, { last: {} }, { last: { ...last, restart: null } }]) {
      replace(JSON.stringify({ ...used, ...noted, ...one }))
      expect(daemonSettings(dir)).toBeNull()
      expect(databaseNote(dir)).toEqual(noted)
    }
    for (const text of oddNotes({ ...used, ...noted })) {
      replace(text)
      daemonSettings(dir)?.last?.inForce.join()
      expect(() => noteDatabases(dir, databaseNote(dir))).not.toThrow()
    }
    announceSettings(dir, used)
    noteDatabases(dir, noted)
    expect(daemonSettings(dir)).toEqual(used)
    expect(databaseNote(dir)).toEqual(noted)
  })

  const verified = { endedAt: AT, since: AT, damaged: ['a record'], damagedCount: 1, healed: null }

  test.each(
    texts([
      { ...verified, endedAt: 5 },
      { ...verified, since: 'x' },
      { ...verified, damaged: [null] },
      { ...verified, damagedCount: '1' },
      { ...verified, healed: {} },
      null,
      [null],
      5,
    ]),
  )('of the last verification: %s', (text) => {
    const dir = folder()
    replacing(dir, 'verify.last')(text)
    expect(readLastVerification(dir)).toBeNull()
    noteVerification(dir, verified)
    expect(readLastVerification(dir)).toEqual(verified)
  })
})
