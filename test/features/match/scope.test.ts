import { beforeAll, expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { openShortReads } from '../../../src/store/reads.ts'
import { makeOsvViews } from '../../../src/features/scanners/views/osv/views.ts'
import { matchRoute } from '../../../src/features/match/route.ts'
import { type Served, servedToAll } from '../../server/served.ts'
import { heldRecord } from '../../server/scanners/served-osv.ts'

const RECORDS = [
  heldRecord('A-1', 'npm', 'a', '2.0.0'),
  heldRecord('D-12', 'Debian:12', 'openssl', '3.0.11-1'),
  // As it is stored for another package that it names too.
  heldRecord('P-1', 'PyPI', 'p', '3.0'),
]
const SCOPE = JSON.stringify({ include: ['Debian', 'npm'], exclude: ['npm'], vendors: ['Root'] })
const open = servedToAll(
  (store) => {
    store.publishOsv(Object.fromEntries(RECORDS.map(({ id, text }) => [id, text])))
    store.damage(`UPDATE snapshot SET scope = '${SCOPE}' WHERE source = 'osv'`)
    store.damage(`INSERT INTO osv_outside (id, modified) VALUES ('OUT-1', '2026-01-01T00:00:00Z')`)
  },
  { plugins: [matchRoute] },
)

let served: Served
const post = async (path: string, body: unknown) => {
  const answer = await fetch(`http://127.0.0.1:${served.port}${path}`, { method: 'POST', body: JSON.stringify(body) })
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

beforeAll(async () => {
  served = await open()
  const reads = openShortReads(served.dir)
  if (reads === null) throw new Error('no database')
  const pause = () => Promise.resolve()
  await makeOsvViews({ dataDir: served.dir, reads: reads.reads, vendors: [], pause })
  reads.close()
})

const WHY = 'osv.scope leaves them out (include Debian, npm; exclude npm)'

test('a query about an ecosystem that the scope leaves out is refused, and never answered with nothing', async () => {
  for (const asked of [{ ecosystem: 'npm', name: 'b' }, { purl: 'pkg:npm/b@1.0.0' }])
    expect(await post('/osv/v1/query', { package: asked })).toEqual({
      status: 400,
      body: { code: 3, message: `Records of npm are not mirrored here: ${WHY}.` },
    })
  const debian = { package: { ecosystem: 'Debian:12', name: 'openssl' } }
  expect(await post('/osv/v1/query', debian)).toMatchObject({ status: 200, body: { vulns: [{ id: 'D-12' }] } })
  const batch = { queries: [debian, { package: { purl: 'pkg:pypi/p@1' } }] }
  expect(await post('/osv/v1/querybatch', batch)).toEqual({
    status: 400,
    body: { code: 3, message: `Records of PyPI are not mirrored here: ${WHY} at index: 1.` },
  })
})

test('what the scope leaves out is named where a file or a record is asked for', async () => {
  const ask = async (path: string): Promise<unknown> => {
    const answer = await fetch(`http://127.0.0.1:${served.port}${path}`)
    return [answer.status, ((await answer.json()) as { message: string }).message]
  }
  expect(await ask('/osv/npm2/all.zip')).toEqual([
    404,
    expect.stringContaining('npm2 are not mirrored here: osv.scope'),
  ])
  expect(await ask('/osv/v1/vulns/OUT-1')).toEqual([404, expect.stringContaining('out of the scope of this mirror')])
  expect(await ask('/osv/Debian/OUT-1.json')).toEqual([404, expect.stringContaining('out of the scope of this mirror')])
  expect(await ask('/osv/v1/vulns/NONE-1')).toEqual([404, 'Bug not found.'])
})

longTest('an SBOM with packages of which not all records are mirrored has a gap that names them', async () => {
  const bom = (...purls: readonly string[]) => ({
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    components: purls.map((purl) => ({ name: purl, purl, 'bom-ref': purl })),
  })
  const debian = 'pkg:deb/debian/openssl@3.0.9-1?distro=debian-12'
  const partly = await post('/-/match', bom(debian, 'pkg:pypi/p@1', 'pkg:pypi/other@1'))
  expect(partly.body['gaps']).toEqual([
    {
      code: 'records',
      reason: 'not all records of PyPI are mirrored here: osv.scope is include Debian, npm; exclude npm',
    },
  ])
  const whole = await post('/-/match', bom(debian))
  expect(whole.body).toMatchObject({ findings: [{ id: 'D-12' }], gaps: [] })
  const leftOut = await post('/-/match', bom(debian, 'pkg:maven/a/b@1'))
  expect(leftOut.body).toMatchObject({
    notJudged: [{ code: 'no_records' }],
    gaps: [
      { code: 'records', reason: expect.stringContaining('not all records of Maven are mirrored here') as string },
    ],
  })
})
