import Database from 'better-sqlite3'
import { afterEach, expect, test } from 'vitest'
import { databasePath } from '../../../src/store/database/open.ts'
import { checkConditions, rangeStillApplies } from '../../../src/server/http/conditions.ts'
import { parseHttpDate } from '../../../src/base/time.ts'
import { chooseCoding, readRequestHeaders } from '../../../src/server/http/request-headers.ts'
import { FEEDS, closeAll, serve, servedToAll } from '../served.ts'

afterEach(closeAll)

const serveOne = servedToAll((store) => store.publishOsv({ one: '{}' }))
const DATE = 'Wed, 01 Jul 2026 00:00:00 GMT'
const PATHS = ['/external/osv/one.json', '/external/osv/all.json', '/external/patch_feed']

test.each([
  [undefined, 'identity'],
  ['', 'identity'],
  ['gzip', 'gzip'],
  ['GZIP', 'gzip'],
  ['x-gzip', 'gzip'],
  ['gzip, deflate, br, zstd', 'gzip'],
  ['deflate, br', 'identity'],
  ['gzip;q=0', 'identity'],
  ['gzip; q=0.0', 'identity'],
  ['gzip;q=0.001', 'gzip'],
  ['gzip;q=0.5, identity', 'identity'],
  ['gzip;q=1.0, identity;q=0.5', 'gzip'],
  ['identity;q=0.5, *;q=0', 'identity'],
  ['*', 'gzip'],
  ['*;q=0', 'identity'],
  ['gzip, *;q=0', 'gzip'],
  ['identity;q=0', 'gzip'],
  ['identity;q=0, gzip;q=0', 'identity'],
  ['gzip;q=none', 'identity'],
  ['gzip;q=2', 'identity'],
  [' , ,gzip', 'gzip'],
  ['gzip;level=9', 'gzip'],
])('a request with Accept-Encoding %j is answered in %s', async (header, coding) => {
  expect(chooseCoding(header)).toBe(coding)
  const { get } = await serveOne()
  const reply = await get(PATHS[0] ?? '', header === undefined ? {} : { 'Accept-Encoding': header })
  expect(reply.headers['content-encoding'] ?? 'identity').toBe(coding)
})

test('a request with matching validators is a 304 with the headers of the 200, in both content codings', async () => {
  const { get, head } = await serve((store) => {
    store.publishOsv({ one: '{}' })
    store.publishFeeds(FEEDS)
  })
  for (const path of PATHS) {
    for (const coding of ['gzip', 'identity']) {
      const full = await get(path, { 'Accept-Encoding': coding })
      const tag = full.headers.etag ?? ''
      const conditions: Record<string, string>[] = [
        { 'If-None-Match': tag },
        { 'If-None-Match': `W/${tag}` },
        { 'If-None-Match': `"x", W/${tag}, "y"` },
        { 'If-None-Match': '*' },
        { 'If-Modified-Since': DATE },
        { 'If-Modified-Since': 'Thu, 02 Jul 2026 00:00:00 GMT' },
        { 'If-None-Match': tag, 'If-Modified-Since': 'Mon, 01 Jan 2001 00:00:00 GMT' },
      ]
      for (const condition of conditions) {
        const reply = await get(path, { 'Accept-Encoding': coding, ...condition })
        expect([path, condition, reply.status]).toEqual([path, condition, 304])
        expect(reply.body).toHaveLength(0)
        for (const name of ['etag', 'vary', 'cache-control', 'x-mirror-snapshot', 'x-mirror-as-of'])
          expect(reply.headers[name]).toBe(full.headers[name])
        expect((await head(path, { 'Accept-Encoding': coding, ...condition })).status).toBe(304)
      }
    }
  }
})

test('a request with validators that do not match gets the whole answer', async () => {
  const { get } = await serveOne()
  const tag = (await get(PATHS[0] ?? '')).headers.etag ?? ''
  const conditions: Record<string, string>[] = [
    { 'If-None-Match': '"other"' },
    { 'If-None-Match': tag.replaceAll('"', '') },
    { 'If-None-Match': '"other"', 'If-Modified-Since': DATE },
    { 'If-None-Match': tag, 'Accept-Encoding': 'gzip' },
    { 'If-Modified-Since': 'Tue, 30 Jun 2026 23:59:59 GMT' },
    { 'If-Modified-Since': 'soon' },
    { 'If-Modified-Since': '2026-07-02' },
  ]
  for (const condition of conditions)
    expect([condition, (await get(PATHS[0] ?? '', condition)).status]).toEqual([condition, 200])
})

test('a date later than Last-Modified counts once the snapshot was served: before that, a file is of another one', async () => {
  const { get } = await serve((store) => {
    store.publishOsv({ one: '{}' })
    store.publishFeeds(FEEDS)
    const db = new Database(databasePath(store.dir))
    db.exec('UPDATE snapshot SET published_at = published_at + 86400000')
    db.close()
  })
  for (const path of [...PATHS, '/external/osv/all.zip']) {
    const status = async (date: string) => (await get(path, { 'If-Modified-Since': date })).status
    const dates = [DATE, 'Wed, 01 Jul 2026 12:00:00 GMT', 'Fri, 03 Jul 2026 00:00:00 GMT']
    expect([path, await Promise.all(dates.map(status))]).toEqual([path, [304, 200, 304]])
  }
})

test('a failed If-Match or If-Unmodified-Since is a 412', async () => {
  const { get } = await serveOne()
  for (const path of [PATHS[0] ?? '', '/external/osv/all.zip']) {
    const tag = (await get(path)).headers.etag ?? ''
    expect((await get(path, { 'If-Match': tag })).status).toBe(200)
    expect((await get(path, { 'If-Match': '*' })).status).toBe(200)
    expect((await get(path, { 'If-Match': '"other"' })).status).toBe(412)
    expect((await get(path, { 'If-Match': `W/${tag}` })).status).toBe(412)
    expect((await get(path, { 'If-Unmodified-Since': DATE })).status).toBe(200)
    const long = 'Mon, 01 Jan 2001 00:00:00 GMT'
    expect((await get(path, { 'If-Unmodified-Since': long })).status).toBe(412)
  }
})

test('an HTTP date is read in each of its three forms, in any time zone', () => {
  const seconds = Date.UTC(1994, 10, 6, 8, 49, 37) / 1000
  expect(parseHttpDate('Sun, 06 Nov 1994 08:49:37 GMT')).toBe(seconds)
  expect(parseHttpDate('Sunday, 06-Nov-94 08:49:37 GMT')).toBe(seconds)
  expect(parseHttpDate('Sun Nov  6 08:49:37 1994')).toBe(seconds)
  for (const other of ['', 'now', '784111777', 'Sun, 06 Nov 1994 08:49:37 +0100', '1994-11-06'])
    expect(parseHttpDate(other)).toBeNull()
})

test('repeated header fields are read as one list', () => {
  const requestHeaders = readRequestHeaders(['Accept', '*/*', 'IF-NONE-MATCH', '"a"', 'if-none-match', '"b"'])
  expect(requestHeaders.ifNoneMatch).toBe('"a", "b"')
  expect(checkConditions(requestHeaders, { etag: '"b"', changed: 0 })).toBe('unchanged')
})

test('the header If-Range takes a strong ETag or the exact date', () => {
  const held = { etag: '"a"', changed: Date.parse(DATE) / 1000 }
  expect(rangeStillApplies(undefined, held)).toBe(true)
  expect(rangeStillApplies('"a"', held)).toBe(true)
  expect(rangeStillApplies(DATE, held)).toBe(true)
  for (const other of ['"b"', 'W/"a"', 'Thu, 02 Jul 2026 00:00:00 GMT', 'nonsense', ''])
    expect(rangeStillApplies(other, held)).toBe(false)
})
