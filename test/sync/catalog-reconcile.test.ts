import { expect, test } from 'vitest'
import { createCarriedReader } from '../../src/store/carried.ts'
import { openReader } from '../../src/store/database.ts'
import { type CatalogBench, catalogBench } from '../catalog/benches.ts'

const HOUR = 3_600_000
const SERVICE = { images: 2, tags: 4, packages: 3, tickets: 3, avrs: 0, subscriptions: 1 }

async function mirrored(): Promise<CatalogBench & { pass: (hours: number) => void }> {
  const clock = { now: Date.now() - 100 * HOUR }
  const made = await catalogBench(SERVICE, {
    env: { PATCHMIRROR_CATALOG_SCOPE: 'all' },
    now: () => clock.now,
  })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
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

test('a reconcile finds what changed though its list entry did not', async () => {
  const made = await mirrored()
  const { service } = made.sandbox
  const [id = ''] = service.ids('packages')
  const { ecosystem, name, version } = service.read('packages', id)
  const at = `/packages/ecosystems/${String(ecosystem)}/packages/${encodeURIComponent(String(name))}/versions`
  const cves = `${at}/${encodeURIComponent(String(version))}/cves`
  const [tag = ''] = service.ids('tags')
  const body = (value: unknown) => ({ kind: 'body', body: JSON.stringify(value) }) as const
  made.sandbox.faults.set(cves, body({ cves: ['CVE-2026-1'] }))
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

test('an answer is as old as its own last confirmation, which makes no other snapshot or digest', async () => {
  const made = await mirrored()
  const [tag = ''] = made.sandbox.service.ids('tags')
  const [detail, sbom, list] = [`/v1/tags/${tag}`, `/v1/tags/${tag}/sbom`, '/v1/tags/']
  const [first, document] = [await asOf(made, detail), await asOf(made, sbom)]
  const [digest, snapshot] = [digestOf(made), made.store.readSnapshot('catalog')]
  made.pass(25)
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect(await asOf(made, detail)).toBe(first) // the sync did not ask for it
  expect(await asOf(made, list)).toBeGreaterThan(first)
  expect((await made.run('catalog', { kind: 'reconcile' })).facts).toMatchObject({ changed: 0 })
  expect(await asOf(made, detail)).toBeGreaterThan(first + 24 * HOUR)
  expect(await asOf(made, sbom)).toBe(document)
  expect([digestOf(made), made.store.readSnapshot('catalog')]).toEqual([digest, snapshot])
  expect((await made.run('catalog', { kind: 'reconcile' })).facts).toMatchObject({ due: 0 })
})

test('answers of one sync come due at times of their own, all within the period', async () => {
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

test('what could not be fetched keeps its age; what was confirmed before the failure is kept', async () => {
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
  expect(made.store.readLatestWholeRun('catalog')?.kind).toBe('sync')
})
