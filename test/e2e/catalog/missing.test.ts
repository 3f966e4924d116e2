import { describe, expect } from 'vitest'
import { type CatalogBench, catalogBench, catalogEnv, filledCatalogBench } from '../../support/catalog/mirror.ts'
import { plainBench } from '../../support/catalog/plain-service.ts'
import { bothTest, longTest, telling, test } from '../../support/tables.ts'
import { run } from '../../support/command.ts'
import { serveFolder } from '../../features/bundles/air-gap.ts'

/** Large enough that the subscriptions leave something of each list out. */
const SERVICE = { images: 6, tags: 18, packages: 12, tickets: 5, users: 3, subscriptions: 2 }
const SMALL = { images: 1, tags: 3, packages: 2, tickets: 2, users: 2, subscriptions: 1 }

const mirrored = (env: Record<string, string> = {}, service: typeof SERVICE = SMALL): Promise<CatalogBench> =>
  filledCatalogBench(service, env)

async function told(made: CatalogBench, path: string): Promise<Record<string, unknown>> {
  const answer = await made.ask(path)
  const body = (await answer.json()) as Record<string, unknown>
  return { path, status: answer.status, ...body }
}

/** A thing that is listed, of which nothing is held; of packages one whose name is in scope in no version. */
function beyond({ sandbox: { service }, store }: CatalogBench, kind: 'tags' | 'images' | 'packages') {
  const isHeld = (id: string): boolean => store.catalog.hasAnswers(`${kind}/${id}`)
  const nameOf = (id: string): unknown => service.read(kind, id)['name']
  const names = new Set(service.ids(kind).filter(isHeld).map(nameOf))
  const id = service.ids(kind).find((one) => !isHeld(one) && (kind !== 'packages' || !names.has(nameOf(one))))
  if (id === undefined) throw new Error(`everything of ${kind} is in scope`)
  return { id, item: service.read(kind, id) as Record<string, string> }
}

/** Nothing that was synced names it; the service may have it since. */
const UNKNOWN = { status: 404, error: 'not_mirrored' }
const LEFT_OUT = {
  status: 404,
  error: 'not_in_scope',
  setting: expect.stringContaining('catalog.scope') as string,
}

const LEFT_OUT_SET = { ...LEFT_OUT, setting: 'catalog.patterns' }

describe('the 404 of a missing item or document', () => {
  longTest('says that it is not mirrored when no list names it', async () => {
    const made = await mirrored()
    for (const path of [
      '/v1/tags/no-such',
      '/v1/tags/no-such/sbom',
      '/v1/images/tags/no-such/sbom',
      '/v1/images/no-such',
      '/v1/images/no/such/tags',
      '/v1/images/id/tags', // the name of a field is no repository
      '/v1/packages/no-such/',
      '/v1/packages/no-such/artifacts/patches',
      '/v1/subscriptions/no-such',
      '/packages/ecosystems/debian/packages/no-such/versions',
    ])
      expect(await told(made, path)).toMatchObject({ path, ...UNKNOWN })
  })

  longTest('names the setting when the service has it and catalog.scope excludes it', async () => {
    const made = await mirrored({}, SERVICE)
    const tag = beyond(made, 'tags')
    const image = beyond(made, 'images')
    const pkg = beyond(made, 'packages')
    const { ecosystem, name, version, arch } = pkg.item
    const release = `/packages/ecosystems/${ecosystem}/packages/${encodeURIComponent(name ?? '')}/versions`
    for (const path of [
      `/v1/tags/${tag.id}`,
      `/v1/tags/${tag.id}/vex`,
      `/v1/images/tags/${tag.id}/sbom`,
      `/v1/images/${image.id}`,
      `/v1/images/${image.item['repository']}/tags`,
      `/v1/packages/${pkg.id}`,
      `/v1/packages/${pkg.id}/artifacts/provenance`,
      release,
      `${release}/${encodeURIComponent(version ?? '')}/provenance/${arch}`,
    ]) {
      const answer = await told(made, path)
      expect(answer).toMatchObject({ path, ...LEFT_OUT })
      expect(answer['message']).toContain('was not asked for')
    }
    expect(await told(made, '/v1/avrs/some/artifacts/vex')).toMatchObject(LEFT_OUT_SET)
  })

  longTest('is a 503 that names the setting when that has changed since the last sync', async () => {
    const before = await mirrored({}, SERVICE)
    const tag = beyond(before, 'tags')
    const include = { PATCHMIRROR_CATALOG_PATTERNS: 'image:*' }
    const made = await catalogBench(SERVICE, { dir: before.dir, env: include })
    const paths = [`/v1/tags/${tag.id}`, `/v1/tags/${tag.id}/vex`, '/v1/avrs/some/artifacts/vex']
    for (const path of paths) {
      const answer = await told(made, path)
      expect(answer).toMatchObject({ path, status: 503, error: 'not_ready' })
      expect(answer['message']).toContain('run 1 used another catalog.patterns than this mirror has')
    }
    expect(await told(made, '/v1/tags/no-such')).toMatchObject(UNKNOWN)
    const shown = await run(
      ['show', tag.id],
      {
        ...catalogEnv(made.sandbox),
        PATCHMIRROR_UPSTREAM_API_ROOT: made.sandbox.url,
        PATCHMIRROR_DATA_DIR: made.dir,
        ...include,
      },
      '/',
    )
    expect(shown.out).toMatch(/^vex +not fetched yet(?: +-)+$/m)
    expect(shown.out).toMatch(/^.*vex.*: .*another catalog.patterns than this mirror has/m)
    const narrower = await catalogBench(SERVICE, {
      dir: before.dir,
      env: { ...include, PATCHMIRROR_CATALOG_PERSONAL_DATA: 'apiKeys', PATCHMIRROR_CATALOG_PATTERNS: '' },
    })
    expect(await told(narrower, `/v1/tags/${tag.id}`)).toMatchObject(LEFT_OUT) // API keys bring no tag
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect((await made.ask(`/v1/tags/${tag.id}/vex`)).status).toBe(200)
    const [, , unnamed = ''] = paths
    expect(await told(made, unnamed)).toMatchObject(LEFT_OUT_SET)
  })

  test('names the mirror whose settings decide, where everything comes from bundles', async () => {
    const made = await mirrored({}, SERVICE)
    const tag = beyond(made, 'tags')
    const upstream = { ...made.config.upstream, apiRoot: null }
    const get = await serveFolder(made.dir, { ...made.config, upstream })
    const message = async (path: string): Promise<string> => (await get(path)).body.toString()
    const left = await message(`/v1/tags/${tag.id}/vex`)
    expect(left).toContain('is not in the scope of the source mirror')
    expect(left).toContain('catalog.patterns on the source mirror')
    expect(await message('/v1/tags/no-such')).toContain('created since comes with a later sync')
    for (const role of ['reader', 'auto'] as const) {
      const fleet = { ...made.config.fleet, url: 'file:///store', role }
      const mirror = await serveFolder(made.dir, { ...made.config, fleet })
      const other = (await mirror(`/v1/tags/${tag.id}/vex`)).body.toString()
      expect(other).toContain('catalog.patterns on the mirror that writes the fleet’s store')
    }
  })

  longTest('is given for an artifact set that nothing names any more', async () => {
    const service = { images: 1, tags: 2, packages: 0, tickets: 0, avrs: 1 }
    const made = await catalogBench(service, { env: { PATCHMIRROR_CATALOG_SCOPE: 'all' } })
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    const path = `/v1/avrs/${made.sandbox.service.ids('avrs')[0] ?? ''}/artifacts/sbom`
    expect((await made.ask(path)).status).toBe(200)
    for (const tag of made.sandbox.service.ids('tags')) made.sandbox.service.remove('tags', tag)
    const { id } = await made.run('catalog')
    const approved = made.store.quarantine.readQuarantine(id)
    if (approved === null) throw new Error('the removal of all tags was not refused')
    expect(await made.run('catalog', { kind: 'approve', approved })).toMatchObject({ state: 'complete' })
    expect((await made.askUpstream(path)).status).toBe(200)
    const answer = await told(made, path)
    expect(answer).toMatchObject({ error: 'not_in_scope', setting: 'catalog.patterns' })
    expect(answer['message']).toContain('whether the service has it is not known here')
  })

  test('says that it is unknown when the list that would name it is incomplete', async () => {
    const made = await plainBench({
      '/v1/tags/': () => ({
        body: { data: [{ id: 't' }], cursor: { after: null, total_count: 3 } },
      }),
      '/v1/tags/t': () => ({ body: { id: 't' } }),
    })
    expect(await made.run('catalog')).toMatchObject({ state: 'partial' })
    const answer = await told(made, '/v1/tags/u')
    expect(answer).toMatchObject({ status: 503, error: 'not_ready' })
    expect(answer['message']).toContain('not known to be complete (upstream counts 3 items')
  })

  longTest('of the package catalog distinguishes an unknown version from an excluded package', async () => {
    const made = await mirrored({ PATCHMIRROR_CATALOG_SCOPE: 'all' })
    const [id = ''] = made.sandbox.service.ids('packages')
    const { ecosystem, name, version } = made.sandbox.service.read('packages', id)
    const at = `/packages/ecosystems/${String(ecosystem)}/packages/${encodeURIComponent(String(name))}/versions`
    expect((await made.ask(at)).status).toBe(200)
    expect(await told(made, `${at}/99.99/cves`)).toMatchObject(UNKNOWN)
    const odd = `${at}/${encodeURIComponent(String(version))}/provenance/m68k`
    expect(await told(made, odd)).toMatchObject(UNKNOWN)
  })

  longTest('names the setting that switches the surface off', async () => {
    const made = await mirrored({ PATCHMIRROR_UPSTREAM_CATALOG_URL: '' })
    const off = (setting: string) => ({ status: 404, error: 'not_in_scope', setting })
    for (const path of ['/v1/api_keys/', '/v1/api_keys/some'])
      expect(await told(made, path)).toMatchObject(off('catalog.personalData'))
    const users = await told(made, '/v1/users')
    expect(users).toMatchObject({
      status: 404,
      error: 'not_in_scope',
      error_description: expect.stringContaining('catalog.personalData') as string,
      status_code: 404,
    })
  })

  test('names the missing credential', async () => {
    const made = await catalogBench(SMALL, {}, () => ({}))
    for (const path of ['/v1/me', '/v1/patches', '/v1/tags/x/sbom', '/packages/ecosystems/a/packages/b/versions'])
      expect(await told(made, path)).toMatchObject({
        path,
        status: 404,
        error: 'not_in_scope',
        setting: 'upstream.apiKey',
      })
  })

  longTest('is a 503 before the first snapshot, and when the last run could not fetch it', async () => {
    const made = await catalogBench(SMALL, {
      env: { PATCHMIRROR_CATALOG_SCOPE: 'all', PATCHMIRROR_CATALOG_PERSONAL_DATA: 'users' },
    })
    for (const path of ['/v1/me', '/v1/patches?limit=5', '/v1/tags/x/sbom', '/v1/users']) {
      const answer = await made.ask(path)
      expect([path, answer.status, answer.headers.has('retry-after')]).toEqual([path, 503, true])
    }
    const [tag = '', other = ''] = made.sandbox.service.ids('tags')
    made.sandbox.faults.set(`/v1/tags/${tag}/vex`, { kind: 'status', status: 500 })
    made.sandbox.faults.set(`/v1/tags/${other}`, { kind: 'status', status: 500 })
    expect(await made.run('catalog')).toMatchObject({ state: 'partial' })
    for (const path of [`/v1/tags/${tag}/vex`, `/v1/tags/${other}`])
      expect(await told(made, path)).toMatchObject({ path, status: 503, error: 'not_ready' })
    expect((await made.ask(`/v1/tags/${tag}/sbom`)).status).toBe(200)
    expect(await told(made, '/v1/users')).toMatchObject({ error: 'not_ready', status_code: 503 })
    made.sandbox.faults.clear()
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect((await made.ask(`/v1/tags/${tag}/vex`)).status).toBe(200)
  })

  test('says that the service has the item and not the document', async () => {
    const made = await mirrored({ PATCHMIRROR_CATALOG_SCOPE: 'all' })
    expect((await told(made, '/v1/tags/newer'))['message']).not.toContain('has nothing')
    for (const id of made.sandbox.service.ids('tags').slice(0, 6)) {
      const path = `/v1/tags/${id}/provenance`
      const upstream = await made.askUpstream(path)
      const mirror = await made.ask(path)
      expect([path, mirror.status]).toEqual([path, upstream.status])
      if (mirror.status === 404)
        expect(await mirror.json()).toMatchObject({
          error: 'not_found',
          message: expect.stringContaining('the service has nothing') as string,
        })
    }
  })
})

describe('the versions and architectures of the package catalog', () => {
  const forms: readonly (readonly [string, unknown])[] = [
    ['a list of objects', { versions: [{ version: '9.9', archs: ['riscv64'] }] }],
    ['a map', { package: 'x', versions: { '9.9': { architectures: ['riscv64'] } } }],
    ['an array', [{ package_version: '9.9', arch: 'riscv64' }]],
    ['nested items', { data: { items: [{ packageVersion: '9.9', platform: { arch: 'riscv64' } }] } }],
  ]
  bothTest.each(telling(forms, 'nested items'))('are read from answers in the form of %s', async (_form, answer) => {
    const made = await catalogBench(SMALL, { env: { PATCHMIRROR_CATALOG_SCOPE: 'all' } })
    const [id = ''] = made.sandbox.service.ids('packages')
    const { ecosystem, name, version } = made.sandbox.service.read('packages', id)
    const at = `/packages/ecosystems/${String(ecosystem)}/packages/${encodeURIComponent(String(name))}/versions`
    const own = `${at}/${encodeURIComponent(String(version))}`
    const body = (value: unknown) => ({ kind: 'body', body: JSON.stringify(value) }) as const
    made.sandbox.faults.set(at, body(answer))
    made.sandbox.faults.set(`${at}/9.9/cves`, body({ cves: [] }))
    made.sandbox.faults.set(`${at}/9.9/details`, body({ platforms: [{ arch: 's390x' }] }))
    made.sandbox.faults.set(`${own}/details`, body({ archs: ['m68k'] }))
    expect(await made.run('catalog')).toMatchObject({ state: 'complete', code: null })
    expect((await made.ask(`${at}/9.9/cves`)).status).toBe(200)
    // Asked for and answered 404 by the service: only then the mirror says so.
    for (const path of [`${at}/9.9/provenance/riscv64`, `${at}/9.9/provenance/s390x`, `${own}/provenance/m68k`])
      expect(await told(made, path)).toMatchObject({
        path,
        status: 404,
        error: 'not_found',
        message: expect.stringContaining('the service has nothing') as string,
      })
    expect(await told(made, `${at}/9.9/provenance/vax`)).toMatchObject(UNKNOWN)
    const again = await made.run('catalog')
    expect([again.facts['fetched'], again.facts['removed']]).toEqual([0, 0])
    expect(await made.run('catalog', { kind: 'refresh' })).toMatchObject({ state: 'complete' })
    expect((await made.ask(`${at}/9.9/cves`)).status).toBe(200)
  })
})
