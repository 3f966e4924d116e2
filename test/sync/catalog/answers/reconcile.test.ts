import { expect } from 'vitest'
import { VEX_ARCHIVE, VEX_MANIFEST } from '../../../../src/features/scanners/routes/vex.ts'
import { createCarriedReader } from '../../../../src/store/replication/reader.ts'
import { openReader } from '../../../../src/store/database/open.ts'
import { performTask } from '../../../../src/features/scanners/views/task.ts'
import { below, carry, folder, serveFolder } from '../../../features/bundles/air-gap.ts'
import { type CatalogBench, catalogBench, catalogEnv } from '../../../support/catalog/mirror.ts'
import { copyFilledFolder } from '../../../support/filled-folder.ts'
import { type Said, type Saying, plainBench } from '../../../support/catalog/plain-service.ts'
import { longTest, test } from '../../../support/tables.ts'

const HOUR = 3_600_000
const SERVICE = { images: 2, tags: 4, packages: 3, tickets: 3, avrs: 0, subscriptions: 1 }

const ENV = { PATCHMIRROR_CATALOG_SCOPE: 'all' }
/** When the first sync of every mirror ran. */
const AT = Date.now() - 100 * HOUR

async function mirrored(): Promise<CatalogBench & { pass: (hours: number) => void }> {
  const clock = { now: AT }
  const origin = { sandbox: { records: 5, service: SERVICE }, env: ENV, envOf: catalogEnv, at: AT }
  const dir = await copyFilledFolder(origin, ['catalog'])
  const made = await catalogBench(SERVICE, { dir, env: ENV, now: () => clock.now })
  return { ...made, pass: (hours) => (clock.now += hours * HOUR) }
}

function digestOf({ dir }: CatalogBench): string {
  const db = openReader(dir)
  if (db === null) throw new Error('no database')
  try {
    return createCarriedReader(db).digestOf('catalog')
  } finally {
    db.close()
  }
}

const asOf = async (made: CatalogBench, path: string): Promise<number> =>
  Date.parse((await made.ask(path)).headers.get('x-mirror-as-of') ?? '')

test('other content under the same ETag is found in lists by a sync and in items by a reconcile, within catalog.reconcileHours', async () => {
  let now = AT
  let n = 0
  const listed = (): Said => ({
    body: { tickets: [{ ticket_id: 'a', n }, { ticket_id: 'b' }], cursor: { after: null } },
  })
  const tagged =
    (said: () => Said): Saying =>
    (_url, { headers }) => {
      const own = { etag: '"same"', date: new Date(now).toUTCString() }
      return headers['if-none-match'] === '"same"' ? { status: 304, headers: own } : { ...said(), headers: own }
    }
  const made = await plainBench(
    {
      '/v1/tags/': () => ({ body: { data: [{ id: 'a' }], cursor: { after: null } } }),
      '/v1/tags/a': tagged(() => ({ body: { id: 'a', n } })),
      '/v1/patches': tagged(listed),
    },
    {},
    () => now,
  )
  const served = async (path: string): Promise<unknown> => (await made.ask(path)).json()
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  n++
  now += HOUR
  expect(await made.run('catalog')).toMatchObject({ facts: { lists: 0 } })
  now += 24 * HOUR
  expect(await made.run('catalog', { kind: 'refresh' })).toMatchObject({ facts: { lists: 0 } })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete', facts: { lists: 1 } })
  expect(await served('/v1/patches')).toMatchObject({ tickets: [{ n: 1 }, {}] })
  const before = made.asked('/v1/patches').length
  expect(await made.run('catalog', { kind: 'reconcile' })).toMatchObject({ facts: { changed: 1 } })
  expect(await served('/v1/tags/a')).toMatchObject({ n: 1 })
  n++
  expect(await made.run('catalog')).toMatchObject({ facts: { lists: 0 } }) // it was read a moment ago
  expect(made.asked('/v1/patches')).toHaveLength(before + 1)
})

longTest('a reconcile finds an item that changed without a change of its list entry', async () => {
  const made = await mirrored()
  const { service } = made.sandbox
  const [id = ''] = service.ids('packages')
  const { ecosystem, name, version, cves: known } = service.read('packages', id)
  const at = `/packages/ecosystems/${String(ecosystem)}/packages/${encodeURIComponent(String(name))}/versions`
  const cves = `${at}/${encodeURIComponent(String(version))}/cves`
  const [tag = ''] = service.ids('tags')
  const body = (value: unknown) => ({ kind: 'body', body: JSON.stringify(value) }) as const
  made.sandbox.faults.set(cves, body({ cves: [...(known as string[]), 'CVE-2026-1'] }))
  made.sandbox.faults.set(`/v1/tags/${tag}`, body({ id: tag, richer: true }))
  made.pass(25)
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(await (await made.ask(cves)).text()).not.toContain('CVE-2026-1')
  const run = await made.run('catalog', { kind: 'reconcile' })
  expect(run).toMatchObject({ state: 'complete', kind: 'reconcile', asOf: null })
  expect(run.facts).toMatchObject({ changed: 2 })
  expect(run.facts['due']).toBe(Number(run.facts['confirmed']) + 2)
  expect(run.facts['requests']).toBeGreaterThanOrEqual(Number(run.facts['due']))
  expect(await (await made.ask(cves)).text()).toContain('CVE-2026-1')
  expect(await (await made.ask(`/v1/tags/${tag}`)).json()).toMatchObject({ richer: true })
  // What it took stays: the next sync asks for none of it.
  expect((await made.run('catalog')).facts['fetched']).toBe(0)
})

longTest(
  'an answer is as old as its own last confirmation, which does not change the snapshot or its digest',
  async () => {
    const made = await mirrored()
    const [tag = ''] = made.sandbox.service.ids('tags')
    const detail = `/v1/tags/${tag}`
    const sbom = `/v1/tags/${tag}/sbom`
    const list = '/v1/tags/'
    const first = await asOf(made, detail)
    const document = await asOf(made, sbom)
    const digest = digestOf(made)
    const snapshot = made.store.snapshots.readSnapshot('catalog')
    made.pass(25)
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(await asOf(made, detail)).toBe(first) // the sync did not ask for it
    expect(await asOf(made, list)).toBeGreaterThan(first)
    expect((await made.run('catalog', { kind: 'reconcile' })).facts).toMatchObject({ changed: 0 })
    expect(await asOf(made, detail)).toBeGreaterThan(first + 24 * HOUR)
    expect(await asOf(made, sbom)).toBe(document)
    expect([digestOf(made), made.store.snapshots.readSnapshot('catalog')]).toEqual([digest, snapshot])
    const idle = await made.run('catalog', { kind: 'reconcile' })
    expect(idle.facts).toMatchObject({ due: 0 })
    expect(idle.message).toContain('nothing was due')
  },
)

test('answers of one sync are due at different times, all within the period', async () => {
  const made = await mirrored()
  const { facts } = await made.run('catalog', { kind: 'reconcile' })
  expect(facts).toMatchObject({ due: 0 })
  made.pass(18)
  const some = Number((await made.run('catalog', { kind: 'reconcile', dryRun: true })).facts['due'])
  made.pass(7)
  const all = Number((await made.run('catalog', { kind: 'reconcile', dryRun: true })).facts['due'])
  expect(some).toBeGreaterThan(0)
  expect(all).toBeGreaterThan(some)
})

longTest(
  'an answer that could not be fetched keeps its age, and earlier confirmations of the run are kept',
  async () => {
    const made = await mirrored()
    const [tag = '', other = ''] = made.sandbox.service.ids('tags')
    const first = await asOf(made, `/v1/tags/${tag}`)
    made.pass(25)
    made.sandbox.faults.set(`/v1/tags/${tag}`, { kind: 'status', status: 500 })
    const run = await made.run('catalog', { kind: 'reconcile' })
    expect(run).toMatchObject({ state: 'partial', asOf: null })
    expect(await asOf(made, `/v1/tags/${tag}`)).toBe(first)
    expect(await asOf(made, `/v1/tags/${other}`)).toBeGreaterThan(first)
    made.sandbox.faults.clear()
    expect((await made.run('catalog', { kind: 'reconcile' })).facts).toMatchObject({ due: 1 })
    expect(made.store.runs.readLatestWholeRun('catalog')?.kind).toBe('sync')
  },
)

test('a document by signed link is as old as the answer that has the link', async () => {
  const made = await mirrored()
  const [tag = ''] = made.sandbox.service.ids('tags')
  const sbom = `/v1/tags/${tag}/sbom`
  const first = await asOf(made, sbom)
  made.pass(25)
  await made.run('catalog')
  const text = await (await made.ask(sbom)).text()
  const url = /http[^"]*/.exec(text)?.[0] ?? ''
  const local = new URL(url)
  expect(local.searchParams.get('as-of')).toBe(String(first))
  expect(await asOf(made, local.pathname + local.search)).toBe(first)
  const fresher = url.replace(/as-of=\d+/, `as-of=${first + HOUR}`)
  for (const forged of [fresher, url.replace(/&as-of=\d+/, '')]) expect((await fetch(forged)).status).toBe(403)
})

/** A list of tags of one image, which a sync leaves alone while the image stays as it is listed. */
async function sublistOf(made: CatalogBench): Promise<string> {
  const { data } = (await (await made.ask('/v1/images/')).json()) as {
    data: { repository: string }[]
  }
  return `/v1/images/${data[0]?.repository ?? ''}/tags`
}

test('a list that a sync does not walk keeps its date, and is walked again within the period', async () => {
  const made = await mirrored()
  const own = await sublistOf(made)
  const all = '/v1/tags/'
  const first = await asOf(made, own)
  made.pass(2)
  await made.run('catalog')
  expect(await asOf(made, own)).toBe(first)
  expect(await asOf(made, all)).toBeGreaterThan(first + HOUR)
  made.pass(25)
  await made.run('catalog')
  expect(await asOf(made, own)).toBeGreaterThan(first + 26 * HOUR)
})

test('a list or a single item that could not be fetched keeps its date', async () => {
  const made = await mirrored()
  const alone = '/v1/me'
  const list = '/v1/patches'
  const other = '/v1/tags/'
  const dates = async () => [await asOf(made, alone), await asOf(made, list), await asOf(made, other)]
  const [one = 0, two = 0, three = 0] = await dates()
  made.pass(2)
  made.sandbox.faults.set(alone, { kind: 'status', status: 500 })
  await made.run('catalog')
  const [still, walked = 0] = await dates()
  expect([still, walked > two + HOUR]).toEqual([one, true])
  made.pass(2)
  made.sandbox.faults.clear()
  made.sandbox.faults.set(list, { kind: 'status', status: 500 })
  await made.run('catalog')
  const [again = 0, failed, last = 0] = await dates()
  expect([failed, again > one + 3 * HOUR, last > three + 3 * HOUR]).toEqual([walked, true, true])
})

longTest('the VEX repository is as old as the oldest confirmation of a document in it', async () => {
  const made = await mirrored()
  await performTask({ dataDir: made.dir, kind: 'vex', vendors: [], rebuild: false })
  const vex = await serveFolder(made.dir, made.config)
  const dates = async (): Promise<Set<number>> => {
    vex.look()
    const answers = [await vex(VEX_ARCHIVE), await vex(VEX_MANIFEST)]
    return new Set(answers.map(({ headers }) => Date.parse(String(headers['x-mirror-as-of']))))
  }
  const [first = 0] = await dates()
  made.pass(25)
  await made.run('catalog')
  expect(await dates()).toEqual(new Set([first]))
  const [tag = ''] = made.sandbox.service.ids('tags')
  made.sandbox.faults.set(`/v1/tags/${tag}/vex`, { kind: 'status', status: 500 })
  await made.run('catalog', { kind: 'reconcile' })
  const oldest = await asOf(made, `/v1/tags/${tag}/vex`)
  expect(oldest).toBeLessThan(first + HOUR)
  expect(await dates()).toEqual(new Set([oldest]))
  made.sandbox.faults.clear()
  await made.run('catalog', { kind: 'reconcile' })
  expect([...(await dates())][0]).toBeGreaterThan(first + 24 * HOUR)
})

longTest('a reconcile stops asking a host that is down', async () => {
  const clock = { now: Date.now() - 100 * HOUR }
  const env = { PATCHMIRROR_CATALOG_SCOPE: 'all', LIMIT_UPSTREAM_RETRIES: '0' }
  const made = await catalogBench({ ...SERVICE, tags: 30 }, { env, now: () => clock.now })
  await made.run('catalog')
  clock.now += 25 * HOUR
  for (const tag of made.sandbox.service.ids('tags'))
    made.sandbox.faults.set(`/v1/tags/${tag}`, { kind: 'status', status: 503 })
  const { state, facts } = await made.run('catalog', { kind: 'reconcile' })
  expect(state).toBe('partial')
  expect(JSON.stringify(facts['lackingIds'])).toContain('consecutive failures')
  const asked = made.sandbox.requests.entries.filter(({ status }) => status === 503)
  expect(new Set(asked.map(({ path }) => path)).size).toBeLessThan(30)
})

longTest(
  'the dates of lists and answers are carried in bundles, are never newer there, and never go backwards',
  async () => {
    const made = await mirrored()
    const [tag = ''] = made.sandbox.service.ids('tags')
    const link = `/v1/tags/${tag}/sbom`
    const paths = ['/v1/me', '/v1/tags/', '/v1/patches', await sublistOf(made), `/v1/tags/${tag}`, link]
    const to = folder()
    const target = below()
    const full = await carry(made.dir, to)
    await target.take(full.files)
    const ask = await serveFolder(target.dir, target.config)
    const both = async (): Promise<[above: number, there: number][]> => {
      ask.look()
      const found: [number, number][] = []
      for (const path of paths) {
        const { headers } = await ask(path)
        found.push([await asOf(made, path), Date.parse(String(headers['x-mirror-as-of']))])
      }
      return found
    }
    const first = await both()
    for (const [above, there] of first) expect(there).toBe(above)

    made.pass(25)
    await made.run('catalog')
    await made.run('catalog', { kind: 'reconcile' })
    // Nothing changed but dates: a bundle with the same digest takes them along.
    await target.take((await carry(made.dir, to)).files)
    const newest = await both()
    for (const [above, there] of newest) expect(there).toBe(above)
    expect(newest[4]?.[1]).toBeGreaterThan((first[4]?.[1] ?? 0) + 24 * HOUR)
    await target.take(full.files, { again: true })
    expect(await both()).toEqual(newest) // the same rows with the dates from before

    // A delta has the dates of what changed; all else stays as old as it is known to be there.
    made.pass(1)
    made.sandbox.service.addTag()
    await made.run('catalog')
    const delta = await carry(made.dir, to, { since: String(full.manifest.sequence) })
    expect(delta.manifest.kind).toBe('delta')
    made.pass(25)
    await made.run('catalog', { kind: 'reconcile' })
    made.sandbox.service.addTag()
    await made.run('catalog')
    await target.take((await carry(made.dir, to)).files)
    const last = await both()
    for (const [above, there] of last) expect(there).toBe(above)
    expect(await target.refuses(delta.files)).toContain('older')
    expect(await both()).toEqual(last)
    const late = below()
    await late.take(full.files)
    await late.take(delta.files)
    const there = await serveFolder(late.dir, late.config)
    for (const [at, path] of paths.entries()) {
      const { headers } = await there(path)
      const date = Date.parse(String(headers['x-mirror-as-of']))
      expect(date).toBeLessThanOrEqual(last[at]?.[0] ?? 0)
      expect(date).toBeGreaterThanOrEqual(first[at]?.[1] ?? Infinity)
    }
  },
)
