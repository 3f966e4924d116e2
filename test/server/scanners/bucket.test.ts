import { readdirSync, rmSync, truncateSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import AdmZip from 'adm-zip'
import Database from 'better-sqlite3'
import { afterEach, beforeAll, describe, expect, onTestFinished } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { loadQuick } from '../../support/limits.ts'
import { openPinnedReads } from '../../../src/store/reads.ts'
import { generationDir, readCurrentViews, viewsPath } from '../../../src/features/scanners/store/generations.ts'
import { createViewsState } from '../../../src/features/scanners/views/state.ts'
import { writeDatabaseSum } from '../../../src/features/scanners/views/osv/database-sum.ts'
import { performTask } from '../../../src/features/scanners/views/task.ts'
import { crc32c, googHash } from '../../../src/archive/zip/crc32c.ts'
import { FILLED_AT, openFilledStore } from '../../support/filled-store.ts'
import { record } from '../../features/scanners/views/fixtures.ts'
import { type Reply, type Served, closeAll, jsonOf, serve } from '../served.ts'

afterEach(closeAll)

const RECORDS = {
  'ROOT-A': record('ROOT-A', '2026-05-01T00:00:00Z', ['Root:Debian:12', 'rootio-curl']),
  'ROOT/B 1': record('ROOT-B', '2026-05-02', ['Root:Alpine:3.18', 'rootio-curl']),
  PLAIN: record('PLAIN', '2026-06-01', ['Rocky Linux:9', 'x'], ['a/b', 'x']),
}
const DERIVED = RECORDS['ROOT-A'].replace('"Root:Debian:12"', '"Debian:12","purl":"pkg:deb/debian/rootio-curl"')

/** The views are made once and copied for each test: they are read only. */
let made = ''
beforeAll(async () => {
  made = await filled()
  await performTask({ dataDir: made, kind: 'osv', vendors: ['Root'], rebuild: false })
  return () => rmSync(made, { recursive: true, force: true })
})

async function filled(): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-bucket-'))
  const store = openFilledStore(dir)
  store.publishOsv(RECORDS)
  store.close()
  return Promise.resolve(dir)
}

const served = (env: Record<string, string> = {}): Promise<Served> =>
  serve(() => undefined, { dir: made, env, keep: true })

const told = ({ status, headers, body }: Reply) => ({ status, headers, text: body.toString() })

describe('the bucket of OSV views', () => {
  test('has an archive of each ecosystem, with ranges, validators, a checksum and no content coding', async () => {
    const { get, head } = await served()
    const whole = await get('/osv/Debian/all.zip', { 'Accept-Encoding': 'gzip' })
    expect(whole).toMatchObject({
      status: 200,
      headers: {
        'content-type': 'application/zip',
        'content-length': String(whole.body.length),
        'x-goog-hash': googHash(crc32c(whole.body)),
        'x-mirror-derived': 'Root',
        'last-modified': 'Wed, 01 Jul 2026 00:00:00 GMT',
        'accept-ranges': 'bytes',
      },
    })
    expect(whole.headers['content-encoding']).toBeUndefined()
    expect(new AdmZip(whole.body).readAsText('ROOT-A.json')).toBe(DERIVED)
    const part = await get('/osv/Debian/all.zip', { Range: 'bytes=2-5' })
    expect([part.status, part.body]).toEqual([206, whole.body.subarray(2, 6)])
    const etag = whole.headers.etag ?? ''
    const unchanged = await get('/osv/Debian/all.zip', { 'If-None-Match': etag })
    expect(told(unchanged)).toMatchObject({
      status: 304,
      text: '',
      headers: { 'x-mirror-derived': 'Root' },
    })
    const text = await get('/osv/ecosystems.txt', { 'Accept-Encoding': 'gzip' })
    expect(text.headers['content-encoding']).toBe('gzip')
    // Of the text itself: a part of the compressed bytes cannot be decoded.
    const line = await get('/osv/ecosystems.txt', { 'Accept-Encoding': 'gzip', Range: 'bytes=1-3' })
    expect(line.headers['content-encoding']).toBeUndefined()
    expect(gunzipSync(text.body).subarray(1, 4)).toEqual(line.body)
    const far = await get('/osv/Debian/all.zip', { Range: 'bytes=99999-' })
    expect(far.status).toBe(416)
    const asked = await head('/osv/Debian/all.zip')
    expect({ ...asked.headers, date: '' }).toEqual({ ...whole.headers, date: '' })
    expect(asked.body).toHaveLength(0)
  })

  test('has upstream’s own archive as all.zip, and its bytes in the vendor’s folder', async () => {
    const { get } = await served()
    const mirrored = await get('/external/osv/all.zip')
    const whole = await get('/osv/all.zip')
    expect(whole.body.equals(mirrored.body)).toBe(true)
    expect(whole.headers['x-mirror-derived']).toBeUndefined()
    const root = await get('/osv/Root/all.zip')
    expect(root.headers['x-mirror-derived']).toBeUndefined()
    expect(new AdmZip(root.body).readAsText('ROOT-A.json')).toBe(RECORDS['ROOT-A'])
  })

  test('has each record in each of its folders, in both content codings', async () => {
    const { get, head } = await served()
    const derived = await get('/osv/Debian/ROOT-A.json')
    expect(told(derived)).toMatchObject({
      status: 200,
      text: DERIVED,
      headers: {
        'content-type': 'application/json',
        'x-goog-hash': googHash(crc32c(Buffer.from(DERIVED))),
        'x-mirror-derived': 'Root',
        'x-mirror-as-of': '2026-07-01T00:00:00.000Z',
      },
    })
    const zipped = await get('/osv/Debian/ROOT-A.json', { 'Accept-Encoding': 'gzip' })
    expect(zipped.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' })
    expect(gunzipSync(zipped.body).toString()).toBe(DERIVED)
    expect(zipped.headers.etag).not.toBe(derived.headers.etag)
    const asked = await head('/osv/Debian/ROOT-A.json')
    expect({ ...asked.headers, date: '' }).toEqual({ ...derived.headers, date: '' })
    const own = await get('/osv/Root/ROOT-A.json')
    expect(told(own)).toMatchObject({ status: 200, text: RECORDS['ROOT-A'] })
    expect(own.headers['x-mirror-derived']).toBeUndefined()
    const etag = own.headers.etag ?? ''
    expect((await get('/osv/Root/ROOT-A.json', { 'If-None-Match': etag })).status).toBe(304)
  })

  test('finds names with spaces and slashes when they are percent-encoded', async () => {
    const { get } = await served()
    for (const path of ['/osv/Rocky%20Linux/PLAIN.json', '/osv/a%2Fb/PLAIN.json'])
      expect(told(await get(path))).toMatchObject({ status: 200, text: RECORDS.PLAIN })
    for (const path of ['/osv/Root/ROOT/B%201.json', '/osv/Root/ROOT%2FB%201.json'])
      expect(told(await get(path))).toMatchObject({ status: 200, text: RECORDS['ROOT/B 1'] })
    expect((await get('/osv/%E0%A4%A/all.zip')).status).toBe(400)
  })

  test('has lists of names and dates as text, in both content codings', async () => {
    const { get } = await served()
    const names = await get('/osv/ecosystems.txt')
    expect(told(names)).toMatchObject({
      status: 200,
      text: 'Alpine\nDebian\nRocky Linux\nRoot\na/b\n',
      headers: { 'content-type': 'text/plain; charset=utf-8', vary: 'Accept-Encoding' },
    })
    const stamps = await get('/osv/Root/modified_id.csv')
    expect(told(stamps)).toMatchObject({
      status: 200,
      text: '2026-05-02T00:00:00Z,ROOT/B 1\n2026-05-01T00:00:00Z,ROOT-A\n',
      headers: { 'content-type': 'text/csv; charset=utf-8' },
    })
    const zipped = await get('/osv/Root/modified_id.csv', { 'Accept-Encoding': 'gzip' })
    expect(zipped.headers).toMatchObject({
      'content-encoding': 'gzip',
      'x-goog-hash': stamps.headers['x-goog-hash'],
    })
    expect(gunzipSync(zipped.body)).toEqual(stamps.body)
    expect((await get('/osv/modified_id.csv')).body.toString().split('\n')[0]).toBe(
      '2026-06-01T00:00:00Z,Rocky Linux/PLAIN',
    )
  })

  test('answers 404 in JSON for a missing file', async () => {
    const { get } = await served()
    const ask = async (path: string) => {
      const reply = await get(path)
      return [reply.status, jsonOf(reply)]
    }
    expect(await ask('/osv/Nothing/all.zip')).toEqual([
      404,
      expect.objectContaining({ error: 'not_found', ecosystem: 'Nothing' }),
    ])
    expect(await ask('/osv/debian/ROOT-A.json')).toEqual([404, expect.objectContaining({ closest: 'Debian' })])
    for (const [release, closest] of Object.entries({ 'Debian:12': 'Debian', 'Root:Debian:12': 'Root' }))
      expect(await ask(`/osv/${release}/all.zip`)).toEqual([
        404,
        expect.objectContaining({ closest, message: expect.stringContaining('releases have no folder') as unknown }),
      ])
    expect(await ask('/osv/Debian/PLAIN.json')).toEqual([404, expect.objectContaining({ id: 'PLAIN' })])
    expect(await ask('/osv/Debian/modified.csv')).toEqual([
      404,
      expect.objectContaining({ error: 'not_found', path: '/osv/Debian/modified.csv' }),
    ])
    expect(await ask('/osv')).toEqual([404, expect.objectContaining({ error: 'not_found' })])
  })

  test('is read only, and ignores an upgrade and credentials', async () => {
    const { get } = await served()
    const written = await get('/osv/Debian/all.zip', {}, 'PUT')
    expect([written.status, written.headers.allow]).toEqual([405, 'GET, HEAD'])
    expect((await get('/osv/nonsense', {}, 'PUT')).status).toBe(404)
    const upgraded = await get('/osv/Debian/modified_id.csv', {
      Connection: 'Upgrade, HTTP2-Settings',
      Upgrade: 'h2c',
      'HTTP2-Settings': 'AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA',
      Authorization: 'Bearer wrong',
      'api-key': '',
    })
    expect(upgraded.status).toBe(200)
  })

  test('is a 404 that names the setting when it is switched off', async () => {
    const { get } = await served({ PATCHMIRROR_VIEWS_SERVE: 'query,vex,findings' })
    for (const path of ['/osv/ecosystems.txt', '/osv/Debian/ROOT-A.json']) {
      const reply = await get(path)
      expect([reply.status, reply.body.toString()]).toEqual([404, expect.stringContaining('views.serve has no bucket')])
    }
    expect((await get('/')).body.toString()).not.toContain('"/osv/all.zip"')
  })
})

test('the bucket is a 503 with Retry-After until the first generation is made', async () => {
  const dir = await filled()
  const { get, server } = await serve(() => undefined, { dir })
  const early = await get('/osv/Debian/all.zip')
  expect([early.status, early.headers['retry-after']]).toEqual([503, '30'])
  await performTask({ dataDir: dir, kind: 'osv', vendors: ['Root'], rebuild: false })
  server.snapshotChanged()
  expect((await get('/osv/Debian/all.zip')).status).toBe(200)
})

test('a generation of another layout is a 503 with Retry-After and a text, and the mirror is not ready until it is made again', async () => {
  const dir = await filled()
  await performTask({ dataDir: dir, kind: 'osv', vendors: ['Root'], rebuild: false })
  const setLayout = (to: (layout: number) => number): void => {
    const folder = generationDir(dir, readCurrentViews(dir, 'osv')?.name ?? '')
    const db = new Database(viewsPath(folder))
    db.pragma(`user_version = ${to(db.pragma('user_version', { simple: true }) as number)}`)
    db.close()
    writeDatabaseSum(folder)
  }
  setLayout((layout) => layout - 1)
  const { config } = loadQuick({ env: { PATCHMIRROR_DATA_DIR: dir }, cwd: dir, needsFile: () => false })
  const reads = openPinnedReads(dir)
  if (reads === null) throw new Error('nothing is stored')
  onTestFinished(() => reads.close())
  const state = createViewsState({ config, reads: reads.live })
  const viewsMaker = {
    wanted: () => undefined,
    damaged: () => undefined,
    report: () => state.reports({ making: null, isFailing: () => false }),
  }
  const { get } = await serve(() => undefined, { dir, viewsMaker })
  const refused = await get('/osv/Debian/all.zip')
  expect([refused.status, refused.headers['retry-after']]).toEqual([503, '30'])
  expect(refused.body.toString()).toContain('being built: try again later')
  const ready = async () => JSON.parse((await get('/-/ready')).body.toString()) as { views?: object }
  expect((await ready()).views).toEqual({
    ready: false,
    reason: expect.stringContaining('/osv/ and /-/match answer 503') as string,
  })
  setLayout((layout) => layout + 1)
  expect((await ready()).views).toBeUndefined()
})

test('all answers of the bucket are of one generation, also after a newer snapshot is served', async () => {
  const dir = await filled()
  await performTask({ dataDir: dir, kind: 'osv', vendors: ['Root'], rebuild: false })
  const { get, server, store } = await serve(() => undefined, { dir })
  const before = await get('/osv/all.zip')
  store.publishOsv({ ...RECORDS, 'ROOT-Z': RECORDS['ROOT-A'] }, FILLED_AT + 86_400_000)
  server.snapshotChanged()
  const mirrored = await get('/external/osv/all.zip')
  const old = await get('/osv/all.zip')
  expect(old.body.equals(before.body)).toBe(true)
  expect(old.headers['x-mirror-snapshot']).toBe(before.headers['x-mirror-snapshot'])
  expect(old.headers['x-mirror-snapshot']).not.toBe(mirrored.headers['x-mirror-snapshot'])
  expect((await get('/osv/Debian/ROOT-Z.json')).status).toBe(404)
  await performTask({ dataDir: dir, kind: 'osv', vendors: ['Root'], rebuild: false })
  server.snapshotChanged()
  expect((await get('/osv/all.zip')).headers['x-mirror-snapshot']).toBe(mirrored.headers['x-mirror-snapshot'])
  expect((await get('/osv/Debian/ROOT-Z.json')).status).toBe(200)
})

test('a record that upstream lists and the mirror could not store is a 503 in each folder, and no record without evidence', async () => {
  const dir = await filled()
  await performTask({ dataDir: dir, kind: 'osv', vendors: ['Root'], rebuild: false })
  const { get, store, server } = await serve(() => undefined, { dir })
  const ask = async () => {
    server.snapshotChanged()
    const reply = await get('/osv/Debian/LOST.json')
    return [reply.status, jsonOf(reply)['message']]
  }
  store.damage("UPDATE snapshot SET whole = 0 WHERE source = 'osv'; INSERT INTO osv_missing (id) VALUES ('LOST')")
  expect(await ask()).toEqual([404, expect.stringContaining('upstream may have it')])
  store.damage("INSERT INTO upstream_state (path, body) VALUES ('/external/osv/all.json', x'00')")
  expect(await ask()).toEqual([503, expect.stringContaining('upstream lists this record')])
})

test('a damaged view file is a 503, causes a rebuild, and is never served', async () => {
  const dir = await filled()
  await performTask({ dataDir: dir, kind: 'osv', vendors: ['Root'], rebuild: false })
  const asked: string[] = []
  const viewsMaker = {
    wanted: () => undefined,
    damaged: (kind: string) => void asked.push(kind),
    report: () => [],
  }
  const { get, server } = await serve(() => undefined, { dir, viewsMaker })
  const current = readCurrentViews(dir, 'osv')
  const folder = generationDir(dir, current?.name ?? '')
  for (const file of readdirSync(folder)) if (/^[\da-f]{32}\.zip$/.test(file)) truncateSync(join(folder, file), 35)
  expect((await get('/osv/Debian/all.zip')).status).toBe(503)
  expect((await get('/osv/Debian/ROOT-A.json')).status).toBe(503)
  expect(asked).toEqual(['osv', 'osv'])
  await performTask({ dataDir: dir, kind: 'osv', vendors: ['Root'], rebuild: true })
  server.snapshotChanged()
  expect((await get('/osv/Debian/ROOT-A.json')).body.toString()).toBe(DERIVED)
})

longTest('a record of a view is found by its trimmed or undecoded id if that is unambiguous', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-bucket-'))
  const store = openFilledStore(dir)
  const of = (id: string, ecosystem: string) => [id, record(id, '2026-05-01', [ecosystem, 'p'])]
  store.publishOsv(
    Object.fromEntries([
      ...[of('A ', 'npm'), of(' A', 'Go'), of('a%20b', 'npm'), of('1%-X', 'npm')],
      ...[of('B ', 'npm'), of(' B', 'npm')],
    ]) as Record<string, string>,
  )
  store.close()
  await performTask({ dataDir: dir, kind: 'osv', vendors: [], rebuild: false })
  const { get } = await serve(() => undefined, { dir })
  const look = async (path: string) => {
    const { status, headers } = await get(path)
    return [status, headers['content-location']]
  }
  expect(await look('/osv/npm/A.json')).toEqual([200, '/osv/npm/A%20.json'])
  expect(await look('/osv/Go/A.json')).toEqual([200, '/osv/Go/%20A.json'])
  expect(await look('/osv/npm/a%20b.json')).toEqual([200, '/osv/npm/a%2520b.json'])
  expect(await look('/osv/npm/1%-X.json')).toEqual([200, '/osv/npm/1%25-X.json'])
  expect(await look('/osv/npm/B.json')).toEqual([404, undefined])
  expect(await look('/osv/npm/2%-X.json')).toEqual([400, undefined])
  expect((await get('/osv/v1/vulns/a b'.replace(' ', '%20'))).body.toString()).toContain('a%20b')
  expect((await get('/osv/v1/vulns/A')).status).toBe(404) // two records there
})
