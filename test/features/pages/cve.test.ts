import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect } from 'vitest'
import { createWeb } from '../../../src/features/pages/web.ts'
import { createTagNames } from '../../../src/features/lookup/reads/tag-names.ts'
import { makeOsvViews } from '../../../src/features/scanners/views/osv/views.ts'
import { openShortReads } from '../../../src/store/reads.ts'
import { closeAll, serve } from '../../server/served.ts'
import { type CatalogBench, catalogBench, filledCatalogBench } from '../../support/catalog/mirror.ts'
import { longTest, test } from '../../support/tables.ts'

const SERVICE = { images: 3, tags: 4, packages: 3, tickets: 30 }
const mirrored = (): Promise<CatalogBench> => filledCatalogBench(SERVICE, { PATCHMIRROR_CATALOG_SCOPE: 'all' })
afterEach(closeAll)

/** The text of a page, without its markup. */
const textOf = (html: string): string =>
  html
    .replace(/<style[^]*?<\/style>/g, '')
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ')

interface Patch {
  readonly cve_id: string
  readonly package_src_name: string
}

async function patchesOf({ ask }: CatalogBench): Promise<Patch[]> {
  const listed = (await (await ask('/v1/patches?limit=100')).json()) as Record<string, unknown>
  return Object.values(listed).find((one) => Array.isArray(one)) as Patch[]
}

longTest('every CVE of the page of patches has a page with its tickets', async () => {
  const mirror = await mirrored()
  const listed = await (await mirror.ask('/-/ui/patches')).text()
  const links = [...listed.matchAll(/href="([^"]*\/-\/ui\/cve\?id=[^"]+)"/g)].map(([, href = '']) => href)
  expect(links.length).toBeGreaterThan(20)
  const patches = await patchesOf(mirror)
  for (const link of links.slice(0, 8)) {
    const answer = await mirror.ask(link)
    const text = textOf(await answer.text())
    const cve = decodeURIComponent(link.split('id=')[1] ?? '')
    const own = patches.filter(({ cve_id }) => cve_id === cve)
    expect([answer.status, text]).toEqual([200, expect.stringContaining(`${own.length} patch`)])
    for (const { package_src_name: name } of own) expect(text).toContain(name)
    const lower = await mirror.ask(link.replace(cve, cve.toLowerCase()))
    expect(textOf(await lower.text())).toBe(text)
  }
})

longTest('a page shows the statements of VEX about the vulnerability, and of how many documents', async () => {
  const mirror = await mirrored()
  const reads = openShortReads(mirror.dir) ?? expect.fail('no database')
  const documents = reads.reads.vex.listVexDocuments()
  const content = reads.reads.vex.readVexContent(documents[0] ?? expect.fail('no VEX'))?.toString() ?? ''
  const name = createTagNames(reads.reads)(documents[0]?.tags?.[0] ?? '')
  reads.close()
  const [id = ''] = /\bCVE-\d{4}-\d+\b/.exec(content) ?? []
  const text = textOf(await (await mirror.ask(`/-/ui/cve?id=${id.toLowerCase()}`)).text())
  expect(text).toContain(`${documents.length} mirrored VEX documents were looked at`)
  expect(text).not.toContain('no statement of these documents')
  expect([name, text.includes(` ${name} `)]).toEqual([expect.stringMatching(/^\S+:\S+$/), true])
  expect(text).toMatch(/not affected|fixed|affected|under investigation/)
})

/** The page of a CVE on a mirror that enforces signatures, of which the service has none. */
async function unsignedPage(isMirroredBefore: boolean): Promise<string> {
  const service = { images: 1, tags: 2, packages: 0, tickets: 3, avrs: 0 }
  const mirror = await catalogBench(service, { env: { PATCHMIRROR_CATALOG_SCOPE: 'all' } })
  const file = join(mirror.dir, 'trusted.pem')
  writeFileSync(file, mirror.sandbox.service.publicKey())
  if (isMirroredBefore) await mirror.run('catalog')
  await mirror.runWith({ PATCHMIRROR_CATALOG_TRUST_ROOT: file, PATCHMIRROR_CATALOG_SIGNATURES: 'enforce' }, 'catalog')
  return textOf(await (await mirror.ask('/-/ui/cve?id=CVE-2026-1234')).text())
}

longTest('a page names the VEX that could not be fetched, and the rulings that are left out', async () => {
  expect(await unsignedPage(true)).toMatch(
    /What 2 documents rule out is left out, because no signature of that is verified/,
  )
  expect(await unsignedPage(false)).toMatch(
    /0 mirrored VEX documents were looked at. The catalog is partial: VEX that could/,
  )
})

longTest(
  'what is not there is not said to be nowhere: nothing is judged, no index of ids is made, a key is missing',
  async () => {
    const mirror = await mirrored()
    const unknown = textOf(await (await mirror.ask('/-/ui/cve?id=CVE-1999-00001')).text())
    expect(unknown).toContain('none is known here')
    expect(unknown).toContain('No patch of the mirrored list names it.')
    expect(unknown).toContain('No OSV records are mirrored yet')
    const open = textOf(await (await mirror.askOpen('/-/ui/cve?id=CVE-1999-00001')).text())
    expect(open).toContain('shown to clients with a local key')
    expect(open).not.toContain('No patch')
    expect((await mirror.askOpen('/-/ui/cve')).status).toBe(400)
  },
)

longTest('records are found by their own id and by another id of theirs', async () => {
  const record = (id: string, aliases: string[]) => JSON.stringify({ id, aliases, modified: '2026-01-01T00:00:00Z' })
  const served = await serve(
    (store) => {
      store.publishOsv({ 'GHSA-1': record('GHSA-1', ['CVE-2026-1000']), 'CVE-2026-1001': record('CVE-2026-1001', []) })
    },
    { people: (config) => createWeb({ config, version: '1' }) },
  )
  const page = async (id: string) =>
    textOf((await served.get(`/-/ui/cve?id=${id}`, { authorization: '' })).body.toString())
  expect(await page('CVE-2026-1000')).toContain('the index of ids is not there')
  expect(await page('CVE-2026-1000')).not.toContain('No record of this mirror')
  const reads = openShortReads(served.dir) ?? expect.fail('no database')
  await makeOsvViews({ dataDir: served.dir, reads: reads.reads, vendors: [], pause: () => Promise.resolve() })
  reads.close()
  expect(await page('CVE-2026-1000')).toMatch(/GHSA-1 .* other id/)
  expect(await page('cve-2026-1001')).toContain('CVE-2026-1001')
  expect(await page('CVE-2026-1002')).toContain('No record of this mirror has this id')
  const found = (await served.get('/-/ui/search?q=CVE-2026-1000', { authorization: '' })).body.toString()
  expect(found).toContain('/-/ui/cve?id=CVE-2026-1000')
})

test('a record that upstream removed is named on the page of its CVE', async () => {
  const record = (id: string, aliases: string[]) => JSON.stringify({ id, aliases, modified: '2026-01-01T00:00:00Z' })
  const served = await serve(
    (store) => {
      const kept = { 'GHSA-1': record('GHSA-1', ['CVE-2026-1000']) }
      store.publishOsv({ ...kept, 'GHSA-2': record('GHSA-2', ['CVE-2026-1000', 'CVE-2026-1001']) })
      store.publishOsv(kept)
    },
    { people: (config) => createWeb({ config, version: '1' }) },
  )
  for (const id of ['CVE-2026-1000', 'CVE-2026-1001']) {
    const text = textOf((await served.get(`/-/ui/cve?id=${id}`, { authorization: '' })).body.toString())
    expect(text).toMatch(/Upstream removed records about it GHSA-2 at 2[-\d]+ [\d:]+ UTC, as of the change log/)
  }
})

longTest('a record that upstream removed is found behind any number of others that it removed with it', async () => {
  const served = await serve(
    (store) => {
      const ids = [...Array.from({ length: 1_001 }, (_, at) => `A-${at}`), 'Z-1']
      const records = ids.map((id) => [id, JSON.stringify({ id, ...(id === 'Z-1' && { aliases: ['CVE-2026-1000'] }) })])
      store.publishOsv(Object.fromEntries(records) as Record<string, string>)
      store.publishOsv({ 'B-1': '{"id":"B-1"}' })
    },
    { people: (config) => createWeb({ config, version: '1' }) },
  )
  const text = textOf((await served.get('/-/ui/cve?id=CVE-2026-1000', { authorization: '' })).body.toString())
  expect(text).toContain('Upstream removed records about it Z-1 at 2')
})

longTest('the packages that the records of a CVE name, and what fixes them, are in its table', async () => {
  const affected = (ecosystem: string, ...fixed: string[]) => ({
    package: { ecosystem, name: 'curl' },
    ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, ...fixed.map((one) => ({ fixed: one }))] }],
  })
  const all = [affected('Debian:12', '7.88.1', '7.88.1'), ...[1, 2, 3, 4, 5].map((at) => affected(`Alpine:v3.${at}`))]
  const text = JSON.stringify({ id: 'CVE-2026-1001', modified: '2026-01-01T00:00:00Z', affected: all })
  const served = await serve((store) => void store.publishOsv({ 'CVE-2026-1001': text }), {
    people: (config) => createWeb({ config, version: '1' }),
  })
  const page = textOf((await served.get('/-/ui/cve?id=CVE-2026-1001', { authorization: '' })).body.toString())
  expect(page).toMatch(/curl \(Debian:12\): fixed in 7\.88\.1\s+curl \(Alpine:v3\.1\): no fix is named/)
  expect(page).toContain('and 1 more')
})

longTest(
  'the severity and the summary of a CVE are those of its records, and a withdrawn one does not count',
  async () => {
    const record = (id: string, more: object) => JSON.stringify({ id, modified: '2026-01-01T00:00:00Z', ...more })
    const aliases = ['CVE-2026-1000']
    const vector = 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H'
    const served = await serve(
      (store) => {
        store.publishOsv({
          'A-1': record('A-1', { aliases, database_specific: { severity: 'LOW' } }),
          'B-1': record('B-1', {
            aliases,
            severity: [{ type: 'CVSS_V3', score: vector }],
            summary: 'Reads <b>too far',
          }),
          'C-1': record('C-1', { aliases, summary: 'Another', withdrawn: '2026-01-02T00:00:00Z' }),
          'E-1': record('E-1', { aliases, summary: 'Too large', details: 'x'.repeat(2 ** 20) }),
          'D-1': record('D-1', { aliases: ['CVE-2026-1001'], withdrawn: '2026-01-02T00:00:00Z', summary: 'Gone' }),
        })
      },
      { people: (config) => createWeb({ config, version: '1' }) },
    )
    const reads = openShortReads(served.dir) ?? expect.fail('no database')
    await makeOsvViews({ dataDir: served.dir, reads: reads.reads, vendors: [], pause: () => Promise.resolve() })
    reads.close()
    const page = async (id: string) =>
      (await served.get(`/-/ui/cve?id=${id}`, { authorization: '' })).body.toString().replaceAll(/\s+/g, ' ')
    const html = await page('CVE-2026-1000')
    expect(textOf(html)).toMatch(/Severity critical by B-1 .*Summary Reads/i)
    expect(html).toContain('Reads &lt;b&gt;too far')
    expect(textOf(html)).toMatch(/A-1 low .*B-1 critical 9\.8 .*C-1 withdrawn Another .*E-1 not read/)
    expect(textOf(html)).toContain(
      '1 record too large or not readable as JSON: what is said of severity leaves them out',
    )
    expect(textOf(await page('CVE-2026-1001'))).not.toMatch(/In short/i)
  },
)
