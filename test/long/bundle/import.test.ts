import { describe, expect, test } from 'vitest'
import { type CatalogBench, catalogBench } from '../../support/catalog/mirror.ts'
import { below, carry, comparable, folder, linksIn, pathsOf, serveFolder } from '../../features/bundles/air-gap.ts'

async function above(env: Record<string, string> = {}): Promise<CatalogBench> {
  const bench = await catalogBench({ images: 2, tags: 4, packages: 3, tickets: 5 }, { env })
  const [tag = ''] = bench.sandbox.service.ids('tags')
  bench.sandbox.faults.set(`/v1/tags/${tag}/vex`, { kind: 'status', status: 204 })
  for (const source of ['feeds', 'osv', 'catalog', 'identity'] as const) await bench.run(source)
  return bench
}

describe('a full bundle into an empty folder', () => {
  test('makes every path answer byte for byte as above the gap', async () => {
    const bench = await above({
      PATCHMIRROR_CATALOG_PERSONAL_DATA: 'apiKeys,users',
      PATCHMIRROR_FEEDS_EXTRA_PATHS: '/external/cve_feed,/external/extra',
    })
    bench.sandbox.feed.remove(1)
    // Bad ids and stamps are upstream's, and must cross as well.
    for (const id of ['ROOT-APP-NPM-', ' stray  space ', 'bell\u0007 and\ttab', 'A:2025-1', 'a/b', 'é"\u2028'])
      bench.sandbox.feed.put(id, JSON.stringify({ id, details: 'odd' }), `when\t${id.length}`)
    await bench.run('osv')
    expect(bench.store.osv.readEntry('bell\u0007 and\ttab')).not.toBeNull()
    const there = below()
    const { files, manifest } = await carry(bench.dir, folder())
    const report = await there.take(files)
    expect(report.outcome).toBe('applied')
    expect(there.digest()).toBe(manifest.digest)
    expect(there.digest()).toBe(bench.store.carried.digestSources().digest)
    const up = await serveFolder(bench.dir, bench.config)
    const down = await serveFolder(there.dir, there.config)
    const paths = pathsOf(bench.store)
    expect(paths.length).toBeGreaterThan(60)
    const [none = ''] = paths.filter((path) => path.endsWith('/vex'))
    expect((await down(none, {})).status).toBe(204)
    let documents = 0
    for (const path of paths)
      for (const coding of ['gzip', 'identity']) {
        const headers = { 'accept-encoding': coding }
        const one = await up(path, headers)
        const other = await down(path, headers)
        expect(comparable(other), path).toEqual(comparable(one))
        const links = linksIn(other)
        documents += links.length
        for (const [i, link] of linksIn(one).entries())
          for (const range of [{}, { range: 'bytes=1-9' }]) {
            const upper = comparable(await up(link, { ...headers, ...range }))
            expect(comparable(await down(links[i] ?? '', { ...headers, ...range }))).toEqual(upper)
          }
      }
    expect(documents).toBeGreaterThan(20)
  })
})
