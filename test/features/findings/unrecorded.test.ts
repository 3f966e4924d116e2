import { join } from 'node:path'
import { expect } from 'vitest'
import { listTags } from '../../../src/features/findings/answers.ts'
import { Database } from '../../../src/store/database/sqlite.ts'
import { catalogEnv } from '../../support/catalog/mirror.ts'
import { commandHost } from '../../support/hosted.ts'
import { longTest, test } from '../../support/tables.ts'
import { affecting, openFindingsBench, readFindings, sbomOf } from './fixtures.ts'

const command = commandHost()

/** Opens a mirror of a tag with an SBOM of these packages; `ask`: a command, `list`: what HTTP answers of the tag. */
async function openTag(...purls: readonly string[]) {
  const bench = await openFindingsBench()
  const { dir, sandbox } = bench
  const [tag = '', other = ''] = sandbox.service.ids('tags')
  sandbox.service.writeArtifact('tag', tag, 'sbom', sbomOf('i', ...purls))
  const env = {
    PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
    PATCHMIRROR_DATA_DIR: dir,
    PATCHMIRROR_CATALOG_SCOPE: 'all',
    ...catalogEnv(sandbox),
  }
  const question = { query: new URLSearchParams({ tag }), now: 0, idsNamed: () => [] }
  return {
    ...bench,
    tag,
    other,
    list: () => readFindings(dir, (reads) => listTags(reads, question).tags),
    ask: async (...words: string[]): Promise<string> => (await command(words, env, dir)).out,
  }
}

test('a tag says how many of its packages no record is about, and when nothing of it was compared with any', async () => {
  const bench = await openTag('pkg:npm/left@1.0.0', 'pkg:npm/lfet@1.0.0', 'pkg:nowhere/x@1')
  const { tag, list, ask } = bench
  await bench.crawl()
  await bench.publish({ 'A-1': affecting('npm', 'left', '0.9.0'), 'B-1': affecting('npm', 'right', null) })
  await bench.judge()
  expect(list()).toMatchObject([{ recordGap: null, counts: { packages: 4, notJudged: 2, unrecorded: 1, findings: 0 } }])
  expect(await ask('list', 'findings', tag)).toContain('1 that no record here is about, in whatever version')
  await bench.publish({ 'A-1': null })
  await bench.judge()
  const gap = 'no package of the SBOM was wholly compared with any record'
  expect(list()).toMatchObject([{ recordGap: expect.stringContaining(gap) as string, counts: { unrecorded: 2 } }])
  expect(await ask('list', 'findings', tag)).toContain(gap)
  expect(await ask('list', 'findings')).toContain(`: ${gap}`)
  expect(await ask('list', 'findings', '--csv')).toContain(gap)
  expect(bench.known()).toEqual(await bench.fresh())
  await bench.publish({ 'A-2': affecting('npm', 'lfet', null) })
  await bench.judge()
  expect(list()).toMatchObject([{ recordGap: null, counts: { unrecorded: 1, findings: 1 } }])
})

test('a package that only records of another release, or withdrawn ones, are about is one of no record, as match has it', async () => {
  const purls = ['pkg:deb/debian/a@1?distro=debian-12', 'pkg:deb/debian/b@1?distro=debian-12', 'pkg:npm/gone@1.0.0']
  const bench = await openTag(...purls)
  await bench.crawl()
  await bench.publish({
    'A-1': affecting('Debian:12', 'a', '0.5'),
    'B-1': affecting('Debian:11', 'b', null),
    'G-1': { ...affecting('npm', 'gone', null), withdrawn: '2026-01-01T00:00:00Z' },
  })
  await bench.judge()
  expect(bench.list()).toMatchObject([{ counts: { unrecorded: 2, findings: 0 } }])
  const { out } = await command(['match', bench.tag, '--json'], { PATCHMIRROR_DATA_DIR: bench.dir }, bench.dir)
  expect(JSON.parse(out)).toMatchObject({ withoutRecords: purls.slice(1) })
})

longTest('a tag that changed, and whose new SBOM could not be fetched, is not judged as it is now', async () => {
  const bench = await openTag('pkg:npm/left@1.0.0')
  const { sandbox, tag, ask, dir } = bench
  await bench.crawl()
  await bench.publish({ 'A-1': affecting('npm', 'left', '0.9.0') })
  await bench.judge()
  const [{ name } = { name: '' }] = bench.list()
  const said = async () => {
    const matched = await command(['match', name, '--json', '--fail-on', 'any'], { PATCHMIRROR_DATA_DIR: dir }, dir)
    const { gaps } = JSON.parse(matched.out) as { gaps: { code: string; reason: string }[] }
    const ofSbom = gaps.filter(({ code }) => code === 'sbom').map(({ reason }) => reason)
    const record = await ask('show', 'A-1')
    const changes = await ask('changes', '--tag', tag)
    return { code: matched.code, ofSbom, list: await ask('list', 'findings', tag), record, changes }
  }
  const gap = 'not fetched since the tag changed, and may be of an earlier image'
  const before = await said()
  expect([before.code, before.ofSbom, before.list.includes(gap)]).toEqual([0, [], false])
  expect(before.record).toContain('none of the 4 judged tags has it')
  expect(before.changes).not.toContain(gap)
  const fault = sandbox.faults.set(`/v1/tags/${tag}/sbom`, { kind: 'status', status: 500 })
  sandbox.service.change('tags', tag, { digest: `sha256:${'9'.repeat(64)}` })
  await bench.run('catalog')
  await bench.judge()
  const after = await said()
  expect([after.code, after.ofSbom, after.list.includes(gap)]).toEqual([3, [expect.stringContaining(gap)], true])
  expect(after.record).toContain('no judged tag is known to have it; 1 tag may have it')
  expect(after.changes).toContain(gap)
  expect(await ask('show', tag)).toMatch(/^sbom.* +what is stored is of an earlier time: .*500/m)
  fault.clear()
  await bench.crawl()
  await bench.judge()
  expect(await said()).toMatchObject({ code: 0, ofSbom: [] })
})

longTest('a record that cannot be compared with a package of a tag is not said to be in no tag', async () => {
  const bench = await openTag('pkg:npm/left@1.0.0')
  const { ask } = bench
  const of = async (record: string) => ({
    out: await ask('show', record),
    json: JSON.parse(await ask('show', record, '--json')) as object,
  })
  await bench.crawl()
  await bench.publish({
    'A-1': { affected: [{ package: { ecosystem: 'npm', name: 'left' }, ranges: [{ type: 'GIT', events: [] }] }] },
    'B-1': affecting('npm', 'left', '0.9.0'),
  })
  await bench.judge()
  const open = await of('A-1')
  expect(open.out).toContain('no judged tag is known to have it; 1 tag may have it')
  expect(open.json).toMatchObject({ tags: { listed: [], count: 0, uncertain: 1, counts: { judged: 4 } } })
  const clear = await of('B-1')
  expect(clear.out).toContain('none of the 4 judged tags has it')
  expect(clear.json).toMatchObject({ tags: { count: 0, uncertain: 0 } })
})

longTest('a tag of several SBOMs says which of them could not be read, and is not judged as whole', async () => {
  const bench = await openTag('pkg:npm/left@1.0.0')
  const { dir, sandbox, tag, other, list, ask } = bench
  sandbox.service.writeArtifact('tag', other, 'sbom', JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.1' }))
  await bench.crawl()
  const db = new Database(join(dir, 'mirror.db'))
  const links = (id: string) => `(SELECT links FROM catalog_answer WHERE path = '/v1/tags/${id}/sbom')`
  db.exec(`UPDATE catalog_answer SET links = json_insert(${links(tag)}, '$[#]', json_extract(${links(other)}, '$[0]'))
    WHERE path = '/v1/tags/${tag}/sbom'`)
  db.close()
  await bench.publish({ 'A-1': affecting('npm', 'left', null) })
  await bench.judge()
  const gap = 'judged by its other SBOMs alone'
  expect(list()).toMatchObject([{ sbomGap: expect.stringContaining(gap) as string, counts: { findings: 1 } }])
  expect(await ask('list', 'findings', tag)).toContain(gap)
})
