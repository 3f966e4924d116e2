import { expect } from 'vitest'
import { openFindingsBench, sbomOf } from '../../features/findings/fixtures.ts'
import { bothTest, telling } from '../../support/tables.ts'
import { tamper, verify } from '../fixtures.ts'

const DAMAGES = [
  ['items of lists', 'UPDATE catalog_entry SET body = substr(body, 1, 9)'],
  ['answers', 'UPDATE catalog_answer SET body = substr(body, 1, 9) WHERE body IS NOT NULL'],
  ['documents', 'UPDATE catalog_chunk SET bytes = substr(bytes, 1, 9)'],
] as const

const CHANGED = DAMAGES.flatMap(([name, sql]) => [
  [name, sql, false] as const,
  [`${name} that changed meanwhile`, sql, true] as const,
])

bothTest.each(telling(CHANGED, 'items of lists that changed meanwhile'))(
  'a repair replaces damaged %s of the catalog, although nothing can be compared with them',
  async (_name, sql, isChanged) => {
    const made = await openFindingsBench({ images: 2, tags: 3 })
    const write = (purl: string): void => {
      for (const id of made.sandbox.service.ids('tags'))
        made.sandbox.service.writeArtifact('tag', id, 'sbom', sbomOf(id, purl))
    }
    write('pkg:npm/a@1.0.0')
    await made.crawl()
    tamper(made.dir, sql)
    if (isChanged) write('pkg:npm/a@2.0.0')
    const damaged = (await verify(made.dir)).catalog
    expect([...damaged.lists, ...damaged.answers, ...damaged.documents]).not.toEqual([])
    expect(await made.run('catalog', { kind: 'repair', damaged })).toMatchObject({ state: 'complete' })
    await made.run('identity', { kind: 'repair' })
    expect((await verify(made.dir)).catalog).toMatchObject({ lists: [], answers: [], documents: [] })
  },
)
