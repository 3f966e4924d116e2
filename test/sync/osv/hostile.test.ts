import { describe, expect } from 'vitest'
import { shownId } from '../../../src/base/domain/record-id.ts'
import { HOSTILE_KINDS } from '../../sandbox/faults/hostile-zip.ts'
import { differences } from '../../support/mirror.ts'
import { bothTest, telling, test } from '../../support/tables.ts'
import {
  ARCHIVE,
  INDEX,
  RECORDS,
  archiveOf,
  bench,
  contentsOf,
  expectAgreement,
  expectSound,
  synced,
} from '../fixtures.ts'

const SMALL = { records: 30, large: 0 }
const CAPS = { PATCHMIRROR_UPSTREAM_MAX_BYTES: 'record=8 MB' }
const STAMP = '2026-05-01T00:00:00Z'

/** Ids whose members the hostile archives carry. */
const NAMED = [
  ...['ROOT-HOSTILE-0', 'ROOT-HOSTILE-1', 'ROOT-HOSTILE-2', 'ROOT-HOSTILE-BOMB', 'nested/deeper/R-1'],
  ...['../../evil', 'a/../../evil', '/etc/evil', '..\\evil', 'C:\\evil', 'N'.repeat(60_000)],
]

/** One of each: unsafe names, a damaged archive. */
const KINDS = telling(HOSTILE_KINDS, 'traversal', 'truncated')
/** The code of a failed reconcile where it is another than `archive`: a page of HTML is named as one. */
const CODES: Partial<Record<string, string>> = { notZip: 'upstream_shape' }

describe('a hostile archive', () => {
  bothTest.each(KINDS)('of the kind %s stores no record that the index does not list', async (kind) => {
    const made = await bench({ sandbox: SMALL, env: CAPS })
    made.sandbox.faults.archive(kind)
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
    expectAgreement(made)
  })

  bothTest.each(KINDS)('of the kind %s stores a listed record only when its member is valid', async (kind) => {
    const made = await bench({ sandbox: SMALL, env: CAPS })
    const listed = JSON.parse(made.sandbox.feed.index().toString()) as object[]
    const body = JSON.stringify([...listed, ...NAMED.map((id) => ({ id, modified: STAMP }))])
    made.sandbox.faults.set(INDEX, { kind: 'body', body, type: 'application/json' })
    made.sandbox.faults.archive(kind)
    expect(await made.run('osv')).toMatchObject({ state: 'partial' })
    for (const id of made.sandbox.feed.ids()) expect(made.content(id)).toEqual(made.sandbox.feed.record(id))
    for (const id of NAMED.filter((name) => made.content(name) !== null)) {
      const record = JSON.parse(made.content(id)?.toString() ?? '') as { id: string }
      expect(record.id).toBe(id)
    }
    for (const id of NAMED.filter((name) => /^[/.C]|\.\./.test(name))) expect(made.content(id)).toBeNull()
    expectAgreement(made)
    await expectSound(made.dir)
  })

  bothTest.each(KINDS)('of the kind %s leaves a reconcile over ranges correct', async (kind) => {
    const made = await synced({ sandbox: SMALL, env: CAPS })
    const silent = made.sandbox.feed.changeSilently(3)
    made.sandbox.faults.archive(kind)
    const report = await made.run('osv', { kind: 'reconcile' })
    if (report.state === 'complete') expect(differences(made)).toEqual([])
    else expect(report).toMatchObject({ state: 'failed', code: CODES[kind] ?? 'archive' })
    expectAgreement(made)
    made.sandbox.faults.clear()
    const { facts, state } = await made.run('osv', { kind: 'reconcile' })
    expect({ state, silent: facts['silentChanges'] }).toEqual({
      state: 'complete',
      silent: report.state === 'complete' ? 0 : silent.length,
    })
    expect(differences(made)).toEqual([])
  })

  test('with two entries for a member has that record fetched singly', async () => {
    const made = await bench({ sandbox: SMALL })
    made.sandbox.feed.put('ROOT-HOSTILE-1', `{"id":"ROOT-HOSTILE-1","modified":"${STAMP}"}`)
    made.sandbox.faults.archive('duplicates')
    expect(await made.run('osv')).toMatchObject({ state: 'complete', facts: { contradicted: 1 } })
    expect(made.sandbox.requests.count(RECORDS)).toBe(1)
    expect(differences(made)).toEqual([])
  })

  test('with two entries for a member that cannot be fetched singly leaves it out', async () => {
    const made = await bench({ sandbox: SMALL })
    made.sandbox.feed.put('ROOT-HOSTILE-1', `{"id":"ROOT-HOSTILE-1","modified":"${STAMP}"}`)
    made.sandbox.faults.archive('duplicates')
    made.sandbox.faults.set(RECORDS, { kind: 'status', status: 404 })
    expect(await made.run('osv')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
    expect(made.content('ROOT-HOSTILE-1')).toBeNull()
    expectAgreement(made)
  })
})

describe('a feed with ids', () => {
  const ODD = [
    ...['a/b', 'a b', ' lead', 'trail ', '100%', '%2F', '%', 'ü-ñ-漢字-🦊', 'e\u0301', 'A?b#c&d=e'],
    ...['quote\'"', 'tab\there', 'A:2025-1', '__proto__', 'constructor', 'ROOT-APP-NPM-'],
    ...['ALL', 'a.json', 'all.json', '.', '..', '...', 'x'.repeat(3000), '\u{1F600}', '\ufffd'],
  ]
  const content = (id: string, more = ''): string => JSON.stringify({ id, modified: STAMP, details: more })

  test('of any form is mirrored through the archive, single fetches, the index and the derived archive', async () => {
    const made = await bench({ sandbox: SMALL })
    for (const id of ODD) made.sandbox.feed.put(id, content(id))
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
    expectAgreement(made)
    for (const id of ODD) made.sandbox.feed.put(id, content(id, 'new'), '2026-05-02T00:00:00Z')
    made.sandbox.requests.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(made.sandbox.requests.count()).toBe(ODD.length + 1)
    expect(differences(made)).toEqual([])
    for (const id of ODD) made.sandbox.feed.put(id, content(id, 'silent'), '2026-05-02T00:00:00Z')
    expect(await made.run('osv', { kind: 'reconcile' })).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
    await expectSound(made.dir)
  })

  const UNUSABLE: [string, string][] = [
    ['leaves its folder', '../../evil'],
    ['leaves its folder with backslashes', 'a\\..\\..\\evil'],
    ['is absolute', '/etc/evil'],
    ['names a drive', 'C:\\evil'],
    ['is no well-formed text', 'half-\ud83d-a-pair'],
    ['holds a NUL', 'a\0b'],
    ['holds a line break', 'a\nb'],
    ['has the path of the index', 'all'],
    ['is longer than a URL can be', 'x'.repeat(70_000)],
  ]
  const SOME = [...['leaves its folder', 'holds a NUL', 'has the path of the index']]
  bothTest.each(telling(UNUSABLE, ...SOME))(
    'of which one %s reports and omits it, and mirrors the others',
    async (_name, id) => {
      const made = await synced({ sandbox: SMALL })
      const entries = JSON.parse(made.sandbox.feed.index().toString()) as object[]
      const body = JSON.stringify([...entries, { id, modified: STAMP }])
      made.sandbox.faults.set(INDEX, { kind: 'body', body, type: 'application/json' })
      made.sandbox.faults.set(RECORDS, { kind: 'body', body: content(id) })
      const facts = { unusableEntries: 1, unusable: [expect.stringContaining(shownId(id))] }
      expect(await made.run('osv')).toMatchObject({ state: 'partial', facts })
      expect(JSON.parse(made.index()?.toString() ?? '')).toEqual(entries)
      expect(archiveOf(made)?.includes('evil')).toBe(false)
      expectAgreement(made)
      made.sandbox.faults.set(ARCHIVE, { kind: 'status', status: 500 })
      expect(await made.run('osv')).toMatchObject({ state: 'partial' })
      expectAgreement(made)
    },
  )

  test('that differ only in unpaired surrogates leaves both out', async () => {
    const made = await synced({ sandbox: SMALL })
    const entries = JSON.parse(made.sandbox.feed.index().toString()) as object[]
    const twins = ['half-\ud83d', 'half-\ude00'].map((id) => ({ id, modified: STAMP }))
    const body = JSON.stringify([...entries, ...twins])
    made.sandbox.faults.set(INDEX, { kind: 'body', body, type: 'application/json' })
    expect(await made.run('osv')).toMatchObject({ state: 'partial', facts: { unusableEntries: 2 } })
    expect(JSON.parse(made.index()?.toString() ?? '')).toEqual(entries)
    expectAgreement(made)
  })
})

describe('invalid entries of the index', () => {
  const WRONG = ['5', 'null', '"ROOT-1"', '[{"id":"ROOT-1"}]', '{}', '{"id":7}', '{"id":"a\\nb"}']

  test('are reported and skipped, and a repeated run writes nothing', async () => {
    const made = await synced({ sandbox: SMALL })
    made.sandbox.feed.add(2)
    const entries = made.sandbox.feed.index().toString().slice(1, -1)
    const body = `\ufeff[${WRONG.join(' , ')},${entries}]`
    made.sandbox.faults.set(INDEX, { kind: 'body', body, type: 'application/json' })
    const facts = { unusableEntries: 7, added: 2, records: 32 }
    const report = await made.run('osv')
    expect(report).toMatchObject({ state: 'partial', facts })
    expect(report.message).toContain('7 index entries skipped (entry 1: it is not an object: 5)')
    expect(report.facts['unusable']).toContain('"a\\nb": its id has a line break or a NUL character')
    expect(made.index()?.toString()).toBe(`[${entries}]`)
    expectAgreement(made)
    await expectSound(made.dir)
    const before = contentsOf(made.dir)
    expect(await made.run('osv')).toMatchObject({ state: 'partial', facts: { unusableEntries: 7 } })
    expect(contentsOf(made.dir)).toEqual(before)
    made.sandbox.faults.clear()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
  })

  test('delay a removal, because the removed record may be one of them', async () => {
    const made = await synced({ sandbox: SMALL })
    const [first = ''] = made.sandbox.feed.ids()
    made.sandbox.feed.delete(first)
    const body = made.sandbox.feed.index().toString().replace('[', '[null,')
    made.sandbox.faults.set(INDEX, { kind: 'body', body, type: 'application/json' })
    expect(await made.run('osv')).toMatchObject({ state: 'quarantined' })
    const named = body.replace('[null,', '[{"id":"all"},')
    made.sandbox.faults.clear()
    made.sandbox.faults.set(INDEX, { kind: 'body', body: named, type: 'application/json' })
    expect(await made.run('osv')).toMatchObject({ state: 'partial', facts: { removed: 1 } })
  })
})

test('a record with a byte order mark is stored byte for byte', async () => {
  const made = await synced({ sandbox: SMALL })
  const text = `\ufeff${JSON.stringify({ id: 'ROOT-BOM', modified: STAMP })}`
  made.sandbox.feed.put('ROOT-BOM', text, STAMP)
  expect(await made.run('osv')).toMatchObject({ state: 'complete' })
  expect(made.content('ROOT-BOM')?.toString()).toBe(text)
  expect(await made.run('osv', { full: true })).toMatchObject({ state: 'complete' })
  expect(differences(made)).toEqual([])
})
