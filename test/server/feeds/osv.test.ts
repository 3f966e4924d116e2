import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { afterEach, expect, onTestFinished } from 'vitest'
import { acquireLock } from '../../../src/store/database/lock.ts'
import { databasePath } from '../../../src/store/database/open.ts'
import type { RunEnd } from '../../../src/store/runs/runs.ts'
import { FILLED_AT, closeAll, jsonOf, serve, servedToAll } from '../served.ts'
import { longTest, test } from '../../support/tables.ts'

afterEach(closeAll)

const ID = 'ROOT-OS-ALPINE-318-CVE-2024-1234'
const PATH = `/external/osv/${ID}.json`
const TEXT = `{"id":"${ID}",  "modified":"2026-07-01T00:00:00Z","n":1.50}\n`
const serveOne = servedToAll((store) => store.publishOsv({ [ID]: TEXT }))

test('a record is upstream’s bytes, with validators and the mirror’s own headers', async () => {
  const { get } = await serveOne()
  const reply = await get(PATH)
  expect(reply.status).toBe(200)
  expect(reply.body.toString()).toBe(TEXT)
  expect(reply.headers).toMatchObject({
    'content-type': 'application/json',
    'content-length': String(TEXT.length),
    'last-modified': 'Wed, 01 Jul 2026 00:00:00 GMT',
    'cache-control': 'public, max-age=0, must-revalidate',
    vary: 'Accept-Encoding',
    'x-mirror-as-of': '2026-07-01T00:00:00.000Z',
  })
  expect(reply.headers.etag).toMatch(/^"[0-9a-f]{32}"$/)
  expect(reply.headers['x-mirror-snapshot']).toMatch(/^[0-9a-f]{64}$/)
  expect(reply.headers['content-encoding']).toBeUndefined()
})

test('a gzip answer is sent as stored, with its own ETag', async () => {
  const { get } = await serveOne()
  const plain = await get(PATH)
  const packed = await get(PATH, { 'Accept-Encoding': 'gzip, deflate, br' })
  expect(packed.headers['content-encoding']).toBe('gzip')
  expect(packed.headers['content-length']).toBe(String(packed.body.length))
  expect(gunzipSync(packed.body).toString()).toBe(TEXT)
  expect(packed.headers.etag).toBe(plain.headers.etag?.replace(/"$/, '-gzip"'))
  expect(packed.headers.vary).toBe('Accept-Encoding')
})

test('the cache returns both content codings unchanged', async () => {
  const { get } = await serveOne()
  for (const coding of ['gzip', 'identity', 'gzip', 'identity']) {
    const { body } = await get(PATH, { 'Accept-Encoding': coding })
    expect((coding === 'gzip' ? gunzipSync(body) : body).toString()).toBe(TEXT)
  }
})

const ODD_IDS = [
  'ROOT-APP-NPM-',
  'with space ',
  'a%20b',
  'CVE-2024-100%',
  'CVE-2024-%2F1',
  'slash/in/id',
  'colon:id',
  'é漢🛡',
  'Ã©',
  '../globals/sys_matrix',
  'what?query',
  'hash#tag',
  'plus+plus',
  'all.zip',
  'a"b\\c',
]

const contentOf = (id: string): string => JSON.stringify({ id })
const serveOdd = servedToAll((store) => store.publishOsv(Object.fromEntries(ODD_IDS.map((id) => [id, contentOf(id)]))))

test.each(ODD_IDS)('a record with the id %j is found when the id is percent-encoded', async (id) => {
  const { get } = await serveOdd()
  for (let again = 0; again < 2; again++) {
    const reply = await get(`/external/osv/${encodeURIComponent(id)}.json`)
    expect([reply.status, reply.body.toString()]).toEqual([200, contentOf(id)])
  }
})

test('a record is found by an id with raw slashes and with an unknown query', async () => {
  const { get } = await serve((store) => store.publishOsv({ 'a/b': '"slash"' }))
  expect((await get('/external/osv/a/b.json')).body.toString()).toBe('"slash"')
  expect((await get('/external/osv/a%2fb.json?x=1&y')).body.toString()).toBe('"slash"')
  expect((await get('/external/osv/a%2Fb.json?')).body.toString()).toBe('"slash"')
})

test('records whose ids differ only in percent-encoding are not confused', async () => {
  const { get } = await serve((store) => store.publishOsv({ 'a b': '"space"', 'a%20b': '"percent"' }))
  for (let again = 0; again < 2; again++) {
    expect((await get('/external/osv/a%20b.json')).body.toString()).toBe('"space"')
    expect((await get('/external/osv/a%2520b.json')).body.toString()).toBe('"percent"')
  }
})

test('a record named "all" never hides the index', async () => {
  const { get } = await serve((store) => store.publishOsv({ all: '"record"' }))
  expect((await get('/external/osv/all.json')).body.toString()).toContain('"modified"')
  expect((await get('/external/osv/%61ll.json')).body.toString()).toContain('"modified"')
})

test('a record path that cannot be decoded is a 400', async () => {
  const { get } = await serveOne()
  for (const bad of ['%', '%zz', '%ff', 'a%2']) {
    const reply = await get(`/external/osv/${bad}.json`)
    expect([reply.status, jsonOf(reply)['error']]).toEqual([400, 'bad_request'])
    expect(reply.headers['cache-control']).toBe('no-store')
  }
})

test('an unknown record id is a 404 in JSON that names the snapshot', async () => {
  const { get } = await serveOne()
  const reply = await get('/external/osv/nothing.json')
  expect(reply.status).toBe(404)
  expect(jsonOf(reply)).toEqual({
    error: 'not_found',
    message: expect.stringContaining('index of this snapshot (X-Mirror-As-Of) does not list this id') as string,
    id: 'nothing',
  })
  expect(reply.headers).toMatchObject({
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'x-mirror-as-of': '2026-07-01T00:00:00.000Z',
  })
})

test('a removed record is a 404 that says that it was removed, and when', async () => {
  const { get } = await serve((store) => {
    store.publishOsv({ [ID]: TEXT, other: '{}' })
    store.publishOsv({ other: '{}' }, FILLED_AT + 3_600_000)
  })
  const reply = await get(PATH)
  expect(reply.status).toBe(404)
  expect(jsonOf(reply)).toMatchObject({ id: ID, removedAt: '2026-07-01T01:00:00.000Z' })
  expect(jsonOf(reply)['message']).toContain('removed')
})

test('a damaged record is a 503 with a fixed text in every content coding, and is logged', async () => {
  const damages = [
    'DELETE FROM osv_body',
    "UPDATE osv_body SET bytes = x'1f8b'",
    'UPDATE osv_body SET bytes = zeroblob(length(bytes))',
  ]
  for (const sql of damages) {
    const served = await serve((store) => {
      store.publishOsv({ [ID]: TEXT })
      store.damage(sql)
    })
    for (const coding of ['gzip', 'identity']) {
      const reply = await served.get(PATH, { 'Accept-Encoding': coding })
      expect(reply.status).toBe(503)
      expect(jsonOf(reply)).toEqual({
        error: 'corrupt',
        message: 'the mirror cannot read its data now: see its log for the reason',
      })
      expect(reply.headers['cache-control']).toBe('no-store')
    }
    expect(served.errors).toHaveLength(2)
  }
})

/** The member's frame and trailer stay, its stream is another. */
const OTHER_STREAM =
  'UPDATE osv_body SET bytes = CAST(substr(bytes, 1, 20) || zeroblob(length(bytes) - 28) || substr(bytes, -8) AS BLOB)'

test('a record whose bytes no longer inflate is a 503', async () => {
  const { get } = await serve((store) => {
    store.publishOsv({ [ID]: TEXT.repeat(50) })
    store.damage(OTHER_STREAM)
  })
  for (const coding of ['gzip', 'identity']) expect((await get(PATH, { 'Accept-Encoding': coding })).status).toBe(503)
})

test('a database that cannot be read is a fault, not a 404', async () => {
  const served = await serve((store) => {
    store.publishOsv({ [ID]: TEXT })
    store.damage('PRAGMA wal_checkpoint(TRUNCATE)')
  })
  const file = databasePath(served.dir)
  const pages = readFileSync(file)
  writeFileSync(file, pages.fill(0xee, 4096))
  const reply = await served.get(PATH)
  expect([reply.status, jsonOf(reply)['error']]).toEqual([503, 'corrupt'])
  expect(reply.body.toString()).not.toContain(served.dir)
  expect((await served.get('/external/osv/nothing.json')).status).toBe(503)
})

test('a database that lacks a table is a 503 that names no part of it', async () => {
  const served = await serve((store) => store.publishOsv({ [ID]: TEXT }))
  served.store.damage('DROP TABLE osv_tombstone')
  served.server.snapshotChanged()
  const reply = await served.get('/external/osv/nothing.json')
  expect([reply.status, jsonOf(reply)['error']]).toEqual([503, 'corrupt'])
  expect(reply.body.toString()).not.toContain('tombstone')
})

test('every feed path is a 503 with Retry-After before the first snapshot', async () => {
  const { get } = await serve(() => undefined)
  for (const path of [PATH, '/external/osv/all.json', '/external/osv/all.zip', '/external/patch_feed']) {
    const reply = await get(path)
    expect([path, reply.status, jsonOf(reply)['error']]).toEqual([path, 503, 'not_ready'])
    expect(Number(reply.headers['retry-after'])).toBeGreaterThan(0)
  }
})

const EITHER = ['osv', 'feeds'] as const

test.each<[string, Partial<RunEnd> | null, RegExp]>([
  [
    'that was killed',
    null,
    /last sync \(failed, begun at .*Z\) did not have it: the process or its sync thread ended before .* "patchmirror sync \w+" tries again, "patchmirror runs \d" shows that run$/,
  ],
  [
    'that failed',
    { state: 'failed', message: 'HTTP 500 at upstream' },
    /last sync \(failed at .*Z\) did not have it: HTTP 500 at upstream; "patchmirror sync \w+" tries again, "patchmirror runs \d" shows that run$/,
  ],
  [
    'that was partial',
    { state: 'partial', message: null },
    /last sync \(partial at .*Z\) did not have it; "patchmirror sync/,
  ],
  [
    'in quarantine',
    { state: 'quarantined', message: null },
    /last sync \(quarantined at .*Z\) did not have it; "patchmirror approve \d" or "patchmirror reject \d" decides$/,
  ],
])('a 503 before the first snapshot gives the reason and what to do after a run %s', async (_, end, reason) => {
  const { get, store, server, dir } = await serve(() => undefined)
  for (const path of ['/external/osv/all.zip', '/external/patch_feed', '/osv/all.zip', '/osv/npm/all.zip'])
    expect(jsonOf(await get(path))['message']).toMatch(
      /: no sync and no import of (osv|feeds) has run yet; "patchmirror sync (osv|feeds)" gets it now, .*"patchmirror bundle import FILE" here$/,
    )
  for (const source of EITHER) store.addRun(source, FILLED_AT, end ?? undefined)
  server.snapshotChanged()
  for (const path of ['/external/osv/all.zip', '/external/osv/x.json', '/external/patch_feed'])
    expect(jsonOf(await get(path))['message']).toMatch(reason)
  if (end === null) return
  const sync = acquireLock(dir, 'sync')
  onTestFinished(() => sync.release())
  for (const source of EITHER) store.addRun(source, FILLED_AT + 2000)
  server.snapshotChanged()
  expect(jsonOf(await get('/external/patch_feed'))['message']).toMatch(/; another one is running$/)
})

test('a 503 before the first snapshot says since when the first run is in progress', async () => {
  const { get, store, server, dir } = await serve(() => undefined)
  const sync = acquireLock(dir, 'sync')
  onTestFinished(() => sync.release())
  for (const source of EITHER) store.addRun(source, FILLED_AT)
  server.snapshotChanged()
  for (const path of ['/external/osv/all.zip', '/external/patch_feed'])
    expect(jsonOf(await get(path))['message']).toMatch(
      /not mirrored yet: the first sync has been running since .*Z: try again when it has ended$/,
    )
})

test('the age of the data is the newest date at which upstream confirmed it', async () => {
  const served = await serve((store) => store.publishOsv({ [ID]: TEXT }))
  await served.get(PATH)
  served.store.addRun('osv', FILLED_AT + 7_200_000, { asOf: FILLED_AT + 7_200_000 })
  served.server.snapshotChanged()
  const { headers } = await served.get(PATH)
  expect(headers['x-mirror-as-of']).toBe('2026-07-01T02:00:00.000Z')
})

longTest('a commit of another process is noticed without a notification', async () => {
  const served = await serve((store) => store.publishOsv({ [ID]: TEXT }))
  const before = await served.get(PATH)
  served.store.publishOsv({ [ID]: '{"new":true}' }, FILLED_AT + 60_000)
  await expect.poll(async () => (await served.get(PATH)).body.toString()).toBe('{"new":true}')
  const after = await served.get(PATH)
  expect(after.headers['x-mirror-snapshot']).not.toBe(before.headers['x-mirror-snapshot'])
  expect(Date.parse(after.headers['last-modified'] ?? '')).toBeGreaterThan(
    Date.parse(before.headers['last-modified'] ?? ''),
  )
})

test('a server without a cache gives the same answers', async () => {
  const { get } = await serve((store) => store.publishOsv({ [ID]: TEXT }), {
    env: { PATCHMIRROR_SERVER_CACHE_BYTES: '0' },
  })
  for (let again = 0; again < 2; again++) expect((await get(PATH)).body.toString()).toBe(TEXT)
})

test('a gzip body that does not inflate to the record is never sent', async () => {
  const { get } = await serve((store) => {
    store.publishOsv({ [ID]: TEXT.repeat(50) })
    store.damage(
      'UPDATE osv_body SET bytes = CAST(substr(bytes, 1, 20) || zeroblob(length(bytes) - 28) || substr(bytes, -8) AS BLOB)',
    )
  })
  for (let again = 0; again < 2; again++) expect((await get(PATH, { 'Accept-Encoding': 'gzip' })).status).toBe(503)
})

test('a record that is in the index alone is reported as a damaged database, not as a 404', async () => {
  const served = await serve((store) => {
    store.publishOsv({ [ID]: TEXT, 'odd "id"': '{}', other: '{}' })
    store.damage("DELETE FROM osv_record WHERE id <> 'other'")
  })
  for (const id of [ID, 'odd "id"']) {
    const reply = await served.get(`/external/osv/${encodeURIComponent(id)}.json`)
    expect([reply.status, jsonOf(reply)['error']]).toEqual([503, 'corrupt'])
  }
  expect((await served.get('/external/osv/nothing.json')).status).toBe(404)
  expect((await served.get('/external/osv/other.json')).status).toBe(200)
  served.store.publishOsv({ other: '{}' }, FILLED_AT + 60_000)
  served.server.snapshotChanged()
  expect((await served.get(PATH)).status).toBe(404)
})

test('a database that is truncated while it is served causes a fault, and the process continues', async () => {
  const served = await serve((store) => {
    const records = Array.from({ length: 500 }, (_, at) => [`r${at}`, `"${'x'.repeat(at)}${at}"`])
    store.publishOsv(Object.fromEntries(records) as Record<string, string>)
    store.damage('PRAGMA wal_checkpoint(TRUNCATE)')
  })
  truncateSync(databasePath(served.dir), 4096)
  const reply = await served.get('/external/osv/r400.json')
  expect(reply.status).toBe(503)
  expect((await served.get('/-/health')).status).toBe(200)
})

const json = (id: string): string => JSON.stringify({ id })
const held = (...ids: string[]) => Object.fromEntries(ids.map((id) => [id, json(id)]))
const PERCENT = '100%-X'

test.each([
  ['without the space at its end', 'TRIM ', 'TRIM.json'],
  ['without the space at its start', '\u2003TRIM', 'TRIM.json'],
  ['with escapes of its own, undecoded', 'a%20b', 'a%20b.json'],
  ['with escapes of its own that a client decoded', 'a%41b', 'aAb.json'],
  ['with a percent sign that is no escape', PERCENT, '100%-X.json'],
  ['with a percent sign at its end', 'a%', 'a%.json'],
  ['with a question mark', 'a?b', 'a?b.json'],
  ['as forms encode a space', 'a b', 'a+b.json'],
  ['trimmed and undecoded', ' a%20b ', 'a%20b.json'],
])('a record is found by its id %s', async (_, id, path) => {
  const { get, head } = await serve((store) => store.publishOsv(held(id, 'OTHER', 'b c')))
  const found = await get(`/external/osv/${path}`)
  expect([found.status, found.body.toString()]).toEqual([200, json(id)])
  const own = `/external/osv/${encodeURIComponent(id)}.json`
  expect(found.headers['content-location']).toBe(own)
  expect((await get(own)).headers['content-location']).toBeUndefined()
  const etag = found.headers.etag ?? ''
  expect((await get(`/external/osv/${path}`, { 'If-None-Match': etag })).status).toBe(304)
  expect((await head(`/external/osv/${path}`)).headers['content-length']).toBe(String(Buffer.byteLength(json(id))))
})

test('an ambiguous id, or one of a known record, does not lead to another record', async () => {
  const { get, store, server } = await serve((filled) =>
    filled.publishOsv(held('X ', ' X', 'GONE', 'GONE ', 'Y', 'Y ', 'a b', 'a%20b')),
  )
  expect((await get('/external/osv/X.json')).status).toBe(404)
  expect((await get('/external/osv/Y.json')).body.toString()).toBe(json('Y'))
  expect((await get('/external/osv/a%20b.json')).body.toString()).toBe(json('a b'))
  expect((await get('/external/osv/Z.json')).status).toBe(404)
  expect((await get('/external/osv/%E0%A4.json')).status).toBe(400)
  store.publishOsv(held('X ', 'GONE '), FILLED_AT + 1000)
  server.snapshotChanged()
  expect(jsonOf(await get('/external/osv/GONE.json'))['removedAt']).toBeDefined()
  expect((await get('/external/osv/X.json')).body.toString()).toBe(json('X ')) // there is but one now
})
