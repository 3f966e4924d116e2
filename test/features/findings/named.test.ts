import { expect } from 'vitest'
import { test } from '../../support/tables.ts'
import { affecting, expectAgreement, openFindingsBench, sbomOf } from './fixtures.ts'

const named = (of: object): object => ({
  affected: [{ package: of, ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: '2' }] }] }],
})

test('records in another case, or by a package URL alone, are found as they come and as all are compared', async () => {
  const bench = await openFindingsBench()
  const [tag = ''] = bench.sandbox.service.ids('tags')
  const purls = ['pkg:pypi/a@1', 'pkg:npm/b@1', 'pkg:deb/debian/c@1?distro=debian-12', 'pkg:npm/d@1.0.0', 'pkg:npm/e@1']
  bench.sandbox.service.writeArtifact('tag', tag, 'sbom', sbomOf('i', ...purls))
  await bench.crawl()
  await bench.publish({})
  await bench.judge()
  await bench.publish({
    'A-1': named({ ecosystem: 'pypi', name: 'a' }),
    'B-1': named({ purl: 'pkg:npm/b' }),
    'C-1': named({ ecosystem: 'root:debian:bookworm', name: 'c' }),
    'D-1': { ...affecting('npm', 'd', '2.0.0'), withdrawn: '9999-01-01T00:00:00Z' },
    'E-1': named({ purl: 'pkg:npm/e', name: 'e' }),
  })
  await bench.judge()
  const found = (await bench.matched(tag)).map((row) => row.split(' ').at(-2))
  expect(found.sort()).toEqual(['A-1', 'B-1', 'C-1', 'D-1', 'E-1'])
  await expectAgreement(bench)
})
