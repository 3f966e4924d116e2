import { once } from 'node:events'
import { connect } from 'node:net'
import { beforeAll, expect, onTestFinished } from 'vitest'
import { loadQuick } from '../../support/limits.ts'
import { createMatcher } from '../../../src/features/match/matcher.ts'
import { matchRoute } from '../../../src/features/match/route.ts'
import { readInputSbom } from '../../../src/documents/sboms/read.ts'
import { openShortReads } from '../../../src/store/reads.ts'
import { makeOsvViews } from '../../../src/features/scanners/views/osv/views.ts'
import { type Served, servedToAll } from '../../server/served.ts'
import { heldRecord } from '../../server/scanners/served-osv.ts'
import { FILLED_AT } from '../../support/filled-store.ts'
import { longTest, test } from '../../support/tables.ts'

const RECORDS = [
  heldRecord('A-1', 'npm', 'a', '2.0.0'),
  heldRecord('A-2', 'npm', 'a', '1.0.0'),
  heldRecord('P-1', 'PyPI', 'some-name', '3.0'),
  heldRecord('D-12', 'Debian:12', 'openssl', '3.0.11-1'),
  heldRecord('D-13', 'Debian:13', 'openssl', '3.5.1-1'),
]
const open = servedToAll((store) => store.publishOsv(Object.fromEntries(RECORDS.map(({ id, text }) => [id, text]))), {
  plugins: [matchRoute],
})

let served: Served
const url = (path: string): string => `http://127.0.0.1:${served.port}${path}`
const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(url(path), {
    method: 'POST',
    headers,
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
const bom = (...purls: readonly string[]) => ({
  bomFormat: 'CycloneDX',
  specVersion: '1.6',
  components: purls.map((purl) => ({ name: purl, purl, 'bom-ref': purl })),
})
const PURLS = ['pkg:npm/a@0.9.0', 'pkg:npm/a@1.5.0', 'pkg:npm/b@1.0.0', 'pkg:pypi/Some.Name@2']

async function buildViews(): Promise<void> {
  const reads = openShortReads(served.dir)
  if (reads === null) throw new Error('no database')
  const pause = () => Promise.resolve()
  await makeOsvViews({ dataDir: served.dir, reads: reads.reads, vendors: [], pause })
  reads.close()
}

beforeAll(async () => {
  served = await open()
  const early = await post('/-/match', bom(...PURLS))
  expect([early.status, early.headers.get('retry-after')]).toEqual([503, '30'])
  await buildViews()
})

test('POST /-/match without a key has the findings of a batch of queries for the same purls', async () => {
  const headers = { 'content-type': 'application/vnd.cyclonedx+json' }
  const answer = await post('/-/match', bom(...PURLS), headers)
  const { findings, snapshot } = (await answer.json()) as {
    findings: { id: string; component: { purl: string } }[]
    snapshot: { id: string }
  }
  const batch = { queries: PURLS.map((purl) => ({ package: { purl } })) }
  const queried = await post('/osv/v1/querybatch', batch)
  const { results } = (await queried.json()) as { results: { vulns?: { id: string }[] }[] }
  const found = PURLS.map((purl) => findings.flatMap(({ id, component }) => (component.purl === purl ? [id] : [])))
  expect(found).toEqual(results.map(({ vulns = [] }) => vulns.map(({ id }) => id)))
  expect(found).toEqual([['A-1', 'A-2'], ['A-1'], [], ['P-1']])
  expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store'])
  for (const name of ['x-mirror-snapshot', 'x-mirror-as-of'])
    expect(answer.headers.get(name)).toBe(queried.headers.get(name))
  expect(snapshot.id).toBe(answer.headers.get('x-mirror-snapshot'))
})

test('POST /-/match takes the release of components that name none from distro=, and refuses one that is not known', async () => {
  const ask = async (query: string) => {
    const answer = await post(`/-/match${query}`, bom('pkg:deb/debian/libssl3@3.0.9-1?upstream=openssl'))
    return [answer.status, await answer.json()] as [number, Record<string, unknown>]
  }
  const [status, found] = await ask('?distro=debian-12.7')
  expect([status, found]).toEqual([
    200,
    expect.objectContaining({
      findings: [expect.objectContaining({ id: 'D-12', source: 'openssl' })],
      counts: expect.objectContaining({ allReleases: 0, binaryNameOnly: 0 }) as object,
    }),
  ])
  const [, all] = await ask('')
  expect(all).toMatchObject({
    findings: [{ id: 'D-12', component: { release: null, allReleases: true } }, { id: 'D-13' }],
    counts: { allReleases: 1 },
  })
  expect(await ask('?distro=nonesuch-1')).toEqual([
    400,
    expect.objectContaining({ message: expect.stringMatching(/distro=… names no release .* debian-12/) as string }),
  ])
  expect((await ask('?distro='))[0]).toBe(400)
})

test('VEX and patches are for clients with a key of the mirror, and a wrong key is refused', async () => {
  const ask = async (headers: Record<string, string>): Promise<unknown> => {
    const answer = await post('/-/match', bom(...PURLS), headers)
    return answer.ok ? await answer.json() : answer.status
  }
  const why = (vex: RegExp, patches = vex) => ({
    vex: { notApplied: expect.stringMatching(vex) as string },
    patches: { notApplied: expect.stringMatching(patches) as string },
  })
  expect(await ask({})).toMatchObject(why(/clients with a key/))
  expect(await ask({ ...served.own })).toMatchObject(why(/has no catalog/, /has no list of patches/))
  expect(await ask({ authorization: 'Bearer wrong' })).toBe(401)
})

test('VEX of a catalog that this mirror is to have is not there yet, with the reason', async () => {
  const env = {
    PATCHMIRROR_UPSTREAM_API_ROOT: 'https://api.invalid',
    PATCHMIRROR_UPSTREAM_API_KEY: 'key',
    PATCHMIRROR_DATA_DIR: served.dir,
  }
  const { config } = loadQuick({ env, cwd: served.dir })
  const reads = openShortReads(served.dir)
  if (reads === null) throw new Error('no database')
  const matcher = createMatcher(config, reads)
  onTestFinished(() => {
    matcher.close()
    reads.close()
  })
  const sbom = readInputSbom(Buffer.from(JSON.stringify(bom(...PURLS))))
  const request = { now: FILLED_AT, served: null, check: () => undefined, catalog: true }
  const { vex } = await matcher.match(sbom, request)
  expect(vex.notApplied).toMatch(/^the catalog is not mirrored yet: no sync .* has run yet/)
})

test('what is no SBOM, too large, encoded or not posted is refused with the reason', async () => {
  const refusals: [Promise<Response>, number, RegExp][] = [
    [post('/-/match', {}), 400, /accepted are CycloneDX 1\.2 to 1\.7/],
    [post('/-/match', '{"a":'), 400, /not valid JSON/],
    [post('/-/match', ''), 400, /it is empty/],
    [post('/-/match', bom(), { 'content-encoding': 'gzip' }), 415, /Content-Encoding/],
    [fetch(url('/-/match')), 405, /send an SBOM by POST/],
  ]
  for (const [asked, status, message] of refusals) {
    const answer = await asked
    expect(answer.status).toBe(status)
    expect(await answer.json()).toMatchObject({ message: expect.stringMatching(message) as string })
  }
  const large = await served.raw(`POST /-/match HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${17 * 2 ** 20}\r\n\r\n`)
  expect(large).toMatch(/^HTTP\/1\.1 413 [\s\S]*larger than 16 MiB/)
})

test('clients that announce bodies take no room from others', async () => {
  for (let count = 0; count < 10; count++) {
    const socket = connect(served.port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    const size = count % 2 === 0 ? 'Transfer-Encoding: chunked' : `Content-Length: ${15 * 2 ** 20}`
    socket.write(`POST /-/match HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n${size}\r\n\r\n`)
    const [seen] = (await once(socket, 'data')) as [Buffer]
    expect(String(seen)).toMatch(/^HTTP\/1\.1 100 /)
  }
  const answer = await post('/-/match', bom('pkg:npm/a@0.9.0'))
  expect([answer.status, (await answer.json()) as object]).toMatchObject([200, { counts: { findings: 2 } }])
})

longTest('what bodies and answers took is given back', async () => {
  const large = JSON.stringify(bom('pkg:npm/a@0.9.0')).padEnd(15 * 2 ** 20)
  for (let count = 0; count < 10; count++) {
    const answer = await post('/-/match', large)
    expect([answer.status, (await answer.json()) as object]).toMatchObject([200, { counts: { findings: 2 } }])
  }
})
