import { describe, expect } from 'vitest'
import type { Fault } from '../../sandbox/faults/fault.ts'
import { catalogBench } from '../../support/catalog/mirror.ts'
import { type Said, plainBench } from '../../support/catalog/plain-service.ts'
import { bothTest, longTest, telling, test } from '../../support/tables.ts'
import { compare } from '../../support/catalog/compare.ts'
import { ALL, SBOM, SMALL, TAG, asked, bench, differences, lackingOf, mirrored } from './fixtures.ts'

describe('an item that answers 500', () => {
  longTest('is named, the others are mirrored, and the next run requests only it', async () => {
    const made = await catalogBench(SMALL, { env: ALL })
    const [tag = ''] = made.sandbox.service.ids('tags')
    made.sandbox.faults.set(`/v1/tags/${tag}`, { kind: 'status', status: 500 })
    const report = await made.run('catalog')
    expect(report).toMatchObject({ state: 'partial', code: null, facts: { lacking: 1 } })
    expect(lackingOf(report)[0]).toMatch(new RegExp(`^/v1/tags/${tag}: .*500`))
    expect((await made.ask(`/v1/tags/${tag}`)).status).toBe(503)
    made.sandbox.faults.clear()
    made.sandbox.requests.clear()
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(asked(made).filter((path) => TAG.test(path))).toEqual([`/v1/tags/${tag}`])
    expect(await differences(made)).toEqual([])
  })

  test('keeps its stored answer unchanged', async () => {
    const made = await mirrored()
    const [tag = ''] = made.sandbox.service.ids('tags')
    const before = await (await made.ask(`/v1/tags/${tag}`)).text()
    made.sandbox.service.change('tags', tag, { name: 'other' })
    made.sandbox.faults.set(`/v1/tags/${tag}`, { kind: 'html' })
    expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
    expect(await (await made.ask(`/v1/tags/${tag}`)).text()).toBe(before)
  })
})

test('what a run could not have is asked for by the next one, though its item is as before', async () => {
  const made = await mirrored()
  const [tag = ''] = made.sandbox.service.ids('tags')
  made.sandbox.faults.set(`/v1/tags/${tag}/vex`, { kind: 'status', status: 500 })
  expect(await made.run('catalog', { full: true })).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
  expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
  made.sandbox.faults.clear()
  expect(await made.run('catalog')).toMatchObject({ state: 'complete', facts: { fetched: 1 } })
})

longTest(
  'a 200 whose body is an error fails its list, item or document by name, and what is stored stays',
  async () => {
    const made = await mirrored()
    const [tag = ''] = made.sandbox.service.ids('tags')
    const paths = ['/v1/tags/', `/v1/tags/${tag}`, `/v1/tags/${tag}/sbom`, '/v1/packages/']
    // The link of a document says until when it is open, to the minute.
    const withoutLink = (text: string): string => text.replace(/[?][^"]*/, '')
    const textsOf = () => Promise.all(paths.map(async (path) => withoutLink(await (await made.ask(path)).text())))
    const before = await textsOf()
    const faultOf = (value: unknown): Fault => ({ kind: 'body', body: JSON.stringify(value) })
    const down = faultOf({ error: 'backend down' })
    made.sandbox.faults.set('/v1/tags/', faultOf({ data: null, errors: [{ id: 7, title: 'gone' }] }))
    made.sandbox.faults.set('/v1/packages/', faultOf({ data: [], status: 'error', message: 'late' }))
    made.sandbox.faults.set(`/v1/tags/${tag}`, down)
    made.sandbox.faults.set(`/v1/tags/${tag}/sbom`, down)
    const report = await made.run('catalog', { full: true })
    expect(report).toMatchObject({ state: 'partial', facts: { lacking: 4 } })
    const said = 'upstream answered 200 with an error'
    expect(lackingOf(report)).toEqual(
      expect.arrayContaining([
        `/v1/tags: /v1/tags/: ${said}: gone`,
        `/v1/packages: /v1/packages/: ${said}: late`,
        `/v1/tags/${tag}: ${said}: backend down`,
        `/v1/tags/${tag}/sbom: ${said}: backend down`,
      ]),
    )
    expect(await textsOf()).toEqual(before)
  },
)

describe('an item that is listed but answers 404', () => {
  longTest('and was never stored is served as a 404, and is named in every run until upstream has it', async () => {
    const made = await catalogBench(SMALL, { env: ALL })
    const [tag = ''] = made.sandbox.service.ids('tags')
    made.sandbox.faults.set(`/v1/tags/${tag}`, { kind: 'status', status: 404 })
    for (let i = 0; i < 3; i++) {
      made.sandbox.requests.clear()
      const report = await made.run('catalog')
      expect(report).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
      expect(lackingOf(report)).toEqual([`/v1/tags/${tag}: upstream lists it but answers 404`])
      if (i > 0) expect(asked(made).filter((path) => TAG.test(path))).toEqual([`/v1/tags/${tag}`])
    }
    const { mirror, upstream } = await compare(made, `/v1/tags/${tag}`)
    expect(mirror).toEqual(upstream)
    made.sandbox.faults.clear()
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(await differences(made)).toEqual([])
  })

  test('keeps its stored answer until the list removes it', async () => {
    const made = await mirrored()
    const [tag = ''] = made.sandbox.service.ids('tags')
    made.sandbox.service.change('tags', tag)
    made.sandbox.faults.set(`/v1/tags/${tag}`, { kind: 'status', status: 404 })
    for (let i = 0; i < 2; i++)
      expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { lacking: 1 } })
    expect((await made.ask(`/v1/tags/${tag}`)).status).toBe(200)
    made.sandbox.service.remove('tags', tag)
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect((await made.ask(`/v1/tags/${tag}`)).status).toBe(404)
  })
})

longTest('a 404 of an artifact or of a page of the package catalog does not make the run partial', async () => {
  const made = await catalogBench(SMALL, { env: ALL })
  made.sandbox.faults.set(SBOM, { kind: 'status', status: 404 })
  made.sandbox.faults.set(/\/cves$/, { kind: 'status', status: 404 })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  const [tag = ''] = made.sandbox.service.ids('tags')
  expect((await made.ask(`/v1/tags/${tag}/sbom`)).status).toBe(404)
  made.sandbox.requests.clear()
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(asked(made).filter((path) => SBOM.test(path))).toEqual([])
})

describe('an overloaded service', () => {
  longTest('with a short Retry-After delays all requests together', async () => {
    const made = await bench()
    const slow = { kind: 'status', status: 429, headers: { 'Retry-After': '1' } } as const
    const struck = made.sandbox.faults.set(/^\/v1\/tags\//, slow, { after: 3, times: 6 })
    const report = await made.run('catalog')
    expect(report).toMatchObject({ state: 'complete', code: null })
    expect(struck.hits()).toBe(6)
    expect(report.facts['retries']).toBe(6)
  })

  longTest('with a Retry-After beyond the ceiling gets no further request in this run', async () => {
    const made = await mirrored({ ...SMALL, tags: 16 })
    for (const id of made.sandbox.service.ids('tags')) made.sandbox.service.change('tags', id)
    const long = { kind: 'status', status: 429, headers: { 'Retry-After': '86400' } } as const
    const struck = made.sandbox.faults.set(TAG, long)
    const report = await made.run('catalog')
    expect(report).toMatchObject({ state: 'partial', code: null })
    expect(lackingOf(report)[0]).toMatch(/429, asked to wait 86400 s/)
    expect(struck.hits()).toBeLessThanOrEqual(8)
    made.sandbox.faults.clear()
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(await differences(made)).toEqual([])
  })

  test('that fails every request is not asked for every item', async () => {
    const env = { LIMIT_UPSTREAM_RETRIES: '0', PATCHMIRROR_UPSTREAM_CONCURRENCY: '4' }
    const made = await bench({ ...SMALL, tags: 26 }, { env })
    made.sandbox.faults.set(/^\/v1\/tags\/./, { kind: 'status', status: 500 })
    const report = await made.run('catalog')
    expect(report).toMatchObject({ state: 'partial' })
    const failed = made.sandbox.requests.entries.filter(({ status }) => status === 500)
    expect(failed.length).toBeLessThanOrEqual(2 * (10 + 2))
    expect(lackingOf(report).some((told) => told.includes('skipped after 10 consecutive failures'))).toBe(true)
    made.sandbox.faults.clear()
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  })
})

describe('item ids', () => {
  longTest('that are equal across kinds keep their answers apart', async () => {
    const made = await mirrored()
    const { service } = made.sandbox
    const [tag = ''] = service.ids('tags')
    expect(service.ids('packages')[0]).toBe(tag)
    expect(service.ids('avrs')[0]).toBe(tag)
    service.remove('tags', tag)
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect((await made.ask(`/v1/tags/${tag}`)).status).toBe(404)
    expect((await made.ask(`/v1/packages/${tag}/`)).status).toBe(200)
    expect((await made.ask(`/v1/avrs/${tag}/artifacts/sbom`)).status).toBe(404) // nothing names it any more
    expect(await differences(made)).toEqual([])
  })

  const odd = ['a|b', 'a/b', '50%', '%2F', 'ünï ✓ 修', 'a b+c', 'a?b#c', '..', '.', '-', '\ud800', '9007199254740993']
  bothTest.each(telling(odd, 'a/b', '..'))('such as %j are requested and served', async (id) => {
    const made = await catalogBench({ ...SMALL, tags: 0, images: 0, packages: 0 }, { env: ALL })
    const item = { id, name: 'x', repository: 'r', updated_at: 'now' }
    const body = JSON.stringify({ data: [item], cursor: { after: null } })
    const json = { kind: 'body', type: 'application/json' } as const
    made.sandbox.faults.set('/v1/tags/', { ...json, body })
    made.sandbox.faults.set(/\/(sbom|vex|provenance)$/, { kind: 'status', status: 404 })
    const detail = made.sandbox.faults.set(/^\/v1\/tags\/./, {
      ...json,
      body: JSON.stringify(item),
    })
    const report = await made.run('catalog')
    const unaddressable = id === '..' || id === '.'
    expect(report).toMatchObject({ state: unaddressable ? 'partial' : 'complete', code: null })
    expect(detail.hits()).toBe(unaddressable ? 0 : 1)
    if (unaddressable) return
    const path = `/v1/tags/${encodeURIComponent(id.toWellFormed())}`
    expect(asked(made).filter((one) => one.startsWith('/v1/tags/') && one !== '/v1/tags/')[0]).toBe(path)
    const answer = await made.ask(path)
    expect(answer.status).toBe(200)
    expect(await answer.text()).toBe(JSON.stringify(item))
  })

  test('that are numbers are texts in paths', async () => {
    const made = await mirrored()
    const [image = ''] = made.sandbox.service.ids('images')
    expect(made.sandbox.service.read('images', image)['id']).toBe(Number(image))
    const { mirror, upstream } = await compare(made, `/v1/images/${image}`)
    expect(mirror).toEqual(upstream)
  })
})

longTest('an artifact set that several tags name is fetched when one of them changes, and not otherwise', async () => {
  const made = await mirrored()
  const { service } = made.sandbox
  const [tag = '', other = ''] = service.ids('tags')
  const [avr = ''] = service.ids('avrs')
  const AVRS = new RegExp(`^/v1/avrs/${avr}/`)
  service.change('tags', other, { avr_id: avr })
  await made.run('catalog')
  for (let i = 0; i < 3; i++) {
    made.sandbox.requests.clear()
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(asked(made).filter((path) => AVRS.test(path))).toEqual([])
  }
  service.rotateArtifact('avr', avr, 'vex', { silent: true })
  service.change('tags', tag)
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(asked(made).filter((path) => AVRS.test(path))).toHaveLength(3)
  expect(await differences(made)).toEqual([])
})

longTest('a new version of a package is listed in the versions of its name, whichever package adds it', async () => {
  const made = await mirrored()
  const { service } = made.sandbox
  const [first = ''] = service.ids('packages')
  const { ecosystem, name } = service.read('packages', first)
  const added = service.addPackage()
  service.change('packages', added, { ecosystem, name, version: '99.9-new' })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(await differences(made)).toEqual([])
  const path = `/packages/ecosystems/${String(ecosystem)}/packages/${encodeURIComponent(String(name))}/versions`
  expect(await (await made.ask(path)).text()).toContain('99.9-new')
})

longTest('an older version is requested again when the versions of its name change its entry', async () => {
  const made = await catalogBench(SMALL, { env: { PATCHMIRROR_CATALOG_SCOPE: 'subscribed' } })
  await made.run('catalog')
  const { service } = made.sandbox
  for (const id of service.ids('packages')) service.rotateArtifact('package', id, 'patches')
  await made.run('catalog')
  const { id } = made.store.snapshots.readSnapshot('catalog') ?? { id: '' }
  expect(await made.run('catalog', { full: true })).toMatchObject({ snapshot: id })
})

longTest('an answer that several packages share is stored under one that is still mirrored', async () => {
  const made = await catalogBench(SMALL, { env: { PATCHMIRROR_CATALOG_SCOPE: 'subscribed' } })
  await made.run('catalog')
  const { service } = made.sandbox
  const [first = ''] = service.ids('packages') // another package has its name, and takes over the subscription
  const owners = (): string[] => [...made.store.catalog.eachStoredAnswer()].map(({ owner }) => owner)
  expect(owners()).toContain(`packages/${first}`)
  service.remove('packages', first)
  await made.run('catalog')
  expect(owners()).not.toContain(`packages/${first}`)
  expect(await differences(made)).toEqual([])
})

describe('a listed item that lost the field by which more is mirrored', () => {
  const SBOM_OF = (id: string): Said => ({ body: { bomFormat: 'CycloneDX', specVersion: '1.5', serialNumber: id } })
  const CVES = '/packages/ecosystems/npm/packages/p/versions/1.0.0/cves'

  /** A mirror of an image, a tag and a package, whose list entries are what `entries` says. */
  async function listed(entries: () => { image: object; tag: object; package: object }) {
    const list = (one: 'image' | 'tag' | 'package'): Said => ({
      body: { data: [entries()[one]], cursor: { after: null } },
    })
    return plainBench(
      {
        '/v1/subscriptions/': () => ({
          body: {
            data: [
              { id: 's', image_id: 'i' },
              { id: 'u', package_id: 'p' },
            ],
          },
        }),
        '/v1/subscriptions/s/': () => ({ body: { id: 's' } }),
        '/v1/subscriptions/u/': () => ({ body: { id: 'u' } }),
        '/v1/images/': () => list('image'),
        '/v1/images/i': () => ({ body: { id: 'i' } }),
        '/v1/images/python/tags': () => ({ body: { data: [{ id: 't', name: '1' }] } }),
        '/v1/tags/': () => list('tag'),
        '/v1/tags/t': () => ({ body: { id: 't' } }),
        '/v1/tags/t/sbom': () => SBOM_OF('t'),
        '/v1/packages/': () => list('package'),
        '/v1/packages/p/': () => ({ body: { id: 'p' } }),
        [CVES]: () => ({ body: ['CVE-2024-1'] }),
      },
      { PATCHMIRROR_CATALOG_SCOPE: 'subscribed' },
    )
  }

  const WHOLE = {
    image: { id: 'i', name: 'python' },
    tag: { id: 't', name: '1', image_id: 'i' },
    package: { id: 'p', name: 'p', ecosystem: 'npm', version: '1.0.0' },
  }
  const POORER: [string, object, string][] = [
    ['the image of a tag', { tag: { ...WHOLE.tag, image_id: null } }, '/v1/tags/t/sbom'],
    ['the repository of an image', { image: { id: 'i' } }, '/v1/images/python/tags'],
    ['the ecosystem of a package', { package: { ...WHOLE.package, ecosystem: undefined } }, CVES],
    ['the version of a package', { package: { ...WHOLE.package, version: '' } }, CVES],
  ]
  bothTest.each(telling(POORER, 'the image of a tag', 'the ecosystem of a package'))(
    'as %s, removes nothing until that is approved, and is as before when the field is there again',
    async (_, poorer, path) => {
      let entries = WHOLE
      const made = await listed(() => entries)
      const statusOf = async (): Promise<number> => (await made.ask(path)).status
      expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
      entries = { ...WHOLE, ...poorer }
      const refused = await made.run('catalog')
      expect([refused.state, await statusOf()]).toEqual(['quarantined', 200])
      expect(refused.message).toContain('1 item that is listed and does not name them any more')
      entries = WHOLE
      expect(await made.run('catalog')).toMatchObject({ state: 'complete', message: 'nothing changed' })
      entries = { ...WHOLE, ...poorer }
      const approved = made.store.quarantine.readQuarantine((await made.run('catalog')).id)
      if (approved === null) throw new Error('nothing is in quarantine')
      expect((await made.run('catalog', { kind: 'approve', approved })).state).not.toBe('quarantined')
      expect(await statusOf()).not.toBe(200)
    },
  )

  test('as its artifact sets, removes none of them until that is approved, also when a reconcile found it', async () => {
    const sbom = '/v1/avrs/set/artifacts/sbom'
    let n = 0
    let sets: object = { avr_id: 'set' }
    const made = await plainBench(
      {
        '/v1/packages/': () => ({ body: { data: [{ id: 'p', name: 'p', ecosystem: 'npm', version: '1.0.0', n }] } }),
        '/v1/packages/p/': () => ({ body: { id: 'p', ...sets } }),
        [sbom]: () => SBOM_OF('set'),
      },
      { PATCHMIRROR_UPSTREAM_CATALOG_URL: '' },
    )
    const statusOf = async (): Promise<number> => (await made.ask(sbom)).status
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    sets = {}
    expect(await made.run('catalog', { kind: 'reconcile', full: true })).toMatchObject({ facts: { contradicted: 1 } })
    const refused = await made.run('catalog')
    expect([refused.state, await statusOf()]).toEqual(['quarantined', 200])
    expect(refused.message).toContain('1 item that is listed and does not name them any more')
    sets = { avr_id: 'set' } // its list entry stays as it is
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    sets = {}
    n++
    const approved = made.store.quarantine.readQuarantine((await made.run('catalog')).id)
    if (approved === null) throw new Error('nothing is in quarantine')
    expect(await made.run('catalog', { kind: 'approve', approved })).toMatchObject({ state: 'complete' })
    expect(await statusOf()).toBe(404)
  })
})
