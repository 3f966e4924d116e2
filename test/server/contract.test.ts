import { afterEach, expect } from 'vitest'
import { longTest, test } from '../support/tables.ts'
import { catalogRoutes } from '../../src/server/catalog/routes.ts'
import { createWeb } from '../../src/features/pages/web.ts'
import { matchRoute } from '../../src/features/match/route.ts'
import { type ServedContract, createBodyCheck, faultsBy, violations } from '../support/openapi.ts'
import { LEADER, READINESS } from '../../src/base/reports/readiness.ts'
import { RECORD_DATES } from '../../src/base/reports/records.ts'
import { CHANGES_ANSWER } from '../../src/server/followers/changes-answer.ts'
import { STATUS } from '../../src/base/reports/status.ts'
import { FILLED_AT, closeAll, jsonOf, serve } from './served.ts'

afterEach(closeAll)

const ALL = {
  PATCHMIRROR_VIEWS_SERVE: 'bucket,derived,query,vex,findings',
  PATCHMIRROR_UPSTREAM_API_ROOT: 'https://service.example',
  PATCHMIRROR_UPSTREAM_API_KEY: 'a-key-of-the-service',
}

longTest(
  'the answers of an empty mirror have the headers that the API document requires, Retry-After on each 503',
  async () => {
    const { get, port, own } = await serve(() => undefined, {
      env: ALL,
      plugins: [matchRoute, catalogRoutes],
      people: (settings) => createWeb({ config: settings, version: '9.9.9' }),
    })
    const contract = jsonOf(await get('/-/openapi.json')) as unknown as ServedContract
    const asked = Object.entries(contract.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((name) => ({ path, method: name.toUpperCase() })),
    )
    const faults: string[] = []
    const unready = new Set<string>()
    for (const { path, method } of asked) {
      if (path === '/-/events') continue // it does not end
      const body = method === 'POST' ? '{"package":{"name":"x","ecosystem":"npm"},"version":"1"}' : null
      const url = `http://127.0.0.1:${port}${path.replaceAll(/\{\w+\}/g, '1')}`
      const answer = await fetch(url, { method, body, headers: own })
      await answer.arrayBuffer()
      const { status, headers } = answer
      if (status === 503) unready.add(path)
      faults.push(...violations(contract, { method, path: url.slice(url.indexOf('/', 8)), status, headers }))
    }
    expect(faults).toEqual([])
    for (const path of ['/-/ready', '/v1/tags/', '/osv/v1/query', '/external/patch_feed'])
      expect(unready).toContain(path)
    const page = await fetch(`http://127.0.0.1:${port}/-/ui/record?id=x`, { headers: own })
    expect([page.status, page.headers.get('retry-after') !== null]).toEqual([503, true])
  },
)

/** A record about one package. */
const record = (range: object, more: object = {}): string => {
  const entry = { package: { ecosystem: 'npm', name: 'p' }, ...range }
  return JSON.stringify({ modified: '2026-01-01T00:00:00Z', affected: [entry], ...more })
}
const fixedIn = (...versions: string[]) => ({
  ranges: versions.map((fixed) => ({ type: 'SEMVER', events: [{ introduced: '0' }, { fixed }] })),
})
const scored = (score: string) => ({ severity: [{ type: 'CVSS_V3', score }] })

const BEFORE = {
  fix: record(fixedIn('2.0.0')),
  more: record({ ranges: [{ type: 'SEMVER', events: [{ introduced: '0' }] }] }),
  listed: record({ versions: ['1', '2'] }),
  facts: record(fixedIn('1.0.0'), { aliases: ['A-1'], ...scored('CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H') }),
  gone: '{}',
}
const AFTER = {
  fix: record(fixedIn('1.0.0')),
  more: record({ ranges: [{ type: 'GIT', repo: 'https://example.com/a.git', events: [{ introduced: '0' }] }] }),
  listed: record({ package: { ecosystem: 'PyPI', name: 'q' }, versions: ['2', '3'] }),
  facts: record(fixedIn('1.0.0'), {
    aliases: ['A-2'],
    withdrawn: '2026-06-01T00:00:00Z',
    details: 'x',
    ...scored('CVSS:3.1/AV:L/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H'),
  }),
  come: '{}',
}

test('reports of runs, differences and dates have what the API document describes, and nothing else', async () => {
  const { get, own, store, server } = await serve((filled) => {
    filled.publishOsv(BEFORE)
    filled.addRun('feeds', FILLED_AT + 500, { state: 'failed', code: 'upstream_unreachable', message: 'no answer' })
    filled.addRun('osv', FILLED_AT + 600, {
      state: 'quarantined',
      message: 'it would remove all 9 records; approve or reject run 3',
      facts: {
        requests: 3,
        quarantine: 3,
        doubts: 1,
        doubtfulIds: ['X-1: fix lowered'],
        decidedBy: 'alice',
        other: null,
      },
    })
  })
  store.publishOsv(AFTER, FILLED_AT + 1000)
  server.snapshotChanged()
  const contract = jsonOf(await get('/-/openapi.json')) as unknown as ServedContract
  const faultsIn = createBodyCheck(contract)
  const kinds = new Set<string>()
  for (const [path, schema, description] of [
    ['/-/status', 'Status', STATUS],
    ['/-/ready', 'Readiness', READINESS],
    ['/-/leader', 'Leader', LEADER],
    ['/-/changes?since=1', 'Changes', CHANGES_ANSWER],
    ['/-/changes?since=1&detail=differences', 'Changes', CHANGES_ANSWER],
    ['/-/records/fix', 'RecordDates', RECORD_DATES],
    ['/-/records/gone', 'RecordDates', RECORD_DATES],
  ] as const) {
    for (const headers of [own, {}]) {
      const body = jsonOf(await get(path, headers))
      expect([path, faultsIn(schema, body), faultsBy(description, body)]).toEqual([path, [], []])
      const { changes = [] } = body as { changes?: { differences?: { kind: string }[] | null }[] }
      for (const { differences } of changes) for (const { kind } of differences ?? []) kinds.add(kind)
    }
  }
  expect([...kinds].sort()).toEqual(
    'aliases_added aliases_removed fix_lowered other_changed package_added package_removed range_changed range_narrowed record_added record_removed severity_changed versions_added withdrawn'.split(
      ' ',
    ),
  )
  const status = jsonOf(await get('/-/status', own))
  expect(faultsIn('Status', { ...status, more: 1 })).not.toEqual([])
  expect(faultsBy(STATUS, { ...status, storage: { state: 'ok' } })).not.toEqual([])
})
