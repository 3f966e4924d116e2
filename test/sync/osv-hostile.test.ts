import { describe, expect, test } from 'vitest'
import { HOSTILE_KINDS } from '../../src/sandbox/hostile.ts'
import { differences } from '../support/mirror.ts'
import {
  ARCHIVE,
  INDEX,
  RECORDS,
  archiveOf,
  bench,
  expectAgreement,
  expectSound,
  synced,
} from './benches.ts'

const SMALL = { records: 30, large: 0 }
const CAPS = { PATCHMIRROR_UPSTREAM_MAX_RECORD_BYTES: '8 MB' }
const STAMP = '2026-05-01T00:00:00Z'

/** Ids whose members the hostile archives carry. */
const NAMED = [
  ...[
    'ROOT-HOSTILE-0',
    'ROOT-HOSTILE-1',
    'ROOT-HOSTILE-2',
    'ROOT-HOSTILE-BOMB',
    'nested/deeper/R-1',
  ],
  ...['../../evil', 'a/../../evil', '/etc/evil', '..\\evil', 'C:\\evil', 'N'.repeat(60_000)],
]

describe('a hostile archive', () => {
  test.each(HOSTILE_KINDS)('%s: what it adds unasked is not taken', async (kind) => {
    const made = await bench({ sandbox: SMALL, env: CAPS })
    made.sandbox.faults.archive(kind)
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
    expectAgreement(made)
  })

  test.each(HOSTILE_KINDS)('%s: what is listed is taken only when it is sound', async (kind) => {
    const made = await bench({ sandbox: SMALL, env: CAPS })
    const listed = JSON.parse(made.sandbox.feed.index().toString()) as object[]
    const body = JSON.stringify([...listed, ...NAMED.map((id) => ({ id, modified: STAMP }))])
    made.sandbox.faults.set(INDEX, { kind: 'body', body, type: 'application/json' })
    made.sandbox.faults.archive(kind)
    expect(await made.run('osv')).toMatchObject({ state: 'partial' })
    for (const id of made.sandbox.feed.ids())
      expect(made.content(id)).toEqual(made.sandbox.feed.record(id))
    for (const id of NAMED.filter((name) => made.content(name) !== null)) {
      const record = JSON.parse(made.content(id)?.toString() ?? '') as { id: string }
      expect(record.id).toBe(id)
    }
    for (const id of NAMED.filter((name) => /^[/.C]|\.\./.test(name)))
      expect(made.content(id)).toBeNull()
    expectAgreement(made)
    await expectSound(made.dir)
  })

  test.each(HOSTILE_KINDS)('%s: a reconcile over ranges takes no harm', async (kind) => {
    const made = await synced({ sandbox: SMALL, env: CAPS })
    const silent = made.sandbox.feed.changeSilently(3)
    made.sandbox.faults.archive(kind)
    const report = await made.run('osv', { kind: 'reconcile' })
    if (report.state === 'complete') expect(differences(made)).toEqual([])
    else expect(report).toMatchObject({ state: 'failed', code: 'archive' })
    expectAgreement(made)
    made.sandbox.faults.clear()
    const { facts, state } = await made.run('osv', { kind: 'reconcile' })
    expect({ state, silent: facts['silentChanges'] }).toEqual({
      state: 'complete',
      silent: report.state === 'complete' ? 0 : silent.length,
    })
    expect(differences(made)).toEqual([])
  })

  test('members that two entries claim are fetched singly', async () => {
    const made = await bench({ sandbox: SMALL })
    made.sandbox.feed.put('ROOT-HOSTILE-1', `{"id":"ROOT-HOSTILE-1","modified":"${STAMP}"}`)
    made.sandbox.faults.archive('duplicates')
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { contradicted: 1 } })
    expect(made.sandbox.requests.count(RECORDS)).toBe(1)
    expect(differences(made)).toEqual([])
  })

  test('members that two entries claim, and that cannot be had singly, are not guessed', async () => {
    const made = await bench({ sandbox: SMALL })
    made.sandbox.feed.put('ROOT-HOSTILE-1', `{"id":"ROOT-HOSTILE-1","modified":"${STAMP}"}`)
    made.sandbox.faults.archive('duplicates')
    made.sandbox.faults.set(RECORDS, { kind: 'status', status: 404 })
    expect(await made.run('osv')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
    expect(made.content('ROOT-HOSTILE-1')).toBeNull()
    expectAgreement(made)
  })
})

describe('ids', () => {
  const ODD = [
    ...['a/b', 'a b', ' lead', 'trail ', '100%', '%2F', '%', 'ü-ñ-漢字-🦊', 'e\u0301', 'A?b#c&d=e'],
    ...['quote\'"', 'tab\there', 'line\nbreak', '__proto__', 'constructor', 'ROOT-APP-NPM-'],
    ...['all', 'ALL', 'a.json', '.', '..', '...', 'x'.repeat(3000), '\u{1F600}', '\ufffd'],
  ]
  const content = (id: string, more = ''): string =>
    JSON.stringify({ id, modified: STAMP, details: more })

  test('of any shape survive the archive, the single way, the index and the derived archive', async () => {
    const ids = ODD.filter((id) => id !== 'all' && id !== 'ALL')
    const made = await bench({ sandbox: SMALL })
    for (const id of ids) made.sandbox.feed.put(id, content(id))
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
    expectAgreement(made)
    for (const id of ids) made.sandbox.feed.put(id, content(id, 'new'), '2026-05-02T00:00:00Z')
    made.sandbox.requests.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(made.sandbox.requests.count()).toBe(ids.length + 1)
    expect(differences(made)).toEqual([])
    for (const id of ids) made.sandbox.feed.put(id, content(id, 'silent'), '2026-05-02T00:00:00Z')
    expect(await made.run('osv', { kind: 'reconcile' })).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
    await expectSound(made.dir)
  })

  test.each([
    ['leaves its folder', '../../evil'],
    ['leaves its folder with backslashes', 'a\\..\\..\\evil'],
    ['is absolute', '/etc/evil'],
    ['names a drive', 'C:\\evil'],
    ['is no well-formed text', 'half-\ud83d-a-pair'],
    ['holds a NUL', 'a\0b'],
    ['is longer than a file name in an archive can be', 'x'.repeat(70_000)],
  ])('one that %s is left out, and everything else is mirrored', async (_name, id) => {
    const made = await synced({ sandbox: SMALL })
    const entries = JSON.parse(made.sandbox.feed.index().toString()) as object[]
    const body = JSON.stringify([...entries, { id, modified: STAMP }])
    made.sandbox.faults.set(INDEX, { kind: 'body', body, type: 'application/json' })
    made.sandbox.faults.set(RECORDS, { kind: 'body', body: content(id) })
    expect(await made.run('osv')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
    expect(JSON.parse(made.index()?.toString() ?? '')).toEqual(entries)
    expect(archiveOf(made)?.includes('evil')).toBe(false)
    expectAgreement(made)
    made.sandbox.faults.set(ARCHIVE, { kind: 'status', status: 500 })
    expect(await made.run('osv')).toMatchObject({ state: 'partial' })
    expectAgreement(made)
  })

  test('two that differ only in halves of characters are left out both', async () => {
    const made = await synced({ sandbox: SMALL })
    const entries = JSON.parse(made.sandbox.feed.index().toString()) as object[]
    const twins = ['half-\ud83d', 'half-\ude00'].map((id) => ({ id, modified: STAMP }))
    const body = JSON.stringify([...entries, ...twins])
    made.sandbox.faults.set(INDEX, { kind: 'body', body, type: 'application/json' })
    expect(await made.run('osv')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
    expect(JSON.parse(made.index()?.toString() ?? '')).toEqual(entries)
    expectAgreement(made)
  })
})
