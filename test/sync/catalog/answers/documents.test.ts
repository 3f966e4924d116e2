import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished } from 'vitest'
import type { Fault } from '../../../sandbox/faults/fault.ts'
import { createDocumentStoreWriter } from '../../../../src/store/catalog/documents.ts'
import { openWriter } from '../../../../src/store/database/open.ts'
import { catalogBench } from '../../../support/catalog/mirror.ts'
import { compare } from '../../../support/catalog/compare.ts'
import type { Bench } from '../../../support/mirror.ts'
import { createOrigin } from '../../../support/origin.ts'
import { bothTest, LONG, longTest, telling, test } from '../../../support/tables.ts'
import { ALL, DOCUMENT, SBOM, SMALL, bench, lackingOf, mirrored } from '../fixtures.ts'
import { countCatalog } from '../../../support/stored-counts.ts'

/** One tag, one artifact answer at a time. */
const ONE = { images: 1, tags: 1, packages: 0, tickets: 0, avrs: 0, users: 1, subscriptions: 0 }

async function sbomFails(made: Bench): Promise<string> {
  const report = await made.run('catalog')
  expect(report).toMatchObject({ state: 'partial', code: null, facts: { lacking: 1 } })
  const [told = ''] = lackingOf(report)
  expect(told).toMatch(/\/sbom: /)
  return told
}

describe('a URL that must not be followed', () => {
  const PUBLIC_ONLY = { ...ALL, PATCHMIRROR_NETWORK_TRUSTED: ',' }
  const never: [string, RegExp][] = [
    ['https://169.254.169.254/latest/meta-data/', /169\.254\.169\.254 is a private address/],
    ['https://[::ffff:169.254.169.254]/', /private address/],
    ['https://[fd00::1]/x', /private address/],
    ['https://[::127.0.0.1]/x', /private address/],
    ['https://2130706433/x', /127\.0\.0\.1 is a private address/],
    ['https://0x7f.1/x', /127\.0\.0\.1 is a private address/],
    ['https://localhost/x', /localhost is at .*, a private address/],
    ['http://203.0.114.1/sbom.json', /not an https URL/],
    ['file:///etc/passwd', /not an https URL \(file:\)/],
    ['file:/etc/passwd', /not an https URL \(file:\)/],
    ['ftp://example.com/x', /not an https URL \(ftp:\)/],
    ['data:application/json,{}', /not an https URL \(data:\)/],
    ['https://user:pass@example.com/x', /contains a credential/],
    ['https://:pass@example.com/x', /contains a credential/],
    ['https://', /not a URL/],
  ]
  const FEW = telling(
    never,
    ...['https://169.254.169.254/latest/meta-data/', 'https://[::ffff:169.254.169.254]/'],
    ...['https://localhost/x', 'http://203.0.114.1/sbom.json'],
    ...['file:///etc/passwd', 'https://user:pass@example.com/x'],
  )
  bothTest.each(FEW)('%s', async (url, why) => {
    const made = await bench(ONE, { env: PUBLIC_ONLY })
    made.sandbox.faults.set(/\/(vex|provenance)$/, { kind: 'status', status: 404 })
    made.sandbox.faults.set(SBOM, { kind: 'artifactUrl', url })
    const told = await sbomFails(made)
    expect(told).toMatch(why)
    expect(told).not.toContain('pass@')
    expect(countCatalog(made.dir).documents).toBe(0)
  })

  const SOME = ['file:///etc/passwd', 'ftp://127.0.0.1/x', 'http://user@127.0.0.1/x']
  bothTest.each(telling(SOME, 'file:///etc/passwd', 'http://user@127.0.0.1/x'))(
    '%s, also where private addresses are allowed',
    async (url) => {
      const made = await bench(ONE)
      made.sandbox.faults.set(SBOM, { kind: 'artifactUrl', url })
      expect(await sbomFails(made)).toMatch(/is not fetched/)
    },
  )

  test('because it leads in a circle', async () => {
    const made = await bench(ONE)
    made.sandbox.faults.set(SBOM, { kind: 'artifactUrl', url: `${made.sandbox.artifactUrl}/loop` })
    expect(await sbomFails(made)).toContain('too many redirects')
    expect(made.sandbox.requests.count('/loop')).toBeLessThanOrEqual(6)
  })

  test.each([
    ['file:///etc/passwd', /not an https URL \(file:\)/],
    ['http://user:pass@127.0.0.1/', /contains a credential/],
    ['http://[', /not a URL/],
  ])('because it redirects to %s', async (location, why) => {
    const made = await bench(ONE)
    made.sandbox.faults.set(/^\/artifacts\/sbom/, { kind: 'redirect', location })
    expect(await sbomFails(made)).toMatch(why)
  })

  test('is reported by its host only, because the rest may contain a signature', async () => {
    const made = await bench(ONE)
    made.sandbox.faults.set(/^\/artifacts\/sbom/, { kind: 'status', status: 500 })
    const told = await sbomFails(made)
    expect(told).toContain('the document at 127.0.0.1')
    expect(told).not.toMatch(/X-Signature|sbom-0/)
  })
})

test('a redirect within what is allowed is followed, without any credential', async () => {
  const made = await bench(ONE)
  const [tag = ''] = made.sandbox.service.ids('tags')
  const [bytes = Buffer.alloc(0)] = made.sandbox.service.documents('tag', tag, 'sbom')
  const origin = await createOrigin((_request, response) => response.end(bytes))
  const location = `${origin.url}/elsewhere`
  made.sandbox.faults.set(/^\/artifacts\/sbom/, { kind: 'redirect', location, status: 307 })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(origin.requests.map(({ url }) => url)).toEqual(['/elsewhere'])
  expect(origin.requests[0]?.headers.authorization).toBeUndefined()
})

describe('a document of which the response does not show the end', () => {
  const SPDX = 'SPDXVersion: SPDX-2.3\nSPDXID: SPDXRef-DOCUMENT\nPackageName: curl\nPackageVers'
  const closed = (body: string): string => `HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${body}`
  const chunked = (body: string): string =>
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`

  test.each([
    ['is refused where it does not show it itself', closed(SPDX), 'partial'],
    ['is stored where it does', closed('{"bomFormat":"CycloneDX","specVersion":"1.6"}'), 'complete'],
    ['is stored where its chunks do', chunked(SPDX), 'complete'],
  ])('%s', async (_, answer, state) => {
    const made = await bench(ONE)
    const origin = await createOrigin((_request, { socket }) => void socket?.end(answer))
    made.sandbox.faults.set(/^\/artifacts\/sbom/, { kind: 'redirect', location: `${origin.url}/sbom` })
    const report = await made.run('catalog')
    expect([report.state, lackingOf(report).join()]).toEqual([
      state,
      state === 'complete' ? '' : (expect.stringContaining('it may be cut off') as unknown),
    ])
  })
})

describe('an invalid document', () => {
  const ways: [string, Fault, RegExp][] = [
    ['a page of HTML', { kind: 'html' }, /an HTML page/],
    ['empty', { kind: 'empty' }, /the document is empty/],
    ['cut short', { kind: 'body', body: '{"bomFormat":"CycloneDX","components":[' }, /it is not a CycloneDX/],
    ['of another kind', { kind: 'body', body: '{"@context":"https://openvex.dev/ns"}' }, /it is not a CycloneDX/],
    ['random bytes', { kind: 'garbage' }, /it is not a CycloneDX/],
    ['one that breaks off', { kind: 'truncate' }, /broke off|bytes arrived/],
    ['one that is reset', { kind: 'reset', bytes: 100 }, /broke off/],
    ['shorter than it says', { kind: 'wrongLength', by: 5 }, /broke off|bytes arrived/],
    ['encoded, and no document', { kind: 'gzipBomb', bytes: 1_000_000 }, /it is not a CycloneDX/],
    ['one that stalls', { kind: 'stall' }, /within|timeout|Timeout/i],
  ]
  const FEW = telling(ways, ...['a page of HTML', 'one that breaks off'])
  bothTest.each(FEW)('%s: is named and not stored, and the previous document is served', async (_how, fault, why) => {
    const made = await mirrored(ONE, { LIMIT_UPSTREAM_RETRIES: '0' }, { artifactTimeoutMs: 2000 })
    const [tag = ''] = made.sandbox.service.ids('tags')
    const path = `/v1/tags/${tag}/sbom`
    const before = await compare(made, path)
    const documents = countCatalog(made.dir).documents
    made.sandbox.service.rotateArtifact('tag', tag, 'sbom')
    made.sandbox.faults.set(/^\/artifacts\/sbom/, fault)
    expect(await sbomFails(made)).toMatch(why)
    expect(countCatalog(made.dir).documents).toBe(documents)
    made.sandbox.faults.clear()
    const link = ((await (await made.ask(path)).json()) as { sbom_file_url: string }).sbom_file_url
    expect((await fetch(link)).status).toBe(200)
    expect((await compare(made, path)).mirror).toEqual(before.mirror)
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    const after = await compare(made, path)
    expect(after.mirror).toEqual(after.upstream)
    expect(after.mirror).not.toEqual(before.mirror)
    expect(countCatalog(made.dir).documents).toBe(documents) // the one that it replaces is swept
  })
})

describe('a document of 2 GB', () => {
  bothTest.each(LONG ? [true, false] : [false])(
    'is refused at the cap when its length is declared: %s',
    async (declared) => {
      const made = await catalogBench(ONE, { env: ALL, limits: { artifactBytes: 4_000_000 } })
      made.sandbox.faults.set(/^\/artifacts\/sbom/, { kind: 'hugeDocument', declared })
      const before = process.memoryUsage().rss
      expect(await sbomFails(made)).toMatch(/the most that is mirrored is 4000000;/)
      expect(process.memoryUsage().rss - before).toBeLessThan(150_000_000)
      expect(statSync(join(made.dir, 'mirror.db')).size).toBeLessThan(2_000_000)
      const sent = made.sandbox.requests.entries.filter(({ path }) => DOCUMENT.test(path))
      expect(sent.filter(({ path }) => path.includes('sbom'))).toHaveLength(1)
    },
  )

  longTest('below the cap needs one chunk of memory and its size on disk', async () => {
    const made = await bench(ONE, { limits: { artifactBytes: 200_000_000 } })
    made.sandbox.faults.set(/^\/artifacts\/sbom/, { kind: 'hugeDocument', bytes: 80_000_000 })
    const before = process.memoryUsage().rss
    expect(await sbomFails(made)).toMatch(/it is not a CycloneDX/) // it never closes its brackets
    expect(process.memoryUsage().rss - before).toBeLessThan(150_000_000)
    expect(statSync(join(made.dir, 'mirror.db')).size).toBeLessThan(2_000_000)
  })
})

longTest('a document that is aborted leaves no rows, not even in the temporary tables', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-'))
  const db = openWriter(dir)
  onTestFinished(() => {
    db.close()
    rmSync(dir, { recursive: true })
  })
  const store = createDocumentStoreWriter(db)
  const count = db.prepare<[], number>('SELECT count(*) FROM temp.incoming_chunk').pluck()
  const sink = store.openDocument()
  if (sink.write(Buffer.alloc(5_000_000))) await sink.pack()
  sink.flush()
  expect(count.get()).toBe(4)
  sink.abort()
  expect(count.get()).toBe(0)
  for (const size of [0, 10, 3_000_000]) {
    const kept = store.openDocument()
    if (kept.write(Buffer.alloc(size, 'x'))) await kept.pack()
    kept.flush()
    expect(kept.end('text/plain', 1).size).toBe(size)
  }
  expect(count.get()).toBe(0)
})

longTest('a document that many tags share is stored once, and is removed with the last of them', async () => {
  const made = await mirrored({ ...SMALL, tags: 5 }) // the fourth tag shares its SBOM with the third, the fifth its VEX
  const { service } = made.sandbox
  const tags = service.ids('tags')
  const named = new Set(
    [
      ...tags.flatMap((id) =>
        ['sbom', 'vex', 'provenance'].flatMap((kind) => service.documents('tag', id, kind as 'sbom')),
      ),
    ].map(String),
  )
  const before = countCatalog(made.dir).documents
  expect(named.size).toBeLessThan(tags.length * 3)
  service.remove('tags', tags[3] ?? '')
  expect(await made.run('catalog')).toMatchObject({
    state: 'complete',
    facts: { documentsDropped: 1 },
  })
  expect(countCatalog(made.dir).documents).toBe(before - 1) // its provenance; the SBOM is still the third one's
  service.remove('tags', tags[2] ?? '')
  expect(await made.run('catalog')).toMatchObject({
    state: 'complete',
    facts: { documentsDropped: 3 },
  })
})
