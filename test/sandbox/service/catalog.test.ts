import { beforeAll, describe, expect } from 'vitest'
import type { Sandbox } from '../server.ts'
import { SANDBOX_KEYS } from './credentials.ts'
import { sandboxes } from '../fixtures.ts'
import { type Json, ask, basic } from './asking.ts'
import { longTest, test } from '../../support/tables.ts'

const open = sandboxes()
let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await open({ service: { packages: 60 } })
})

interface Listed {
  id: string
  ecosystem: string
  name: string
  version: string
  arch: string
  cves: string[]
}

const packages = () =>
  sandbox.service.ids('packages').map((id) => sandbox.service.read('packages', id) as unknown as Listed)

const versionsPath = ({ ecosystem, name }: Listed) =>
  `/packages/ecosystems/${ecosystem}/packages/${encodeURIComponent(name)}/versions`

const versionPath = (one: Listed) => `${versionsPath(one)}/${encodeURIComponent(one.version)}`

describe('the package catalog', () => {
  test('has its own address and needs no credential', async () => {
    expect(sandbox.catalogUrl).not.toBe(sandbox.url)
    for (const one of packages()) {
      const { status, value } = await ask(sandbox.catalogUrl + versionsPath(one))
      expect([one.name, status]).toEqual([one.name, 200])
      expect(value).toMatchObject({ ecosystem: one.ecosystem, name: one.name })
      const versions = value['versions'] as { version: string; archs: string[] }[]
      expect(versions.find(({ version }) => version === one.version)?.archs).toContain(one.arch)
    }
  })

  longTest('returns the CVEs and the details of a version', async () => {
    for (const one of packages()) {
      const { value } = await ask(`${sandbox.catalogUrl}${versionPath(one)}/cves`)
      const cves = (value['cves'] as { cve_id: string }[]).map(({ cve_id }) => cve_id)
      expect(cves).toEqual(one.cves)
      const details = await ask(`${sandbox.catalogUrl}${versionPath(one)}/details`)
      expect(details.value).toMatchObject({ version: one.version, cves: one.cves })
    }
  })

  longTest('has the provenance of each machine a version was built for', async () => {
    for (const one of packages()) {
      const base = `${sandbox.catalogUrl}${versionPath(one)}/provenance`
      const { value } = await ask(`${base}/${one.arch}`)
      const { bytes } = await ask(String(value['provenance_file_url']))
      const [document] = sandbox.service.documents('package', one.id, 'provenance')
      expect(bytes.equals(document ?? Buffer.alloc(0))).toBe(true)
      expect((await ask(`${base}/riscv`)).status).toBe(404)
    }
  })

  test('accepts names with an unescaped slash', async () => {
    const scoped = packages().find(({ name }) => name.includes('/'))
    expect(scoped?.name).toMatch(/^@.+\/.+/)
    const path = decodeURIComponent(versionsPath(scoped as Listed)) // there is one
    expect((await ask(sandbox.catalogUrl + path)).status).toBe(200)
  })

  test('refuses other paths, ecosystems, packages, versions and methods', async () => {
    const [one] = packages() as [Listed, ...Listed[]]
    const wrong = [
      '/',
      '/v1/me',
      `${versionsPath(one)}/`,
      versionPath(one),
      `${versionsPath(one)}/none/cves`,
      versionsPath({ ...one, ecosystem: 'gentoo' }),
      versionsPath({ ...one, name: 'none' }),
    ]
    for (const path of wrong) {
      const { status, value } = await ask(sandbox.catalogUrl + path)
      expect([path, status, Object.keys(value)]).toEqual([path, 404, ['message']])
    }
    const posted = await ask(sandbox.catalogUrl + versionsPath(one), { method: 'POST', body: {} })
    expect(posted.status).toBe(405)
  })

  test('requires a credential when it is configured to', async () => {
    const closed = await open({ service: { catalogNeedsCredential: true } })
    const id = closed.service.ids('packages')[0] ?? ''
    const one = closed.service.read('packages', id) as unknown as Listed
    const url = closed.catalogUrl + versionsPath(one)
    expect((await ask(url)).status).toBe(401)
    expect((await ask(url, { headers: basic(SANDBOX_KEYS.readonly) })).status).toBe(200)
  })

  test('has the versions under other names in the other shape', async () => {
    const other = await open({ service: { shape: 'other' } })
    const id = other.service.ids('packages')[0] ?? ''
    const one = other.service.read('packages', id) as unknown as Listed
    const { value } = await ask(other.catalogUrl + versionsPath(one))
    expect(Object.keys(value)).toEqual(['package', 'results'])
    expect((value['results'] as Json[])[0]).toHaveProperty('version')
  })
})
