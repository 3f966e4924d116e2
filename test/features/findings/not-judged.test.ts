import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { createPageMaker } from '../../../src/features/pages/make-page.ts'
import { Database } from '../../../src/store/database/sqlite.ts'
import { openShortReads } from '../../../src/store/reads.ts'
import { catalogEnv } from '../../support/catalog/mirror.ts'
import { commandHost } from '../../support/hosted.ts'
import { loadQuick } from '../../support/limits.ts'
import { bothTest, telling, test } from '../../support/tables.ts'
import { affecting, openFindingsBench, readFindings, sbomOf } from './fixtures.ts'

const command = commandHost()

test('a tag is judged by each of several SBOMs in one document', async () => {
  const bench = await openFindingsBench()
  const [tag = ''] = bench.sandbox.service.ids('tags')
  const attested = (purl: string): string => {
    const predicate = JSON.parse(sbomOf('i', purl)) as object
    return JSON.stringify({
      _type: 'https://in-toto.io/Statement/v1',
      predicateType: 'https://cyclonedx.org/bom',
      predicate,
    })
  }
  const lines = `${attested('pkg:npm/left@1.0.0')}\n${attested('pkg:npm/right@1.0.0')}\n`
  bench.sandbox.service.writeArtifact('tag', tag, 'sbom', lines)
  await bench.crawl()
  await bench.publish({ 'A-1': affecting('npm', 'left', null), 'B-1': affecting('npm', 'right', null) })
  await bench.judge()
  const counts = { packages: 3, findings: 2 }
  expect(bench.known().tags.find(({ owner }) => owner === tag)).toMatchObject({ refusal: null, ...counts })
  expect(await bench.matched(tag)).toHaveLength(2)
  const { dir } = bench
  expect((await command(['match', tag], { PATCHMIRROR_DATA_DIR: dir }, dir)).err).toContain('has 2 SBOMs')
  const changes = await command(['changes', '--tag', tag, '--json'], { PATCHMIRROR_DATA_DIR: dir }, dir)
  expect(changes).toMatchObject({ code: 0, out: expect.stringContaining('"packages": 2') as string })
})

test('why a tag is not judged is said by the list of findings and the pages in the words of its artifacts', async () => {
  const bench = await openFindingsBench()
  const { dir, sandbox } = bench
  const [tag = ''] = sandbox.service.ids('tags')
  const patterns = { PATCHMIRROR_CATALOG_PATTERNS: '!image:*' }
  const said = async (more: Record<string, string>) => {
    const env = {
      PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
      PATCHMIRROR_DATA_DIR: dir,
      PATCHMIRROR_CATALOG_SCOPE: 'all',
      ...catalogEnv(sandbox),
      ...more,
    }
    const { config } = loadQuick({ env, cwd: dir, requireUpstream: true })
    const reads = openShortReads(dir) ?? expect.fail('no database')
    onTestFinished(() => reads.close())
    const make = createPageMaker({ config, version: '1', style: 's.css', script: 's.js', icon: 'i.svg' }, () => reads)
    const page = (name: string, query = ''): string => {
      const asked = { page: name, query, signedIn: true, status: null, now: Date.now() + 60_000, served: null }
      const { body } = make({ ...asked, problem: null, base: '', origin: 'http://localhost' })
      return Buffer.from(body).toString()
    }
    const ask = async (...words: string[]): Promise<string> => (await command(words, env, dir)).out
    return {
      show: await ask('show', tag),
      list: await ask('list', 'findings'),
      json: JSON.parse(await ask('list', 'findings', '--json')) as { notJudged: object[] },
      one: await ask('list', 'findings', tag),
      images: page('images'),
      changes: page('tag-changes'),
      tag: page('tag', `id=${tag}`),
      findings: page('tag-findings', `id=${tag}`),
    }
  }
  const expectWords = (found: Awaited<ReturnType<typeof said>>, tags: number, state: string): void => {
    const reason = `no SBOM is stored here: ${state}`
    expect(found.show).toMatch(new RegExp(`^sbom +${state}`, 'm'))
    expect(found.list).toContain(`${tags} tag${tags === 1 ? '' : 's'}: ${reason}`)
    expect(found.json.notJudged).toEqual([{ reason, tags }])
    for (const text of [found.one, found.images, found.changes]) expect(text).toContain(reason)
    for (const text of [found.tag, found.findings]) expect(text).toContain(`N${reason.slice(1)}`)
  }
  sandbox.faults.set(`/v1/tags/${tag}/sbom`, { kind: 'status', status: 404 })
  await bench.crawl()
  await bench.publish({})
  await bench.judge()
  const first = await said({})
  expectWords(first, 1, 'the service has none')
  expect(first.images).toContain('no package of the SBOM was wholly compared with any record')
  expect((await bench.runWith(patterns, 'catalog')).state).toBe('complete')
  await bench.judge()
  expectWords(await said(patterns), 4, 'not in scope')
})

bothTest.each(telling(['damaged', 'missing'], 'damaged'))(
  'what an SBOM that is %s at first changed is logged once it is read',
  async (how) => {
    const bench = await openFindingsBench({}, undefined, 'warn')
    const { dir, sandbox } = bench
    const [tag = ''] = sandbox.service.ids('tags')
    const path = `/v1/tags/${tag}/sbom`
    const write = (name: string): void =>
      sandbox.service.writeArtifact('tag', tag, 'sbom', sbomOf('i', `pkg:npm/${name}@1.0.0`))
    const state = () =>
      readFindings(dir, (reads) => ({ refusal: reads.readTag(tag)?.refusal, log: reads.listLogOf(tag, 9) }))
    write('a')
    await bench.crawl()
    await bench.publish({ 'A-1': affecting('npm', 'a', null), 'B-1': affecting('npm', 'b', null) })
    await bench.judge()
    if (how === 'missing') sandbox.faults.set(path, { kind: 'status', status: 404 })
    write('b')
    if (how === 'missing') expect((await bench.run('catalog')).state).toBe('partial') // a second run is to find the same
    await bench.crawl()
    const repair = how === 'missing' ? () => undefined : damage(dir, path)
    await bench.judge()
    await bench.publish({ 'B-2': affecting('npm', 'b', null) })
    await bench.judge()
    expect(state()).toEqual({ refusal: expect.any(String) as string, log: [] })
    sandbox.faults.clear()
    repair()
    expect((await bench.run('catalog', { full: true })).state).toBe('complete')
    await bench.judge()
    expect(state()).toMatchObject({ refusal: null, log: [{ cause: 'sbom', found: 2, gone: 1 }] })
    expect(bench.known()).toEqual(await bench.fresh())
  },
)

/** Damages the document that a path of the catalog has; returns what puts it back. */
function damage(dir: string, path: string): () => void {
  const db = new Database(join(dir, 'mirror.db'))
  onTestFinished(() => void db.close())
  const chunks = db
    .prepare<[string], { digest: string; number: number; bytes: Buffer }>(
      `SELECT c.* FROM catalog_answer a, json_each(a.links) link
         JOIN catalog_chunk c ON c.digest = json_extract(link.value, '$.digest') WHERE a.path = ?`,
    )
    .all(path)
  expect(chunks).not.toEqual([])
  const put = db.prepare('UPDATE catalog_chunk SET bytes = ? WHERE digest = ? AND number = ?')
  for (const { digest, number } of chunks) put.run(Buffer.alloc(8), digest, number)
  return () => {
    for (const { digest, number, bytes } of chunks) put.run(bytes, digest, number)
  }
}
