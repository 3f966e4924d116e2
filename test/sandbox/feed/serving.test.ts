import { gunzipSync } from 'node:zlib'
import AdmZip from 'adm-zip'
import { describe, expect, test } from 'vitest'
import { MALFORMED_IDS } from './generate.ts'
import { exchange } from '../exchange.ts'
import { JSON_PATH, ZIP_PATH, recordPath, sandboxes } from '../fixtures.ts'

const open = sandboxes()
const FEEDS = ['/external/patch_feed', '/external/cve_feed', '/external/globals/sys_matrix']

describe('the sandbox’s index', () => {
  test('is a compact array of id and modified, sorted by id', async () => {
    const { url, feed } = await open()
    const { body, headers } = await exchange(url + JSON_PATH)
    const entries = JSON.parse(body.toString()) as { id: string; modified: string }[]
    expect(headers['content-type']).toBe('application/json')
    expect(entries.map((entry) => entry.id)).toEqual(feed.ids())
    expect(feed.ids()).toEqual([...feed.ids()].sort())
    expect(body.toString()).toBe(JSON.stringify(entries))
    expect(Object.keys(entries[0] ?? {})).toEqual(['id', 'modified'])
  })
})

describe('the sandbox’s archive', () => {
  test('has every record under its id, byte for byte, as adm-zip reads it', async () => {
    const { url, feed } = await open()
    const { body, headers } = await exchange(url + ZIP_PATH, { 'accept-encoding': 'gzip' })
    const entries = new AdmZip(body).getEntries()
    expect(headers['content-type']).toBe('application/zip')
    expect(headers['content-encoding']).toBeUndefined()
    expect(entries.map((entry) => entry.entryName)).toEqual(feed.ids().map((id) => `${id}.json`))
    for (const entry of entries) {
      const id = entry.entryName.slice(0, -'.json'.length)
      expect(entry.getData().equals(feed.record(id)), id).toBe(true)
    }
  })
})

describe('the sandbox’s records', () => {
  test('are served under every id, also unusual ones', async () => {
    const { url, feed } = await open()
    const ids = feed.ids()
    for (const odd of MALFORMED_IDS) expect(ids).toContain(odd)
    for (const id of ids) {
      const { status, body } = await exchange(url + recordPath(id))
      expect(status, id).toBe(200)
      expect(body.equals(feed.record(id)), id).toBe(true)
    }
  })

  test('may have a slash in their id, encoded', async () => {
    const { url, feed } = await open()
    feed.put('a/b', '{"id":"a/b"}', '2026-01-01T00:00:00Z')
    expect((await exchange(`${url}/external/osv/a%2Fb.json`)).body.toString()).toBe('{"id":"a/b"}')
    expect((await exchange(`${url}/external/osv/a/b.json`)).status).toBe(404)
  })

  test('are a JSON 404 when they do not exist, as is any other path', async () => {
    const { url } = await open()
    for (const path of ['/external/osv/NONE.json', '/external/osv/%ZZ.json', '/', '/external/osv']) {
      const { status, headers, body } = await exchange(url + path)
      expect([status, headers['content-type']]).toEqual([404, 'application/json'])
      expect(JSON.parse(body.toString())).toHaveProperty('message')
    }
  })
})

describe('the sandbox’s other feeds', () => {
  test('have the shapes that the service uses', async () => {
    const { url } = await open()
    const read = async (path: string) => (await fetch(url + path)).json()
    expect(await read('/external/patch_feed')).toMatchObject({
      alpine: [{ distroversion: '3.17', archs: ['x86_64', 'aarch64'] }, {}, {}, {}],
      npm: [{ distroversion: '' }],
    })
    const one = '/external/patch_feed?ecosystem=debian&os_distro_major=12&package_src_name=curl'
    const patches = (await read(one)) as { debian: { packages: { pkg: { name: string } }[] }[] }
    expect(Object.keys(patches)).toEqual(['debian'])
    expect(patches.debian[0]?.packages.map(({ pkg }) => pkg.name)).toEqual(['curl'])
    expect(patches.debian[0]?.packages[0]?.pkg).toHaveProperty('secfixes')
    const cves = JSON.stringify(await read(one.replace('patch_feed', 'cve_feed')))
    expect(cves).toMatch(/"cves":\{"CVE-\d+-\d+":\{"vulnerable_ranges":\["<.*"fixed_versions":\["/)
    expect(await read('/external/globals/sys_matrix')).toMatchObject({
      ecosystems: { debian: [{ major_version: '11', dev_code_name: 'bullseye' }, {}, {}] },
      package_ecosystems: ['npm', 'pypi', 'maven'],
      platforms: [{ architecture: 'amd64', os: 'linux' }, {}],
    })
  })

  test('refuse an unknown ecosystem and ignore an empty one', async () => {
    const { url } = await open()
    expect((await exchange(`${url}/external/patch_feed?ecosystem=beos`)).status).toBe(400)
    const all = await exchange(`${url}/external/patch_feed`)
    expect((await exchange(`${url}/external/patch_feed?ecosystem=`)).body.equals(all.body)).toBe(true)
  })

  test('do not include the legacy one when it is switched off', async () => {
    const { url } = await open({ cveFeed: false })
    expect((await exchange(`${url}/external/cve_feed`)).status).toBe(404)
  })

  test('change when touched', async () => {
    const { url, feed } = await open()
    const before = await exchange(`${url}/external/patch_feed`)
    expect(feed.touchFeeds()).toHaveLength(3)
    const after = await exchange(`${url}/external/patch_feed`)
    expect(after.headers.etag).not.toBe(before.headers.etag)
    expect(after.body.equals(before.body)).toBe(false)
    const moved = [before, after].map(({ headers }) => Date.parse(headers['last-modified'] ?? ''))
    expect(moved[1]).toBeGreaterThan(moved[0] ?? NaN)
  })
})

describe('the sandbox’s feed answers', () => {
  test('have the same headers for HEAD as for GET, without the body', async () => {
    const { url, feed } = await open()
    const record = recordPath(feed.ids()[0] ?? '')
    for (const path of [JSON_PATH, ZIP_PATH, record, ...FEEDS]) {
      const get = await exchange(url + path)
      const head = await exchange(url + path, {}, { method: 'HEAD' })
      expect(head.status).toBe(200)
      expect(head.body.length).toBe(0)
      expect(head.headers['content-length']).toBe(String(get.body.length))
      expect({ ...head.headers, date: '' }).toEqual({ ...get.headers, date: '' })
      expect(get.headers.etag).toMatch(/^"[^"]+"$/)
      expect(get.headers['last-modified']).toMatch(/^\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/)
      expect(Date.parse(get.headers['last-modified'] ?? '')).toBeLessThanOrEqual(Date.now())
    }
  })

  test('are 304 for a client that has the current state', async () => {
    const { url, feed } = await open()
    for (const path of [JSON_PATH, ZIP_PATH, recordPath(feed.ids()[0] ?? ''), ...FEEDS]) {
      const { headers } = await exchange(url + path)
      const { etag = '', 'last-modified': date = '' } = headers
      const status = async (asked: Record<string, string>) => (await exchange(url + path, asked)).status
      expect(await status({ 'if-none-match': etag })).toBe(304)
      expect(await status({ 'if-none-match': `"other", W/${etag}` })).toBe(304)
      expect(await status({ 'if-modified-since': date })).toBe(304)
      expect(await status({ 'if-none-match': '"other"', 'if-modified-since': date })).toBe(200)
      expect(await status({ 'if-modified-since': 'Mon, 01 Jan 2001 00:00:00 GMT' })).toBe(200)
    }
  })

  test('gzip JSON on demand, under another ETag', async () => {
    const { url, feed } = await open()
    for (const path of [JSON_PATH, recordPath(feed.ids()[3] ?? ''), ...FEEDS]) {
      const plain = await exchange(url + path)
      const zipped = await exchange(url + path, { 'accept-encoding': 'br, gzip;q=0.5' })
      expect(zipped.headers['content-encoding']).toBe('gzip')
      expect(zipped.headers['content-length']).toBe(String(zipped.body.length))
      expect(gunzipSync(zipped.body).equals(plain.body)).toBe(true)
      expect(plain.headers.vary).toBe('Accept-Encoding')
      expect(zipped.headers.etag).not.toBe(plain.headers.etag)
      const refused = await exchange(url + path, { 'accept-encoding': 'gzip;q=0' })
      expect(refused.headers['content-encoding']).toBeUndefined()
    }
  })

  test('have no validators and no gzip when these are switched off', async () => {
    const { url } = await open({ validators: false, gzip: false })
    const { headers } = await exchange(url + JSON_PATH, { 'accept-encoding': 'gzip' })
    expect(headers.etag).toBeUndefined()
    expect(headers['last-modified']).toBeUndefined()
    expect(headers['content-encoding']).toBeUndefined()
    expect(headers.vary).toBeUndefined()
  })

  test('are 405 with the allowed methods for other methods', async () => {
    const { url } = await open()
    const { status, headers } = await exchange(url + JSON_PATH, {}, { method: 'PUT' })
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD'])
  })

  test('have a Date header that follows the given clock', async () => {
    const { url } = await open({ now: () => Date.UTC(2030, 0, 2) })
    const { headers } = await exchange(url + JSON_PATH)
    expect(headers.date).toBe('Wed, 02 Jan 2030 00:00:00 GMT')
    expect(Date.parse(headers['last-modified'] ?? '')).toBeLessThan(Date.UTC(2030, 0, 2))
  })
})

describe('the request log', () => {
  test('has each request and its status', async () => {
    const { url, requests } = await open()
    await exchange(`${url}/external/patch_feed?ecosystem=npm`, { 'x-test': 'yes' })
    const { body } = await exchange(url + JSON_PATH)
    await exchange(url + JSON_PATH, {}, { method: 'HEAD' })
    const [first, second] = requests.entries
    expect(first).toMatchObject({
      method: 'GET',
      path: '/external/patch_feed',
      query: { ecosystem: 'npm' },
      headers: { 'x-test': 'yes' },
      status: 200,
    })
    expect(second).toMatchObject({ path: JSON_PATH, bytes: body.length })
    expect(requests.count('/external/*')).toBe(3)
    expect(requests.count(/all\.json$/)).toBe(2)
    expect(requests.count(JSON_PATH, 'HEAD')).toBe(1)
    requests.clear()
    expect(requests.count()).toBe(0)
  })
})
