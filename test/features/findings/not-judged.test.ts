import { expect, onTestFinished, test } from 'vitest'
import { createPageMaker } from '../../../src/features/pages/make-page.ts'
import { openShortReads } from '../../../src/store/reads.ts'
import { catalogEnv } from '../../support/catalog/mirror.ts'
import { commandHost } from '../../support/hosted.ts'
import { loadQuick } from '../../support/limits.ts'
import { openFindingsBench } from './fixtures.ts'

const command = commandHost()

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
    const page = (name: string): string => {
      const asked = { page: name, query: '', signedIn: true, status: null, now: Date.now() + 60_000, served: null }
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
    }
  }
  const expectWords = (found: Awaited<ReturnType<typeof said>>, tags: number, state: string): void => {
    const reason = `no SBOM is stored here: ${state}`
    expect(found.show).toMatch(new RegExp(`^sbom +${state}`, 'm'))
    expect(found.list).toContain(`${tags} tag${tags === 1 ? '' : 's'}: ${reason}`)
    expect(found.json.notJudged).toEqual([{ reason, tags }])
    for (const text of [found.one, found.images, found.changes]) expect(text).toContain(reason)
  }
  sandbox.faults.set(`/v1/tags/${tag}/sbom`, { kind: 'status', status: 404 })
  await bench.crawl()
  await bench.publish({})
  await bench.judge()
  expectWords(await said({}), 1, 'the service has none')
  expect((await bench.runWith(patterns, 'catalog')).state).toBe('complete')
  await bench.judge()
  expectWords(await said(patterns), 4, 'not in scope')
})
