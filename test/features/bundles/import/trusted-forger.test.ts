import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, describe, expect, onTestFinished } from 'vitest'
import { eachLine } from '../../../../src/features/bundles/import/rows.ts'
import { inspectBundle } from '../../../../src/features/bundles/import/open.ts'
import type { Manifest } from '../../../../src/features/bundles/format/manifest.ts'
import { openWriter } from '../../../../src/store/database/open.ts'
import { catalogEnv } from '../../../support/catalog/mirror.ts'
import { createBench } from '../../../support/mirror.ts'
import { type Forgery, forge } from '../forged.ts'
import { below, carry, signer } from '../air-gap.ts'
import { bothTest, longTest, telling, test } from '../../../support/tables.ts'
import { countCatalog } from '../../../support/stored-counts.ts'

const ending: (() => unknown)[] = []
afterAll(async () => {
  for (const end of ending.reverse()) await end()
})

/** A full bundle of a mirror with a catalog. */
async function makeBundle() {
  const service = { images: 1, tags: 2, packages: 1, tickets: 2 }
  const sandbox = { records: 3, service }
  const bench = await createBench({ sandbox, envOf: catalogEnv })
  ending.push(() => bench.close())
  for (const source of ['feeds', 'osv', 'catalog'] as const) await bench.run(source)
  const to = mkdtempSync(join(tmpdir(), 'patchmirror-media-'))
  ending.push(() => rmSync(to, { recursive: true, force: true }))
  signer()
  return { bench, to, full: await carry(bench.dir, to) }
}

let made: ReturnType<typeof makeBundle> | null = null
const bundle = (): ReturnType<typeof makeBundle> => (made ??= makeBundle())

/** Changes the first row of a pack that has a match. */
function change(pack: string, pattern: RegExp, to: string): Forgery {
  let done = false
  return {
    rows: (name, lines) =>
      lines.map((line) => {
        if (done || !name.includes(pack) || !pattern.test(line)) return line
        done = true
        return line.replace(pattern, to)
      }),
  }
}

describe('a forged bundle with a trusted signature', () => {
  const lies: [string, RegExp, Forgery][] = [
    ['has a line without anything', /has an empty line/, { rows: () => ['', ''] }],
    ['has links that are no JSON', /is not JSON/, change('catalog-answer', /"links":"\[.+?\]"/, '"links":"{"')],
    [
      'has links of another shape',
      /is not a SHA-256 in hex/,
      change('catalog-answer', /"links":"\[.*?\]",/, '"links":"[{\\"at\\":[],\\"digest\\":1}]",'),
    ],
    [
      'says a link twice in one',
      /not JSON as it is stored/,
      change(
        'catalog-answer',
        /"links":"\[.*?\]",/,
        `"links":"[{\\"at\\":[],\\"digest\\":\\"x\\",\\"digest\\":\\"${'0'.repeat(64)}\\"}]",`,
      ),
    ],
    ['has mentions that are none', /mentions/, change('catalog-answer', /"mentions":"\[.*?\]"/, '"mentions":"[{}]"')],
    ['has no frame of a list', /frame/, change('catalog-list', /"frame":"\{/, '"frame":"{\\"x\\":1,')],
    [
      'has no bytes for an answer',
      /does not have the bytes that its row names/,
      change('catalog-answer', /"links":"\[\]"(.*)"base64":"[^"]*"/, '"links":"[]"$1"base64":null'),
    ],
    ['has facets too many', /over the cap of 8/, change('catalog-entry', /"facets":\[/, '"facets":[null,')],
    [
      'has a media type of two lines',
      /is not a media type/,
      change('catalog-document', /"type":"/, '"type":"a\\r\\nb'),
    ],
    ...['text/html', 'application/json\\r\\nx: y'].map((type): [string, RegExp, Forgery] => [
      `has a link to a document of the type ${type}`,
      /is not a media type that documents are served with/,
      change(
        'catalog-answer',
        /"links":"\[.*?\]",/,
        `"links":"[{\\"at\\":[],\\"digest\\":\\"${'0'.repeat(64)}\\",\\"type\\":\\"${type.replaceAll('\\', '\\\\')}\\"}]",`,
      ),
    ]),
    [
      'puts the index among the feeds',
      /not a row of feeds/,
      change('feeds/document', /"key":"[^"]*"/, '"key":"/external/osv/all.json"'),
    ],
    ['puts a feed elsewhere', /not a row of feeds/, change('feeds/document', /"key":"[^"]*"/, '"key":"/v1/me"')],
    [
      'has users in the catalog',
      /not a row of catalog/,
      change('catalog-list', /"resource":"\w+"/, '"resource":"users"'),
    ],
    [
      'has an answer where none is',
      /not a row of catalog/,
      change('catalog-answer', /"key":"[^"]*"/, '"key":"/v1/elsewhere"'),
    ],
    [
      'has a path that is not written as paths are',
      /not a row of catalog/,
      change('catalog-answer', /"key":"\/v1\/tags\/[^/"]+/, '"key":"/v1/tags/%41'),
    ],
    ['has a control character in a path', /is not a key/, change('catalog-answer', /"key":"/, '"key":"\\u0007')],
  ]
  const FEW = [
    ...['has a line without anything', 'has no bytes for an answer', 'has users in the catalog'],
    ...['has a media type of two lines', 'has a control character in a path', 'puts a feed elsewhere'],
    'has mentions that are none',
  ]
  bothTest.each(telling(lies, ...FEW))('whose content %s is refused, and nothing changes', async (_, why, forgery) => {
    const { to, full } = await bundle()
    const there = below()
    expect(await there.refuses(await forge(full.files, to, forgery))).toMatch(why)
    expect(there.store.carried.listStoredSources()).toEqual([])
  })

  test('with other bytes for a document than its name says is refused', async () => {
    const { to, full } = await bundle()
    const there = below()
    const opened = await inspectBundle(full.files)
    const pack = 'rows/catalog/catalog-document-00001.jsonl'
    const [line = ''] = (await opened.read(pack)).toString().split('\n')
    const row = JSON.parse(line) as { blob: string }
    const content = gunzipSync(await opened.read(`blobs/${row.blob}.gz`))
    await opened.close()
    content[0] = (content[0] ?? 0) ^ 1
    const other = gzipSync(content)
    const forged = await forge(full.files, to, {
      rows: (name, lines) =>
        name === pack
          ? [JSON.stringify({ ...row, stored: other.length, chunks: [other.length] }), ...lines.slice(1)]
          : lines,
      stored: (name, bytes) => (name === `blobs/${row.blob}.gz` ? other : bytes),
    })
    expect(await there.refuses(forged)).toMatch(/does not have the \d+ bytes of its digest/)
    expect(countCatalog(there.dir).documents).toBe(0)
  })

  test('with a pack of many lines is read line by line', async () => {
    const name = 'rows/osv/osv-tombstone-00001.jsonl'
    const members = [{ name }] as Manifest['members']
    const read = (): Promise<Buffer> => Promise.resolve(Buffer.alloc(2_000_000, '\n'))
    const lines = eachLine({ manifest: { kind: 'full', members }, read }, 'osv', 'osv-tombstone')
    await expect(lines.next()).rejects.toThrow(`${name} has an empty line`)
  })
})

longTest('stored data that can no longer be read is repaired by importing a full bundle again', async () => {
  const { full } = await bundle()
  const there = below()
  await there.take(full.files)
  const db = openWriter(there.dir)
  onTestFinished(() => void db.close())
  db.exec(`UPDATE catalog_answer SET links = '[{"', mentions = '{'; UPDATE catalog_list SET frame = '{'`)
  db.exec(`INSERT INTO catalog_answer SELECT '/v1/me/x', resource, owner, owner_sha, status, body, size, sha256, changed,
    etag, '["x"]', mentions, NULL, NULL FROM catalog_answer LIMIT 1`)
  expect((await there.take(full.files, { again: true })).outcome).toBe('applied')
  expect(there.digest()).toBe(full.manifest.digest)
})
