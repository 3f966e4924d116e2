import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { openReader } from '../../../src/store/database/open.ts'
import { createReads } from '../../../src/store/reads.ts'
import { makeOsvViews } from '../../../src/features/scanners/views/osv/views.ts'
import { openFilledStore } from '../../support/filled-store.ts'
import { heldRecord } from './served-osv.ts'
import { closeAll, serve } from '../served.ts'

afterEach(closeAll)

const DEBIAN = heldRecord('ROOT-1', 'Root:Debian:12', 'rootio-curl', '7.88.1-10.root.io.2')
const NPM = heldRecord('ROOT-2', 'Root:npm', '@rootio/semver', '4.2.1-root.io.1')
const NUGET = heldRecord('ROOT-5', 'Root:NuGet', 'Rootio.Data.Client', '4.2.0')
const TRIXIE = heldRecord('ROOT-6', 'Root:Debian:13', 'rootio-curl', '8.14.1-2.root.io.1')
const ALPINE = heldRecord('ROOT-4', 'Root:Alpine:3.18', 'rootio-zlib', '1.2.13-r10071')
const PYPI = heldRecord('ROOT-3', 'Root:PyPI', 'Rootio_Flask', '2.0.0+root.io.1')

async function served(env: Record<string, string> = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-query-'))
  const store = openFilledStore(dir)
  store.publishOsv(Object.fromEntries([DEBIAN, NPM, PYPI, ALPINE, NUGET, TRIXIE].map(({ id, text }) => [id, text])))
  store.close()
  const db = openReader(dir)
  if (db === null) throw new Error('no database')
  const pause = async (): Promise<void> => Promise.resolve()
  await makeOsvViews({ dataDir: dir, reads: createReads(db), vendors: ['Root'], pause })
  db.close()
  return serve(() => undefined, { dir, env })
}

test('queries are answered from the views on disk, by vendor and by derived ecosystem', async () => {
  const { port } = await served()
  const url = `http://127.0.0.1:${port}/osv/v1/`
  const query = async (body: object) => {
    const response = await fetch(`${url}query`, { method: 'POST', body: JSON.stringify(body) })
    return { derived: response.headers.get('x-mirror-derived'), text: await response.text() }
  }
  const curl = (ecosystem: string, version: string) => query({ version, package: { ecosystem, name: 'rootio-curl' } })
  const entry = DEBIAN.text.slice(
    DEBIAN.text.indexOf('{', 1),
    DEBIAN.text.lastIndexOf('}', DEBIAN.text.lastIndexOf(']')) + 1,
  )
  const derived = entry.replace('"Root:Debian:12"', '"Debian:12","purl":"pkg:deb/debian/rootio-curl"')
  const body = DEBIAN.text.replace(entry, `${entry},${derived}`)
  const view = `{"vulns":[${body}]}`
  for (const ecosystem of ['Root:Debian:12', 'Debian:12'])
    expect(await curl(ecosystem, '7.88.1-10')).toEqual({ derived: 'Root', text: view })
  expect((await curl('Debian:12', '7.88.1-10.root.io.2')).text).toBe('{}')
  const purl = 'pkg:deb/debian/rootio-curl@7.88.1-10?distro=debian-12'
  expect((await query({ package: { purl } })).text).toBe(view)
  const npm = 'pkg:npm/%40rootio/semver@4.2.0'
  expect((await query({ package: { purl: npm } })).text).toContain('"ROOT-2"')
  for (const ecosystem of ['PyPI', 'Root:PyPI']) {
    const package_ = { ecosystem, name: 'rootio.flask' }
    expect((await query({ package: package_, version: '2.0.0' })).text).toContain('"ROOT-3"')
  }
  const record = await fetch(`${url}vulns/ROOT-1`)
  expect(await record.text()).toBe(body)
  expect(record.headers.get('x-mirror-derived')).toBe('Root')
  expect(record.headers.get('x-mirror-snapshot')).toMatch(/^[0-9a-f]{64}$/)
})

test('the settings can switch off the query API without the bucket', async () => {
  const { get } = await served({ PATCHMIRROR_VIEWS_SERVE: 'bucket,derived,vex' })
  expect((await get('/osv/v1/vulns/ROOT-1')).status).toBe(404)
  expect((await get('/osv/Debian/ROOT-1.json')).status).toBe(200)
})

test('a request without the base of the query API is told where that is', async () => {
  const { port } = await served()
  const base = `http://127.0.0.1:${port}`
  const asked = [
    ['/v1/query', 'POST'],
    ['/v1/querybatch', 'POST'],
    ['/v1/vulns/ROOT-1', 'GET'],
  ] as const
  for (const [path, method] of asked) {
    const response = await fetch(base + path, { method, ...(method === 'POST' && { body: '{}' }) })
    expect(response.status).toBe(404)
    expect(await response.json()).toEqual({
      code: 5,
      message: expect.stringMatching(
        `^There is no ${path} here: .* below /osv/\\. Set the client's base URL to that`,
      ) as string,
    })
  }
})

longTest('a query without an ecosystem finds a package of that name in any, as each compares names', async () => {
  const { port } = await served()
  const ask = async (body: object): Promise<string[]> => {
    const url = `http://127.0.0.1:${port}/osv/v1/query`
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) })
    const { vulns = [] } = (await response.json()) as { vulns?: { id: string }[] }
    return vulns.map(({ id }) => id)
  }
  expect(await ask({ version: '2.0.0', package: { name: 'rootio.FLASK' } })).toEqual(['ROOT-3'])
  expect(await ask({ version: '2.0.1', package: { name: 'rootio.FLASK' } })).toEqual([])
  expect(await ask({ package: { name: 'rootio-curl' } })).toEqual(['ROOT-1', 'ROOT-6'])
  expect(await ask({ package: { name: 'none' } })).toEqual([])
})

test('ranges of Ubuntu and Alpine count only for a query that names a release', async () => {
  const { port } = await served()
  const ask = async (body: object): Promise<string> => {
    const url = `http://127.0.0.1:${port}/osv/v1/query`
    return (await fetch(url, { method: 'POST', body: JSON.stringify(body) })).text()
  }
  const purl = 'pkg:apk/alpine/rootio-zlib@1.2.13-r0'
  expect(await ask({ package: { purl } })).toBe('{}')
  expect(await ask({ version: '1.2.13-r0', package: { ecosystem: 'Alpine', name: 'rootio-zlib' } })).toBe('{}')
  expect(await ask({ package: { ecosystem: 'Alpine', name: 'rootio-zlib' } })).toContain('"ROOT-4"')
  expect(await ask({ package: { purl: `${purl}?distro=alpine-3.18.6` } })).toContain('"ROOT-4"')
  expect(await ask({ package: { purl: `${purl}?distro=alpine-3.19.1` } })).toBe('{}')
  expect(await ask({ version: '1.2.13-r0', package: { ecosystem: 'Alpine:v3.18', name: 'rootio-zlib' } })).toContain(
    '"ROOT-4"',
  )
})

test('a package of a release has the findings of that release alone', async () => {
  const { port } = await served()
  const ask = async (purl: string): Promise<string> => {
    const url = `http://127.0.0.1:${port}/osv/v1/query`
    const body = JSON.stringify({ package: { purl } })
    return (await fetch(url, { method: 'POST', body })).text()
  }
  const fixed = 'pkg:deb/debian/rootio-curl@7.88.1-10.root.io.2'
  for (const distro of ['debian-12', 'debian-12.7', 'bookworm', '12'])
    expect(await ask(`${fixed}?arch=amd64&distro=${distro}`)).toBe('{}')
  expect(await ask(`${fixed}?distro=trixie`)).toContain('"ROOT-6"')
  expect(await ask(fixed)).toContain('"ROOT-6"')
  expect(await ask('pkg:deb/debian/rootio-curl@7.88.1-9?distro=debian-12')).not.toContain('"ROOT-6"')
})

longTest('a package is found in any case where its ecosystem compares names without', async () => {
  const { port } = await served()
  const ask = async (version: string, package_: object): Promise<string> => {
    const url = `http://127.0.0.1:${port}/osv/v1/query`
    const body = JSON.stringify({ version, package: package_ })
    return (await fetch(url, { method: 'POST', body })).text()
  }
  for (const name of ['Rootio.Data.Client', 'rootio.data.client', 'ROOTIO.data.client'])
    for (const ecosystem of ['NuGet', 'Root:NuGet', 'Root']) {
      expect(await ask('4.1.0', { ecosystem, name })).toContain('"ROOT-5"')
      expect(await ask('4.2.0', { ecosystem, name })).toBe('{}')
    }
  expect(await ask('4.1.0', { purl: 'pkg:nuget/rootio.data.client' })).toContain('"ROOT-5"')
  expect(await ask('4.2.0', { ecosystem: 'npm', name: '@ROOTIO/semver' })).toBe('{}')
})

longTest('the one body of a record has validators of its own, in each coding', async () => {
  const { port } = await served()
  const url = `http://127.0.0.1:${port}/osv/v1/vulns/ROOT-1`
  const upstream = await fetch(`http://127.0.0.1:${port}/external/osv/ROOT-1.json`)
  expect(await upstream.text()).toBe(DEBIAN.text)
  const plain = await fetch(url, { headers: { 'accept-encoding': 'identity' } })
  const zipped = await fetch(url, { headers: { 'accept-encoding': 'gzip' } })
  const text = await plain.text()
  expect(zipped.headers.get('content-encoding')).toBe('gzip')
  expect(await zipped.text()).toBe(text)
  const tags = [upstream, plain, zipped].map(({ headers }) => headers.get('etag'))
  expect(new Set(tags).size).toBe(3)
  const again = await fetch(url, { headers: { 'accept-encoding': 'gzip', 'if-none-match': tags[2] ?? '' } })
  expect(again.status).toBe(304)
  const head = await fetch(url, { method: 'HEAD', headers: { 'accept-encoding': 'identity' } })
  expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(text)))
})
