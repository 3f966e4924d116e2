import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import type { Config } from '../../../src/config/schema.ts'
import { loadQuick } from '../../support/limits.ts'
import type { SourceName } from '../../../src/base/domain/sources.ts'
import { changedScope, changedScopeText, settingDigests } from '../../../src/store/runs/run-scope.ts'
import type { RunKind, RunOutcome } from '../../../src/store/runs/runs.ts'
import { runEnd, writes } from '../fixtures.ts'

const UPSTREAM = {
  PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:9',
  PATCHMIRROR_UPSTREAM_API_KEY: 'key',
}

function configOf(env: Record<string, string> = {}): Config {
  return loadQuick({ env: { ...UPSTREAM, ...env }, cwd: tmpdir() }).config
}

/** A run log, and the recording of a run that ended. */
function openLog() {
  const { runs } = writes()
  const record = (
    source: SourceName,
    settings: readonly string[] | null,
    { kind = 'sync', state = 'complete' }: { kind?: RunKind; state?: RunOutcome } = {},
  ): number => {
    const id = runs.startRun({ source, kind, trigger: 'command', startedAt: 1 })
    const facts = settings === null ? {} : { scopeSettings: settings }
    runs.endRun(id, runEnd({ state, facts }))
    return id
  }
  return { reads: runs, record }
}

test.each<[SourceName, Record<string, string>, readonly string[]]>([
  ['catalog', { PATCHMIRROR_CATALOG_PATTERNS: 'image:nginx' }, ['catalog.patterns']],
  [
    'catalog',
    { PATCHMIRROR_CATALOG_SCOPE: 'all', PATCHMIRROR_CATALOG_PATTERNS: '!image:a' },
    ['catalog.scope', 'catalog.patterns'],
  ],
  ['osv', { PATCHMIRROR_OSV_SCOPE: 'npm' }, ['osv.scope']],
  ['osv', { PATCHMIRROR_VIEWS_VENDORS: 'Acme' }, []], // it counts only beside include or exclude
  ['feeds', { PATCHMIRROR_FEEDS_EXTRA_PATHS: '/external/other.json' }, ['feeds.extraPaths']],
  ['feeds', { PATCHMIRROR_CATALOG_SCOPE: 'all' }, []],
  ['catalog', { PATCHMIRROR_UPSTREAM_CONCURRENCY: '4' }, []],
])('of %s, %j changes %j', (source, env, keys) => {
  const { reads, record } = openLog()
  const run = record(source, settingDigests(configOf(), source))
  expect(changedScope(reads, configOf(), source)).toBeNull()
  const changed = changedScope(reads, configOf(env), source)
  expect(changed).toEqual(keys.length === 0 ? null : { run, keys })
  expect(record(source, settingDigests(configOf(env), source))).toBe(run + 1)
  expect(changedScope(reads, configOf(env), source)).toBeNull()
})

test('the order of a list is no change', () => {
  const { reads, record } = openLog()
  const of = (text: string): Config => configOf({ PATCHMIRROR_CATALOG_PATTERNS: text })
  record('catalog', settingDigests(of('image:a,image:b'), 'catalog'))
  expect(changedScope(reads, of('image:b,image:a'), 'catalog')).toBeNull()
  expect(changedScope(reads, of('image:b'), 'catalog')).not.toBeNull()
})

test('only runs of everything that published count', () => {
  const { reads, record } = openLog()
  const before = configOf()
  const after = configOf({ PATCHMIRROR_CATALOG_SCOPE: 'all' })
  const run = record('catalog', settingDigests(before, 'catalog'), { state: 'partial' })
  const now = settingDigests(after, 'catalog')
  record('catalog', now, { kind: 'refresh' })
  record('catalog', now, { kind: 'reconcile' })
  for (const state of ['quarantined', 'failed', 'stopped'] as const) record('catalog', now, { state })
  expect(changedScopeText(reads, after, 'catalog')).toBe(
    `run ${run} used another catalog.scope than this mirror has; what is stored follows it until a run with these settings is published`,
  )
})

test('nothing is known of an import, and without a source', () => {
  const { reads, record } = openLog()
  const other = configOf({ PATCHMIRROR_CATALOG_SCOPE: 'all' })
  expect(changedScope(reads, other, 'catalog')).toBeNull()
  record('catalog', settingDigests(configOf(), 'catalog'))
  expect(changedScope(reads, other, 'catalog')).not.toBeNull()
  const { fleet } = other
  const reader = { ...other, fleet: { ...fleet, url: 's3://fleet/prod', role: 'reader' as const } }
  const keyless = configOf({ PATCHMIRROR_CATALOG_SCOPE: 'all', PATCHMIRROR_UPSTREAM_API_KEY: '' })
  for (const config of [reader, keyless]) expect(changedScope(reads, config, 'catalog')).toBeNull()
  record('catalog', null, { kind: 'import' })
  expect(changedScope(reads, other, 'catalog')).toBeNull()
})
