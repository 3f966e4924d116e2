import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Fault } from '../../../src/sandbox/faults/fault.ts'
import { openWrites } from '../../../src/store/writer.ts'
import { continuesSettled } from '../../../src/sync/catalog/scope/settled.ts'
import { type RunReport, type RunRequest, createRunner } from '../../../src/sync/runner.ts'
import { createUpstream } from '../../../src/upstream/surfaces.ts'
import type { Bench } from '../../support/mirror.ts'
import { LONG } from '../../support/tables.ts'
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
async function runOnCopy(
  made: Bench,
  request: RunRequest,
): Promise<{ report: RunReport; contents: object }> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-copy-'))
  const source = new Database(join(made.dir, 'mirror.db'), { readonly: true })
  source.exec(`VACUUM INTO '${join(dir, 'mirror.db')}'`)
  source.close()
  const config = { ...made.config, data: { ...made.config.data, dir } }
  const store = openWrites(dir)
  const upstream = createUpstream({ config, version: 'test', now: () => NOW })
  const runner = createRunner({
    ...{ config, store, upstream: () => upstream, now: () => NOW },
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
function saidBy({ state, code, message, snapshot, facts }: RunReport): object {
  const { bytes: _bytes, inScope: _inScope, ...said } = facts
  return { state, code, message, snapshot, facts: said }
}

const PATHS = [/^\/v1\/tags\/[^/]+\/sbom$/, /^\/v1\/tags\/$/, /^\/v1\/images/, /^\/v1\/packages\/./, /^\/artifacts\//] // prettier-ignore
const FAULTS: Fault[] = [{ kind: 'status', status: 500 }, { kind: 'status', status: 404 }, { kind: 'html' }] // prettier-ignore

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ edit: fc.constantFrom(...EDITS), pick: fc.nat(99) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ named: fc.array(fc.nat(99), { maxLength: 3 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ path: fc.constantFrom(...PATHS), fault: fc.constantFrom(...FAULTS) }),
  },
  { weight: 2, arbitrary: fc.constantFrom('sync' as const, 'clear' as const) },
)

/** A property of two mirrors of one service; `counts`: how many refreshes relied on an earlier run. */
async function refreshBoth(
  history: readonly (typeof step extends fc.Arbitrary<infer T> ? T : never)[],
  env: Record<string, string>,
  counts: { settled: number },
): Promise<void> {
  const inTurn = { PATCHMIRROR_CATALOG_CONCURRENCY: '1' } // the order of requests, and so of what fails, is the same
  const made = await bench(SMALL, { env: { ...env, ...inTurn }, now: () => NOW })
  await made.run('catalog')
  for (const one of history) {
    if (one === 'sync') await made.run('catalog')
    else if (one === 'clear') made.sandbox.faults.clear()
    else if ('edit' in one) edit(made.sandbox.service, one.edit, one.pick)
    else if ('fault' in one) made.sandbox.faults.set(one.path, one.fault)
    else {
      const request = requestOf(made, one.named)
      const { config, store } = made
      if (continuesSettled({ kind: 'refresh', config, store, source: 'catalog' })) counts.settled++
      const other = await runOnCopy(made, request)
      const report = await made.run('catalog', request)
      expect(saidBy(report)).toEqual(saidBy(other.report))
      expect(contentsOf(made.dir)).toEqual(other.contents)
    }
  }
}

test('a refresh that relies on what an earlier run left ends as one that plans everything', async () => {
  const counts = { settled: 0 }
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 4, maxLength: LONG ? 14 : 8 }),
      fc.constantFrom('all', 'subscribed'),
      (history, scope) =>
        refreshBoth([...history, { named: [1] }], { PATCHMIRROR_CATALOG_SCOPE: scope }, counts),
    ),
    { numRuns: LONG ? 60 : 4 },
  )
  expect(counts.settled).toBeGreaterThan(3)
})

test('a refresh relies on no earlier one that left packages unrequested, as after a change of the scope', async () => {
  const made = await bench(SMALL, { env: { PATCHMIRROR_CATALOG_EXCLUDE: 'package:*' } })
  await made.run('catalog')
  const config = { ...made.config, catalog: { ...made.config.catalog, exclude: [] } }
  const { store } = made
  const upstream = createUpstream({ config, version: 'test', now: Date.now })
  const runner = createRunner({
    ...{ config, store, upstream: () => upstream, now: Date.now },
    signal: new AbortController().signal,
  })
  const request = requestOf(made, [])
  for (const round of [1, 2]) {
    const { state, message } = await runner.run(request)
    expect([round, state, message]).toEqual([
      round,
      'partial',
      expect.stringContaining('left to the next sync'),
    ])
  }
  await runner.run({ source: 'catalog', kind: 'sync', trigger: 'command' })
  expect(continuesSettled({ kind: 'refresh', config, store, source: 'catalog' })).toBe(true)
  expect(await runner.run(request)).toMatchObject({ state: 'complete' })
  await upstream.close()
})
