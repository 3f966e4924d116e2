import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { openReader } from '../../../src/store/database/open.ts'
import { createReads } from '../../../src/store/reads.ts'
import { makeOsvViews } from '../../../src/views/osv/views.ts'
import { openFilledStore } from '../../support/filled-store.ts'
import { heldRecord } from './served-osv.ts'
import { closeAll, serve } from '../served.ts'

afterEach(closeAll)

const DEBIAN = heldRecord('ROOT-1', 'Root:Debian:12', 'rootio-curl', '7.88.1-10.root.io.2')
const NPM = heldRecord('ROOT-2', 'Root:npm', '@rootio/semver', '4.2.1-root.io.1')
const PYPI = heldRecord('ROOT-3', 'Root:PyPI', 'Rootio_Flask', '2.0.0+root.io.1')

async function served(env: Record<string, string> = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-query-'))
  const store = openFilledStore(dir)
  store.publishOsv(Object.fromEntries([DEBIAN, NPM, PYPI].map(({ id, text }) => [id, text])))
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
  const curl = (ecosystem: string, version: string) =>
    query({ version, package: { ecosystem, name: 'rootio-curl' } })
  const entry = DEBIAN.text.slice(DEBIAN.text.indexOf('{', 1), DEBIAN.text.lastIndexOf('}', DEBIAN.text.lastIndexOf(']')) + 1) // prettier-ignore
  const derived = entry.replace('"Root:Debian:12"', '"Debian:12","purl":"pkg:deb/debian/rootio-curl"')
  const body = DEBIAN.text.replace(entry, `${entry},${derived}`)
  const view = `{"vulns":[${body}]}`
  for (const ecosystem of ['Root:Debian:12', 'Debian:12', 'Debian'])
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
  const { get } = await served({ PATCHMIRROR_VIEWS_QUERY: 'false' })
  expect((await get('/osv/v1/vulns/ROOT-1')).status).toBe(404)
  expect((await get('/osv/Debian/ROOT-1.json')).status).toBe(200)
})
