import { afterEach, beforeAll, describe, expect } from 'vitest'
import { createWeb } from '../../../src/features/pages/web.ts'
import { makeOsvViews } from '../../../src/features/scanners/views/osv/views.ts'
import { openWriter } from '../../../src/store/database/open.ts'
import { openShortReads } from '../../../src/store/reads.ts'
import { heldRecord } from '../../server/scanners/served-osv.ts'
import { type Served, closeAll, serve, servedToAll } from '../../server/served.ts'
import { atomEntries } from '../../support/atom.ts'
import { filledCatalogBench } from '../../support/catalog/mirror.ts'
import { FILLED_AT, type FilledStore } from '../../support/filled-store.ts'
import { longTest, test } from '../../support/tables.ts'

afterEach(closeAll)

const RECORDS = [heldRecord('A-1', 'npm', 'a', '2.0.0'), heldRecord('D-12', 'Debian:12', 'openssl', '3.0.11-1')]
const publish = (store: FilledStore): void => {
  store.publishOsv(Object.fromEntries(RECORDS.map(({ id, text }) => [id, text])))
}
const people = (config: Parameters<typeof createWeb>[0]['config']) => createWeb({ config, version: '1' })

async function buildViews({ dir }: Pick<Served, 'dir'>): Promise<void> {
  const reads = openShortReads(dir) ?? expect.fail('no database')
  await makeOsvViews({ dataDir: dir, reads: reads.reads, vendors: [], pause: () => Promise.resolve() })
  reads.close()
}

const FEEDS = ['changes.atom', 'changes.atom?source=osv', 'changes.atom?ecosystem=npm']

/** The text of an answer, without its markup. */
const textOf = (html: string): string =>
  html
    .replace(/<style[^]*?<\/style>/g, '')
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ')

const PAGES = [
  ...['cve?id=A-1', 'cve?id=CVE-2026-1', 'record?id=A-1', 'record?id=B-1'],
  ...['search?q=A-1', 'search?q=nothing', 'search?q=pkg:npm/b', 'ecosystems', 'packages?ecosystem=npm'],
  ...['packages?ecosystem=none', 'package?ecosystem=npm&name=a', 'package?ecosystem=npm&name=b', 'changes?since=7d'],
]

/** What the pages of a mirror say whose snapshot was changed by this SQL. */
function pagesOf(sql: string | null, more: (store: FilledStore) => void = () => undefined) {
  const open = servedToAll(
    (store) => {
      publish(store)
      if (sql !== null) store.damage(sql)
      more(store)
    },
    { people },
  )
  let served: Served
  beforeAll(async () => {
    served = await open()
    await buildViews(served)
  })
  const raw = async (path: string): Promise<string> =>
    (await served.get(`/-/ui/${path}`, { accept: 'text/html' })).body.toString()
  return Object.assign(async (path: string): Promise<string> => textOf(await raw(path)), { raw })
}

/** The description of a feed; null: it has none. */
const subtitleOf = (feed: string): string | null => /<subtitle>([^<]*)<\/subtitle>/.exec(feed)?.[1] ?? null

const PARTIAL = 'partial: some listed records are missing or outdated, it is not known how many'
const NOT_WHOLE = "UPDATE snapshot SET whole = 0 WHERE source = 'osv'"
const SCOPED = `UPDATE snapshot SET scope = '${JSON.stringify({ include: ['Debian'], exclude: [], vendors: [] })}' WHERE source = 'osv'`
const OUTSIDE = 'records outside of osv.scope are not mirrored, and may name it (include Debian)'

describe('a page of a mirror whose records are all there', () => {
  const page = pagesOf(null)
  test.each(PAGES)('%s doubts nothing', async (path) => {
    const text = await page(path)
    expect(text).not.toMatch(/partial|osv\.scope|State of the data/)
    expect(text).toContain('Vulnerabilities')
  })
  test('says of a package that no record names that its changes are not known, in its feed and on its page', async () => {
    const said = async (purl: string) => [
      subtitleOf(await page.raw(`changes.atom?purl=${purl}`)),
      (await page(`changes?since=1&purl=${purl}`)).includes('No record names this package'),
    ]
    expect(await said('pkg:npm/aa')).toEqual([
      'What changed about pkg:npm/aa is not known: no listed change and no record that is stored is known to name it; names are compared as a whole.',
      true,
    ])
    expect(await said('pkg:npm/a')).toEqual([null, false])
    const ofHex = subtitleOf(await page.raw('changes.atom?ecosystem=Hex'))
    expect(ofHex).toContain('What changed about Hex is not known')
  })
  test('doubts nothing in feeds, unless nothing of their source is mirrored', async () => {
    for (const path of FEEDS) expect([path, subtitleOf(await page.raw(path))]).toEqual([path, null])
    expect(subtitleOf(await page.raw('changes.atom?source=feeds'))).toBe(
      'Nothing of feeds is mirrored yet, so no change of it is known.',
    )
  })
})

describe('a page of a mirror with a partial snapshot', () => {
  const page = pagesOf(NOT_WHOLE)
  test.each(PAGES)('%s says that records are missing', async (path) => {
    expect(await page(path)).toContain(PARTIAL)
  })
  test('has the same in the description of feeds, whose entries and ids stay', async () => {
    for (const path of FEEDS) {
      const feed = await page.raw(path)
      expect([path, subtitleOf(feed)]).toEqual([path, expect.stringContaining(PARTIAL)])
      expect([path, atomEntries(feed).length]).toEqual([path, path.includes('npm') ? 0 : 1])
    }
  })
  test('has the same in the files of its list', async () => {
    for (const path of ['ecosystems?', 'packages?ecosystem=npm&', 'package?ecosystem=npm&name=b&']) {
      const file = JSON.parse(await page(`${path}format=json`)) as { complete: boolean; incomplete: string | null }
      expect([path, file.complete, file.incomplete]).toEqual([path, false, expect.stringContaining(PARTIAL)])
    }
  })
  test('of the state and of runs has no notice: it shows that of each source', async () => {
    for (const path of ['', 'runs']) expect(await page(path)).not.toContain('State of the data')
  })
})

describe('a page of a mirror of a part of the records', () => {
  const page = pagesOf(SCOPED)
  test.each(PAGES)('%s names the part', async (path) => {
    expect(await page(path)).toContain('the mirror has only a part of the records: include Debian')
  })
  test('that finds nothing says that others may name it', async () => {
    for (const path of ['cve?id=CVE-2026-1', 'search?q=nothing', 'search?q=pkg:npm/b', 'package?ecosystem=npm&name=b'])
      expect([path, await page(path)]).toEqual([path, expect.stringContaining(OUTSIDE)])
    for (const path of ['search?q=pkg:deb/debian/b', 'package?ecosystem=Debian&name=b'])
      expect([path, await page(path)]).toEqual([path, expect.not.stringContaining(OUTSIDE)])
  })
  test('has a complete file of what is wholly in scope alone', async () => {
    const isComplete = async (ecosystem: string): Promise<boolean> => {
      const text = await page(`package?ecosystem=${ecosystem}&name=a&format=json`)
      return (JSON.parse(text) as { complete: boolean }).complete
    }
    expect([await isComplete('npm'), await isComplete('Debian')]).toEqual([false, true])
  })
})

longTest('a page names the earlier snapshot whose index of packages it reads', async () => {
  const served = await serve(publish, { people })
  await buildViews(served)
  const page = async () => textOf((await served.get('/-/ui/search?q=nothing', { accept: 'text/html' })).body.toString())
  expect(await page()).not.toContain('are those of the earlier snapshot')
  served.store.publishOsv({ 'C-1': heldRecord('C-1', 'npm', 'nothing', '1').text })
  served.server.snapshotChanged()
  expect(await page()).toContain('packages and other ids are those of the earlier snapshot')
})

longTest('pages of the catalog say that it, or the records that tags are judged by, are partial', async () => {
  const service = { images: 1, tags: 2, packages: 2, tickets: 3 }
  const mirror = await filledCatalogBench(service, { PATCHMIRROR_CATALOG_SCOPE: 'all' })
  await mirror.run('osv')
  const text = async (path: string): Promise<string> => textOf(await (await mirror.ask(path)).text())
  const images = await (await mirror.ask('/-/ui/images')).text()
  const [tag = ''] = /\/-\/ui\/tag\?id=[^"]+/.exec(images) ?? []
  const pages = [
    '/-/ui/images',
    '/-/ui/patches',
    tag,
    '/-/ui/cve?id=CVE-2026-1',
    '/-/ui/search?q=nothing',
    '/-/ui/tag?id=x',
  ]
  for (const path of pages) expect([path, await text(path)]).toEqual([path, expect.not.stringContaining('partial:')])
  const db = openWriter(mirror.dir)
  db.exec('UPDATE snapshot SET whole = 0')
  db.close()
  for (const path of pages)
    expect([path, await text(path)]).toEqual([path, expect.stringMatching(/catalog: snapshot .*; partial: some paths/)])
  for (const path of ['/-/ui/images', tag])
    expect([path, await text(path)]).toEqual([path, expect.stringContaining(PARTIAL)])
  expect((await mirror.ask('/-/ui/images?format=csv')).headers.get('content-disposition')).toContain('-incomplete.csv')
})

longTest('a page of changes says where they end at older data than they begin with', async () => {
  const texts = Object.fromEntries(RECORDS.map(({ id, text }) => [id, text]))
  const { 'D-12': _, ...older } = texts
  const open = servedToAll(
    (store) => {
      store.publishOsv(texts)
      store.publishOsv(older, FILLED_AT - 1000)
    },
    { people },
  )
  const served = await open()
  const { body } = await served.get('/-/ui/changes?since=1', { accept: 'text/html' })
  expect(textOf(body.toString())).toContain('Older data The mirror went back to older data: what is removed or undone')
})
