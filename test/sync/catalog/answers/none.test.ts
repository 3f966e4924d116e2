import { describe, expect } from 'vitest'
import { catalogBench } from '../../../support/catalog/mirror.ts'
import { compare } from '../../../support/catalog/compare.ts'
import { type Said, plainBench } from '../../../support/catalog/plain-service.ts'
import { bothTest, longTest, telling, test } from '../../../support/tables.ts'
import { countCatalog } from '../../../support/stored-counts.ts'

const DAY = 86_400_000
const SERVICE = { images: 2, tags: 4, packages: 4, tickets: 5, avrs: 0, subscriptions: 1 }
const ENV = { PATCHMIRROR_CATALOG_SCOPE: 'all' }
const NONE = { kind: 'status', status: 404 } as const

/** Noon of the day of a time. */
const noon = (time: number): number => Math.floor(time / DAY) * DAY + DAY / 2

test('an artifact published after its tag is found the next day', async () => {
  let now = Date.now()
  const made = await catalogBench(SERVICE, {
    env: ENV,
    now: () => now,
    sandbox: { now: () => now },
  })
  const [tag = ''] = made.sandbox.service.ids('tags')
  made.sandbox.faults.set(`/v1/tags/${tag}/vex`, NONE)
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect((await made.ask(`/v1/tags/${tag}/vex`)).status).toBe(404)
  made.sandbox.faults.clear()
  now += DAY
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  const { mirror, upstream } = await compare(made, `/v1/tags/${tag}/vex`)
  expect(mirror).toEqual(upstream)
})

test('a package catalog that answers nothing but 404 is not one that has nothing', async () => {
  const item = { id: 'p', ecosystem: 'npm', name: 'n', version: '1.0' }
  const made = await plainBench({
    '/v1/packages/': () => ({ body: [item] }),
    '/v1/packages/p/': () => ({ body: item }),
  })
  const at = '/packages/ecosystems/npm/packages/n/versions'
  for (const facts of [{ lacking: 3 }, { lacking: 3 }])
    expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts })
  const answer = await made.ask(at)
  expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('upstream.catalogUrl')])
  made.say({ [at]: () => ({ body: { versions: ['1.0'] } }) })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect([(await made.ask(at)).status, (await made.ask(`${at}/1.0/cves`)).status]).toEqual([200, 404])
})

longTest('a 204 is served as a 204, as old as the service’s last answer, and requested once a day', async () => {
  let now = noon(Date.now() - 10 * DAY) // what is none is asked for again on each day of UTC
  const made = await catalogBench(SERVICE, {
    env: ENV,
    now: () => now,
    sandbox: { now: () => now },
  })
  const [tag = ''] = made.sandbox.service.ids('tags')
  const path = `/v1/tags/${tag}/vex`
  made.sandbox.faults.set(path, { kind: 'status', status: 204 })
  const asked = (): number => made.sandbox.requests.count(path)
  for (const day of [0, 1]) {
    const start = now
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    now += DAY / 1000
    expect(await made.run('catalog')).toMatchObject({ state: 'complete', facts: { fetched: 0 } })
    const answer = await made.ask(path)
    const { headers, status } = answer
    expect([status, asked(), await answer.text()]).toEqual([204, day + 1, ''])
    expect(headers.get('x-mirror-snapshot')).toBe(made.store.snapshots.readSnapshot('catalog')?.id)
    expect(Math.abs(Date.parse(headers.get('x-mirror-as-of') ?? '') - start)).toBeLessThan(1000)
    now = start + DAY
  }
  made.sandbox.faults.clear()
  made.sandbox.faults.set(path, NONE)
  const before = made.store.snapshots.readSnapshot('catalog')?.id
  now += DAY
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect((await made.ask(path)).status).toBe(404)
  expect(made.store.snapshots.readSnapshot('catalog')?.id).not.toBe(before)
})

longTest('artifacts that all answer 404 at once are quarantined', async () => {
  const made = await catalogBench({ ...SERVICE, tags: 30 }, { env: ENV })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  const { documents } = countCatalog(made.dir)
  made.sandbox.faults.set('/v1/tags/*/sbom', NONE)
  for (const id of made.sandbox.service.ids('tags')) made.sandbox.service.change('tags', id)
  expect(await made.run('catalog')).toMatchObject({ state: 'partial' })
  const refused = await made.run('catalog')
  expect(refused).toMatchObject({ state: 'quarantined' })
  expect(refused.message).toContain('artifacts')
  expect(countCatalog(made.dir).documents).toBeGreaterThanOrEqual(documents)
  made.sandbox.faults.clear()
  expect(await made.run('catalog', { full: true })).toMatchObject({ state: 'complete' })
  const [tag = ''] = made.sandbox.service.ids('tags')
  expect((await made.ask(`/v1/tags/${tag}/sbom`)).status).toBe(200)
})

longTest('a release is found by the package’s own name, not by that of its source', async () => {
  const made = await catalogBench(SERVICE, { env: ENV })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  const { service } = made.sandbox
  for (const id of service.ids('packages')) {
    const { ecosystem, src_name: source, name } = service.read('packages', id)
    if (source === name) continue
    const path = `/packages/ecosystems/${String(ecosystem)}/packages/${String(source)}/versions`
    expect((await made.ask(path)).status).toBe((await made.askUpstream(path)).status)
  }
})

describe('an artifact that answers 404', () => {
  const VEX = { '@context': 'https://openvex.dev/ns/v0.2.0', '@id': 'https://x/1', statements: [] }
  const HTML = {
    status: 404,
    headers: { 'content-type': 'text/html' },
    body: '<html><body>404 Not Found</body></html>',
  }

  /** A mirror of a tag whose VEX answers something else after the first sync, when the tag changed. */
  async function turned(said: Said, none: Said | null = null) {
    let n = 0
    const made = await plainBench({
      '/v1/tags/': () => ({ body: { data: ['a', 'b', 'c'].map((id) => ({ id, n })), cursor: { after: null } } }),
      ...Object.fromEntries(['a', 'b', 'c'].map((id) => [`/v1/tags/${id}`, () => ({ body: { id } })])),
      '/v1/tags/a/vex': () => ({ body: VEX }),
    })
    if (none !== null) made.sayOthers(none)
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    n++
    made.say({
      '/v1/tags/a/vex': () => said,
      '/v1/tags/a/vex/': () => ({ status: 404, body: { message: 'there is none' } }),
    })
    const report = await made.run('catalog')
    return { ...made, report, status: (await made.ask('/v1/tags/a/vex')).status }
  }

  test.each<[string, Said]>([
    ['a page of HTML', HTML],
    ['a text', { status: 404, headers: { 'content-type': 'text/plain' }, body: 'default backend - 404' }],
    ['nothing, and asks to wait', { status: 404, headers: { 'retry-after': '60' } }],
    ['that it is not ready', { status: 404, body: { message: 'the VEX is being generated' } }],
    ['a redirect to what is not there', { status: 302, headers: { location: '/elsewhere' } }],
  ])('with %s, where others answer it with JSON, stays as it is stored', async (_, said) => {
    const { report, status } = await turned(said)
    expect(report).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
    expect(status).toBe(200)
  })

  test.each<[string, Said, Said | null]>([
    ['JSON', { status: 404, body: { message: 'there is none' } }, null],
    ['a page of HTML, as others do', HTML, HTML],
    ['JSON after a slash was added', { status: 308, headers: { location: '/v1/tags/a/vex/' } }, null],
  ])('with %s is none once a second run found the same, and no refresh between them', async (_, said, none) => {
    const { report, status, ...made } = await turned(said, none)
    const untold = {
      state: 'partial',
      facts: { lackingIds: [expect.stringContaining('the next sync finds the same')] },
    }
    expect([report, status]).toMatchObject([untold, 200])
    expect(await made.run('catalog', { kind: 'refresh' })).toMatchObject({ state: 'partial' })
    expect((await made.ask('/v1/tags/a/vex')).status).toBe(200)
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect((await made.ask('/v1/tags/a/vex')).status).toBe(404)
  })

  const GATEWAY = { status: 404, body: { error: 'no route' } }
  const PROXIES: [string, Said, 'one' | 'all', string][] = [
    ['a page of HTML', HTML, 'one', 'partial'],
    ['a page of HTML', HTML, 'all', 'partial'],
    ['JSON of other members', GATEWAY, 'all', 'partial'],
    ['JSON as the service', { status: 404, body: { message: 'no route' } }, 'one', 'partial'],
    ['JSON as the service', { status: 404, body: { message: 'no route' } }, 'all', 'quarantined'],
    ['204', { status: 204 }, 'one', 'partial'],
    ['204', { status: 204 }, 'all', 'quarantined'],
  ]
  bothTest.each(telling(PROXIES, 'JSON of other members', 'JSON as the service'))(
    'with all others of its kind, %s, stays as it is stored: %j, when %s tags changed',
    async (_what, said, changed, state) => {
      const ids = ['a', 'b', 'c', 'd']
      let n = 0
      const list = () => ids.map((id, at) => ({ id, n: changed === 'all' || at === 0 ? n : 0 }))
      const vex = (id: string): Said => (n > 0 ? said : { body: { ...VEX, '@id': id } })
      const made = await plainBench({
        '/v1/tags/': () => ({ body: { data: list(), cursor: { after: null } } }),
        ...Object.fromEntries(ids.map((id) => [`/v1/tags/${id}`, () => ({ body: { id } })])),
        ...Object.fromEntries(ids.slice(1).map((id) => [`/v1/tags/${id}/vex`, () => vex(id)])),
        '/v1/tags/a/vex': () => vex('a'),
      })
      expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
      n++
      expect(await made.run('catalog')).toMatchObject({ state: 'partial' })
      expect(await made.run('catalog')).toMatchObject({ state })
      for (const id of ids) expect([id, (await made.ask(`/v1/tags/${id}/vex`)).status]).toEqual([id, 200])
    },
  )

  test('one of two is none while the other is there', async () => {
    let n = 0
    const made = await plainBench({
      '/v1/tags/': () => ({ body: { data: ['a', 'b'].map((id) => ({ id, n })), cursor: { after: null } } }),
      ...Object.fromEntries(['a', 'b'].map((id) => [`/v1/tags/${id}`, () => ({ body: { id } })])),
      '/v1/tags/a/vex': () => (n > 0 ? { status: 204 } : { body: VEX }),
      '/v1/tags/b/vex': () => ({ body: VEX }),
    })
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    n++
    expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
    expect((await made.ask('/v1/tags/a/vex')).status).toBe(200)
    const message = '0 lists changed, 1 answer fetched, 1 artifact (404, 204 or empty) removed'
    const report = await made.run('catalog')
    expect(report).toMatchObject({ state: 'complete', message: expect.stringContaining(message) as string })
    expect((await made.ask('/v1/tags/a/vex')).status).toBe(204)
  })

  test('with a page of HTML is not known to be none where no other of its kind was ever there', async () => {
    const made = await plainBench({
      '/v1/tags/': () => ({ body: { data: [{ id: 'a' }], cursor: { after: null } } }),
      '/v1/tags/a': () => ({ body: { id: 'a' } }),
      '/v1/tags/a/vex': () => HTML,
    })
    expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
  })
})
