import { expect, onTestFinished } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { readMirroredSboms, sbomDigestsOf } from '../../../src/documents/sboms/mirrored.ts'
import { nameOfTag } from '../../../src/features/lookup/reads/tag-names.ts'
import { readPurl } from '../../../src/base/identity/package.ts'
import { HOUR_MS } from '../../../src/base/time.ts'
import { openShortReads } from '../../../src/store/reads.ts'
import { createPageMaker } from '../../../src/features/pages/make-page.ts'
import { type CatalogBench, catalogBench } from '../../support/catalog/mirror.ts'

const SERVICE = { images: 2, tags: 4, packages: 0, tickets: 0 }

const JSON_TYPE = 'application/vnd.cyclonedx+json'
const UNREADABLE = '{"bomFormat":"CycloneDX","specVersion":"1.6","components":7}'

/** A mirror with two snapshots of the records, and of the catalog what `prepare` leaves of it. */
async function mirror(
  { env = {}, now }: { env?: Record<string, string>; now?: () => number } = {},
  prepare: (made: CatalogBench, tags: readonly string[]) => void = () => undefined,
) {
  const settings = { PATCHMIRROR_CATALOG_SCOPE: 'all', PATCHMIRROR_GUARD_LIMIT: 'removed=100% and 20', ...env }
  const made = await catalogBench(SERVICE, { env: settings, ...(now && { now }) })
  prepare(made, made.sandbox.service.ids('tags'))
  await made.run('catalog')
  await made.run('osv')
  const ask = async (query: string, isOpen = false) => {
    const path = `/-/changes?since=1&${query}`
    const answer = await (isOpen ? made.askOpen(path) : made.ask(path))
    return { answer, status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }
  return { made, ask, tags: made.sandbox.service.ids('tags') }
}

/** Publishes a new record about a package. */
async function publish(made: CatalogBench, id: string, ecosystem: string, name: string): Promise<void> {
  const modified = '2026-05-01T00:00:00Z'
  const affected = [{ package: { ecosystem, name }, ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }] }] }]
  made.sandbox.feed.put(id, JSON.stringify({ id, modified, affected }), modified)
  await made.run('osv')
}

/** A package that the SBOM of a tag lists, of an ecosystem that OSV records name. */
function packageOf({ store }: CatalogBench, tag: string) {
  const [digest = ''] = sbomDigestsOf(store, tag)
  const components = readMirroredSboms(store, digest, tag).flatMap((one) => one.components)
  const [found] = components.flatMap(({ purl }) => (purl === null ? [] : (readPurl(purl) ?? [])))
  if (found === undefined) throw new Error('the SBOM lists no package')
  return found
}

longTest('changes of a tag are those of the packages in its SBOM, by its id, its digest and its name', async () => {
  const {
    made,
    ask,
    tags: [tag = ''],
  } = await mirror()
  const { ecosystem, name } = packageOf(made, tag)
  await publish(made, 'T-1', ecosystem, name)
  await publish(made, 'T-2', ecosystem, 'no-tag-has-this')
  const item = made.sandbox.service.read('tags', tag)
  expect((await ask('detail=differences')).body['changes']).toHaveLength(2)
  const digest = Object.values(item).find((value) => /^sha256:/.test(String(value)))
  for (const named of [tag, String(digest), nameOfTag(item)]) {
    const { answer, status, body } = await ask(`tag=${encodeURIComponent(named)}`)
    expect([named, status]).toEqual([named, 200])
    expect(body).toMatchObject({
      changes: [{ id: 'T-1', change: 'added', words: expect.arrayContaining(['record added']) as string[] }],
      notJudged: 0,
      next: null,
      packages: { of: named, unknown: expect.any(Number) as number },
    })
    expect((body['packages'] as { packages: number }).packages).toBeGreaterThan(0)
    expect(body['note']).toBeUndefined()
    expect(answer.headers.get('cache-control')).toBe('no-store')
  }
  made.sandbox.faults.set(`/v1/tags/${tag}/sbom`, { kind: 'status', status: 500 })
  made.sandbox.service.change('tags', tag, { digest: `sha256:${'9'.repeat(64)}` })
  await made.run('catalog')
  expect((await ask(`tag=${tag}`)).body['note']).toMatch(/not fetched since the tag changed/)
})

longTest('the page and the feeds of changes show those of a tag, unless the catalog is too old', async () => {
  const {
    made,
    tags: [tag = ''],
  } = await mirror()
  const { ecosystem, name } = packageOf(made, tag)
  await publish(made, 'T-1', ecosystem, name)
  await publish(made, 'T-2', ecosystem, 'no-tag-has-this')
  const reads = openShortReads(made.dir)
  if (reads === null) throw new Error('no database')
  onTestFinished(() => reads.close())
  const show = (page: string, query: string, more: Partial<typeof made.config.catalog> = {}) => {
    const config = { ...made.config, catalog: { ...made.config.catalog, ...more } }
    const make = createPageMaker(
      { config, version: 'test', style: 's.css', script: 's.js', icon: 'i.svg' },
      () => reads,
    )
    const asked = { page, query, signedIn: true, status: null, now: Date.now() + 60_000, served: null }
    const shown = make({ ...asked, problem: null, base: '', origin: 'http://localhost' })
    return { status: shown.status, text: Buffer.from(shown.body).toString() }
  }
  for (const page of ['changes', 'changes.atom']) {
    const { status, text } = show(page, `since=1&tag=${tag}`)
    expect([page, status, text.includes('T-1'), text.includes('T-2')]).toEqual([page, 200, true, false])
    expect([page, text.includes(`tag=${tag}`)]).toEqual([page, true])
    // Without a date a log that is younger than a week is shown from its beginning.
    const begun = show(page, `tag=${tag}`)
    if (page === 'changes') expect(begun.text).toMatch(/Changes of \S+ since \d{4}-\d\d-\d\d \d\d:\d\d UTC/)
    expect([page, begun.status, begun.text.includes('T-1'), begun.text.includes('T-2')]).toEqual([
      page,
      200,
      true,
      false,
    ])
    expect([page, show(page, `tag=${tag}&purl=pkg:npm/a`).status]).toEqual([page, 400])
    const old = show(page, `tag=${tag}`, { maxAgeHours: 1e-9, staleAction: 'refuse' })
    expect([page, old.status, old.text]).toEqual([page, 503, expect.stringContaining('older than sync.maxAgeHours')])
  }
})

longTest('changes of a tag take a key, and without one nothing says whether the tag exists', async () => {
  const {
    made,
    ask,
    tags: [tag = ''],
  } = await mirror()
  const known = await ask(`tag=${tag}`, true)
  const unknown = await ask('tag=none', true)
  expect(known).toMatchObject({ status: 401, body: unknown.body })
  expect((await ask('ecosystem=npm', true)).status).toBe(200)
  expect((await ask('tag=none')).body).toMatchObject({ error: 'not_found', message: 'no mirrored tag is named none' })
  expect((await made.askOpen('/-/changes?since=2020-01-01&tag=nosuch')).status).toBe(401)
  const early = await made.ask('/-/changes?since=2020-01-01&tag=nosuch')
  expect([early.status, await early.json()]).toMatchObject([
    404,
    { error: 'not_found', message: 'no mirrored tag is named nosuch' },
  ])
  for (const [query, message] of [
    ['tag=', 'tag= is empty'],
    [`tag=${tag}&ecosystem=npm`, 'omit ecosystem and purl'],
    [`tag=${tag}&tag=${tag}`, 'tag'],
  ] as const) {
    const { status, body } = await ask(query)
    expect([status, body['message']]).toEqual([400, expect.stringContaining(message)])
  }
  expect((await ask(`tag=${'x'.repeat(5000)}`)).status).toBe(404)
})

test('a tag without a readable SBOM is an error that says why, never an empty list', async () => {
  const sbomOf = (tag: string): string => `/v1/tags/${tag}/sbom`
  const { ask, tags } = await mirror({}, ({ sandbox: { faults } }, [none = '', failed = '']) => {
    faults.set(sbomOf(none), { kind: 'status', status: 204, body: '' })
    faults.set(sbomOf(failed), { kind: 'status', status: 500 })
    faults.set(/^\/artifacts\/sbom-/, { kind: 'body', body: UNREADABLE, type: JSON_TYPE })
  })
  const [none = '', failed = '', other = ''] = tags
  for (const [tag, status, error, message] of [
    [none, 404, 'not_found', `no SBOM of ${none} is stored here: ${sbomOf(none)} answers why`],
    [failed, 503, 'not_ready', `no SBOM of ${failed} is stored here yet: ${sbomOf(failed)}`],
    [other, 503, 'not_ready', `of ${other}: the SBOM cannot be read: its components are no list`],
  ] as const) {
    const { body, ...answer } = await ask(`tag=${tag}`)
    const told = expect.stringContaining(message) as string
    expect({ status: answer.status, ...body }).toMatchObject({ status, error, message: told })
  }
})

longTest('changes of a tag are refused while the catalog is older than its settings allow', async () => {
  let now = Date.now()
  const env = { PATCHMIRROR_SERVER_STALE_ACTION: 'catalog=refuse', PATCHMIRROR_SYNC_MAX_AGE_HOURS: 'catalog=1' }
  const {
    ask,
    tags: [tag = ''],
  } = await mirror({ env, now: () => now })
  expect((await ask(`tag=${tag}`)).status).toBe(200)
  now += 2 * HOUR_MS
  expect(await ask(`tag=${tag}`)).toMatchObject({ status: 503, body: { error: 'stale' } })
  expect((await ask(`tag=${tag}`, true)).status).toBe(401)
  expect((await ask('ecosystem=npm')).status).toBe(200)
})

longTest('changes of a tag, or a package, are also those of the source packages, of their release', async () => {
  const purl = 'pkg:deb/debian/libssl3@3.0.9-1?distro=debian-12&upstream=openssl'
  const document = { bomFormat: 'CycloneDX', specVersion: '1.6', components: [{ name: 'libssl3', purl }] }
  const {
    made,
    ask,
    tags: [tag = ''],
  } = await mirror({}, ({ sandbox: { service } }, [id = '']) => {
    service.writeArtifact('tag', id, 'sbom', JSON.stringify(document))
  })
  await publish(made, 'T-12', 'Debian:12', 'openssl')
  await publish(made, 'T-13', 'Debian:13', 'openssl')
  for (const query of [`tag=${tag}`, `purl=${encodeURIComponent(purl)}`]) {
    const { body } = await ask(query)
    expect(body['changes']).toMatchObject([{ id: 'T-12' }])
  }
})
