import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import fc from 'fast-check'
import { expect } from 'vitest'
import { openWrites } from '../../../src/store/writes.ts'
import { settledPackages } from '../../../src/sync/catalog/scope/settled.ts'
import type { Run } from '../../../src/store/runs/runs.ts'
import type { RunRequest } from '../../../src/sync/context.ts'
import { createRunner } from '../../../src/sync/runner.ts'
import { createUpstream } from '../../../src/upstream/surfaces.ts'
import type { Bench } from '../../support/mirror.ts'
import { longTest, test } from '../../support/tables.ts'
import { contentsOf } from '../fixtures.ts'
import { announced } from '../refreshes.ts'
import { SMALL, bench } from './fixtures.ts'
import { EDITS, edit } from './histories.ts'

/** The clock of both mirrors. */
const NOW = Date.UTC(2026, 10, 26)

/** A request for a refresh of the tags with these numbers. */
function requestOf({ sandbox: { service } }: Bench, named: readonly number[]): RunRequest {
  const ids = service.ids('tags')
  const targets = named.map((pick) => announced(service, ids[pick % ids.length] ?? ''))
  return { source: 'catalog', kind: 'refresh', trigger: 'webhook', targets }
}

/** The same run on a copy of the mirror, whose settings no earlier run had: it plans the requests of every item. */
async function runOnCopy(made: Bench, request: RunRequest): Promise<{ report: Run; contents: object }> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-copy-'))
  const source = new Database(join(made.dir, 'mirror.db'), { readonly: true })
  source.exec(`VACUUM INTO '${join(dir, 'mirror.db')}'`)
  source.close()
  const config = { ...made.config, data: { ...made.config.data, dir } }
  const store = openWrites(dir)
  const upstream = createUpstream({ config, version: 'test', now: () => NOW })
  const runner = createRunner({
    config,
    store,
    upstream: () => upstream,
    now: () => NOW,
    signal: new AbortController().signal,
  })
  const report = await runner.run(request)
  await upstream.close()
  store.close()
  const contents = contentsOf(dir)
  rmSync(dir, { recursive: true })
  return { report, contents }
}

/** What a report says, but for what it cost. */
function saidBy({ state, code, message, snapshot, facts }: Run): object {
  const { bytes: _bytes, ...said } = facts
  return { state, code, message, snapshot, facts: said }
}

const PATHS = [
  /^\/v1\/tags\/[^/]+\/sbom$/,
  /^\/v1\/tags\/$/,
  /^\/v1\/images/,
  /^\/v1\/packages\/./,
  /^\/v1\/avrs/,
  /^\/artifacts\//,
]
const STATUSES = [500, 404, 401, 202]
const RUNS = ['sync', 'full', 'reconcile', 'narrower'] as const

const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ edit: fc.constantFrom(...EDITS), pick: fc.nat(99) }) },
  { weight: 5, arbitrary: fc.record({ named: fc.array(fc.nat(99), { maxLength: 3 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      path: fc.constantFrom(...PATHS),
      status: fc.constantFrom(...STATUSES),
    }),
  },
  { weight: 2, arbitrary: fc.constantFrom(...RUNS).map((run) => ({ run })) },
  { weight: 1, arbitrary: fc.constant('clear' as const) },
)

/** Counts the refreshes that relied on an earlier run. */
interface Counts {
  settled: number
}

/** Refreshes a mirror, and a copy of it in which everything is planned: both say and store the same. */
async function refreshBoth(made: Bench, named: readonly number[], counts: Counts): Promise<void> {
  const request = requestOf(made, named)
  if (reliesOnEarlier(made)) counts.settled++
  const other = await runOnCopy(made, request)
  const report = await made.run('catalog', request)
  expect(saidBy(report)).toEqual(saidBy(other.report))
  expect(contentsOf(made.dir)).toEqual(other.contents)
}

function reliesOnEarlier({ config, store }: Pick<Bench, 'config' | 'store'>): boolean {
  const next = { kind: 'refresh', source: 'catalog', runId: Number.MAX_SAFE_INTEGER } as const
  return settledPackages({ ...next, config, store }) !== null
}

async function other(made: Bench, run: (typeof RUNS)[number]): Promise<void> {
  if (run === 'narrower') {
    const [id = ''] = made.sandbox.service.ids('packages')
    const { name } = made.sandbox.service.read('packages', id) as { name: string }
    await made.runWith({ PATCHMIRROR_CATALOG_PATTERNS: `!package:${name}` }, 'catalog')
  } else if (run === 'full') await made.run('catalog', { full: true })
  else await made.run('catalog', { kind: run })
}

const IN_TURN = { PATCHMIRROR_UPSTREAM_CONCURRENCY: '2' } // the order of requests, and so of what fails, is the same

async function play(
  history: readonly (typeof step extends fc.Arbitrary<infer T> ? T : never)[],
  env: Record<string, string>,
  counts: Counts,
): Promise<void> {
  const made = await bench(SMALL, { env: { ...env, ...IN_TURN }, now: () => NOW })
  const { faults, service } = made.sandbox
  await made.run('catalog')
  for (const one of history) {
    if (one === 'clear') faults.clear()
    else if ('run' in one) await other(made, one.run)
    else if ('edit' in one) edit(service, one.edit, one.pick)
    else if ('status' in one) faults.set(one.path, { kind: 'status', status: one.status })
    else {
      await refreshBoth(made, one.named, counts)
      await refreshBoth(made, [], counts)
    }
  }
}

longTest('a refresh that relies on what an earlier run left ends as one that plans everything', async () => {
  const counts = { settled: 0 }
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 4, maxLength: 14 }),
      fc.constantFrom('all', 'subscribed'),
      fc.constantFrom('1', '1000'),
      (history, scope, items) =>
        play(
          [...history, { named: [1] }],
          { PATCHMIRROR_CATALOG_SCOPE: scope, PATCHMIRROR_GUARD_LIMIT: `removed=10% and ${items}` },
          counts,
        ),
    ),
    { numRuns: 20 },
  )
  expect(counts.settled).toBeGreaterThan(3)
})

longTest('a refresh keeps what is missing of a version that only an answer of the package catalog names', async () => {
  const history = [{ path: /^\/artifacts\//, status: 500 }, { run: 'narrower' }, { run: 'sync' }, 'clear'] as const
  const env = { PATCHMIRROR_CATALOG_SCOPE: 'subscribed', PATCHMIRROR_GUARD_LIMIT: 'removed=10% and 1' }
  await play([...history, { named: [] }], env, { settled: 0 })
})

longTest('a refresh keeps what a list of versions names, under whichever package it is stored', async () => {
  const history = [
    { edit: 'removePackage', pick: 11 },
    { edit: 'removePackage', pick: 0 },
    { edit: 'addTag', pick: 0 },
    { run: 'sync' },
    { edit: 'addTag', pick: 0 },
  ] as const
  const env = { PATCHMIRROR_CATALOG_SCOPE: 'subscribed', PATCHMIRROR_GUARD_LIMIT: 'removed=10% and 1' }
  await play([...history, { named: [] }], env, { settled: 0 })
})

longTest.each(['quarantined', 'rejected', 'failed'] as const)(
  'a refresh after a sync that was %s does not publish what that fetched',
  async (how) => {
    const guard = {
      PATCHMIRROR_GUARD_LIMIT: 'removed=10% and 5',
    }
    const made = await bench({ ...SMALL, packages: 12 }, { env: { ...guard, ...IN_TURN }, now: () => NOW })
    await made.run('catalog')
    const { faults } = made.sandbox
    faults.set(/^\/v1\/packages\/[^/]+\/artifacts\/patches$/, { kind: 'status', status: 404 })
    expect(await made.run('catalog', { full: true })).toMatchObject({ state: 'partial', facts: { lacking: 12 } })
    if (how === 'failed') faults.set(/^\/v1\/avrs/, { kind: 'status', status: 401 })
    const { id, state } = await made.run('catalog', { full: true })
    expect(state).toBe(how === 'failed' ? 'failed' : 'quarantined')
    const { quarantine, catalog } = made.store
    if (how === 'rejected') await made.store.exclusive(() => quarantine.decideQuarantine(id, 'rejected', NOW))
    faults.clear()
    const stored = () =>
      [...catalog.eachStoredAnswer()].filter(
        ({ path, status }) => status === 200 && path.endsWith('/artifacts/patches'),
      )
    expect(stored()).toHaveLength(12)
    await refreshBoth(made, [], { settled: 0 })
    expect(stored()).toHaveLength(12)
  },
)

test('a refresh plans the packages of a subscription that names another thing than before', async () => {
  const env = { PATCHMIRROR_CATALOG_SCOPE: 'subscribed', ...IN_TURN }
  const made = await bench({ ...SMALL, subscriptions: 0 }, { env, now: () => NOW })
  const { service } = made.sandbox
  const [pkg = ''] = service.ids('packages')
  const tag = service.ids('tags').at(-1) ?? ''
  const { name } = service.read('packages', pkg) as { name: string }
  service.change('subscriptions', service.addSubscription({ tag }), { tag: null, package_name: name })
  await made.run('catalog')
  service.remove('tags', tag)
  const counts = { settled: 0 }
  await refreshBoth(made, [], counts)
  expect(counts.settled).toBe(1)
  expect(made.store.snapshots.readSnapshot('catalog')?.whole).toBe(false)
})

test('a refresh relies on no earlier one that left packages unrequested, as after a change of the scope', async () => {
  const made = await bench(SMALL, { env: { PATCHMIRROR_CATALOG_PATTERNS: '!package:*' } })
  await made.run('catalog')
  const config = { ...made.config, catalog: { ...made.config.catalog, exclude: [] } }
  const { store } = made
  const upstream = createUpstream({ config, version: 'test', now: Date.now })
  const runner = createRunner({
    config,
    store,
    upstream: () => upstream,
    now: Date.now,
    signal: new AbortController().signal,
  })
  const request = requestOf(made, [])
  for (const round of [1, 2]) {
    const { state, message } = await runner.run(request)
    expect([round, state, message]).toEqual([round, 'partial', expect.stringContaining('left to the next sync')])
  }
  await runner.run({ source: 'catalog', kind: 'sync', trigger: 'command' })
  expect(reliesOnEarlier({ config, store })).toBe(true)
  expect(await runner.run(request)).toMatchObject({ state: 'complete' })
  await upstream.close()
})
