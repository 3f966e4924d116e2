import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import AdmZip from 'adm-zip'
import { describe, expect, onTestFinished } from 'vitest'
import { type ExportOptions, exportBundle } from '../../../../src/features/bundles/export/export.ts'
import { exportInThread } from '../../../../src/features/bundles/tasks.ts'
import { inspectBundle } from '../../../../src/features/bundles/import/open.ts'
import { EMPTY_DIGEST } from '../../../../src/store/replication/rows.ts'
import { type SummaryHeader, writeSummary } from '../../../../src/features/bundles/export/summary.ts'
import { SANDBOX_KEYS } from '../../../sandbox/service/credentials.ts'
import { type CatalogBench, catalogBench } from '../../../support/catalog/mirror.ts'
import { type Bench, createBench } from '../../../support/mirror.ts'
import { PATCH_FEED, tamper } from '../../../sync/fixtures.ts'
import { keyPair, plainExport, refusal, scratch, trust } from '../fixtures.ts'
import { longTest, test } from '../../../support/tables.ts'

const folder = scratch()
const key = keyPair(folder, 'key')
const NOW = Date.UTC(2026, 7, 1)
let count = 0

/** A mirror of the feeds alone, which most of this needs no more than. */
async function mirror(): Promise<Bench> {
  const bench = await createBench({ sandbox: { records: 5, service: false } })
  onTestFinished(() => bench.close())
  for (const source of ['feeds', 'osv'] as const) await bench.run(source)
  return bench
}

async function wholeMirror(): Promise<CatalogBench> {
  const bench = await catalogBench({ images: 1, tags: 2, packages: 2, tickets: 3 })
  for (const source of ['feeds', 'osv', 'catalog'] as const) await bench.run(source)
  return bench
}

function optionsFor({ dir }: { dir: string }, more: Partial<ExportOptions> = {}): ExportOptions {
  const path = join(folder, `${++count}.zip`)
  return { ...plainExport({ dataDir: dir, path, keys: [key], now: () => NOW }), ...more }
}

/** All rows of a bundle, by pack. */
function rowsIn(path: string): Map<string, { key?: string; removed?: string }[]> {
  const zip = new AdmZip(path)
  const packs = zip.getEntries().filter(({ entryName }) => entryName.startsWith('rows/'))
  return new Map(
    packs.map((entry) => {
      const lines = entry.getData().toString().trimEnd().split('\n')
      return [entry.entryName, lines.map((line) => JSON.parse(line) as { key?: string })]
    }),
  )
}

describe('a full export', () => {
  longTest('contains the stored archive, a row for each item and each document once', async () => {
    const bench = await wholeMirror()
    const options = optionsFor(bench)
    const { manifest, files, partial } = await exportBundle(options)
    expect(files).toEqual([options.path])
    expect(partial).toEqual([])
    expect(await refusal(files, trust([key], { now: null }))).toBeNull()
    expect(manifest).toMatchObject({ kind: 'full', sequence: 1, base: null, keys: [key.id] })
    expect(manifest.digest).toBe(bench.store.carried.digestSources().digest)
    expect(manifest.expiresAt).toBe(new Date(NOW + 90 * 86_400_000).toISOString())
    const zip = new AdmZip(options.path)
    const archive = bench.store.osv.readArchive()
    const held = readFileSync(join(bench.dir, 'derived', archive?.file ?? ''))
    expect(zip.getEntry('osv/all.zip')?.getData().equals(held)).toBe(true)
    const rows = rowsIn(options.path)
    expect(rows.get('rows/osv/osv-record-00001.jsonl')).toHaveLength(5)
    const documents = rows.get('rows/catalog/catalog-document-00001.jsonl') ?? []
    expect(documents.length).toBeGreaterThan(0)
    const blobs = zip.getEntries().filter(({ entryName }) => entryName.startsWith('blobs/'))
    expect(new Set(blobs.map(({ entryName }) => entryName)).size).toBe(blobs.length)
    for (const { key: digest } of documents) {
      const blob = zip.getEntry(`blobs/${digest}.gz`)?.getData() ?? Buffer.alloc(0)
      expect(gunzipSync(blob).length).toBeGreaterThan(0)
    }
  })

  longTest('has the same sequence until something changes, and then the next', async () => {
    const bench = await mirror()
    const sequences: number[] = []
    for (const change of [false, false, true]) {
      if (change) {
        bench.sandbox.feed.change(1)
        await bench.run('osv')
      }
      sequences.push((await exportBundle(optionsFor(bench))).manifest.sequence)
    }
    expect(sequences).toEqual([1, 1, 2])
  })

  longTest('contains no credential, no key and no address of upstream', async () => {
    const bench = await wholeMirror()
    bench.store.keys.createKey('somebody', NOW)
    const { key: local } = bench.store.keys.createKey('another', NOW)
    const options = optionsFor(bench)
    await exportBundle(options)
    const zip = new AdmZip(options.path)
    const texts = zip.getEntries().map((entry) => [entry.entryName, textsIn(entry.getData()).join('\n')] as const)
    expect(texts.some(([, text]) => text.includes('cyclonedx'))).toBe(true)
    const { sandbox } = bench
    const secret = bench.store.secrets.readSecret('links')
    const words = [
      ...Object.values(SANDBOX_KEYS),
      ...[local, secret.toString('hex'), secret.toString('base64')],
      ...[sandbox.url, sandbox.catalogUrl, sandbox.artifactUrl, sandbox.identityUrl],
      ...['PRIVATE KEY', 'X-Amz-Signature', bench.dir, folder],
    ]
    for (const word of words.map((one) => one.replace(/^https?:\/\//, '')))
      for (const [name, text] of texts) expect(text.includes(word), `${word} in ${name}`).toBe(false)
  })

  longTest('is of one snapshot, also when a sync publishes while it is written', async () => {
    const bench = await mirror()
    const before = bench.store.carried.digestSources().digest
    const syncs: Promise<unknown>[] = []
    const { keys: _keys, now: _now, onProgress: _shown, ...task } = optionsFor(bench)
    // In a thread of its own, as ever: in one with the sync, each would wait for the other.
    const { manifest } = await exportInThread({ ...task, keyFiles: [key.path] }, () => {
      if (syncs.length > 0) return
      bench.sandbox.feed.change(1)
      syncs.push(bench.run('osv'))
    })
    await Promise.all(syncs)
    expect(manifest.digest).toBe(before)
    expect(bench.store.carried.digestSources().digest).not.toBe(before)
    const after = await exportBundle(optionsFor(bench))
    expect(after.manifest.sequence).toBe(manifest.sequence + 1)
  })

  test('of some sources contains these alone', async () => {
    const bench = await mirror()
    const options = optionsFor(bench, { sources: ['feeds'] })
    const { manifest } = await exportBundle(options)
    expect(Object.keys(manifest.sources)).toEqual(['feeds'])
    expect(manifest.members.some(({ name }) => name.startsWith('osv/'))).toBe(false)
    await expect(exportBundle(optionsFor(bench, { sources: ['identity'] }))).rejects.toThrow('nothing is mirrored')
  })

  longTest('that fails on a damaged archive or lost document leaves no file', async () => {
    const bench = await mirror()
    const archive = join(bench.dir, 'derived', bench.store.osv.readArchive()?.file ?? '')
    const bytes = readFileSync(archive)
    bytes[100] = (bytes[100] ?? 0) ^ 1
    writeFileSync(archive, bytes)
    const options = optionsFor(bench)
    await expect(exportBundle(options)).rejects.toMatchObject({ code: 'corrupt' })
    expect(readdirSync(folder).filter((name) => name.includes(`${count}.zip`))).toEqual([])
  })
})

longTest('a document that is damaged in the store is not exported', async () => {
  const bench = await wholeMirror()
  const [document] = bench.store.carried.eachRow('catalog', 'catalog-document')
  const digest = document?.key ?? ''
  const bytes = bench.store.catalog.readChunk(digest, 0) ?? Buffer.alloc(0)
  bytes[bytes.length - 9] = (bytes[bytes.length - 9] ?? 0) ^ 0xff
  await bench.store.exclusive(() => {
    bench.store.carried.clearChunks(digest)
    bench.store.carried.putChunk(digest, 0, bytes)
  })
  await expect(exportBundle(optionsFor(bench))).rejects.toMatchObject({ code: 'corrupt' })
})

test.each([
  ['cut short', Buffer.from('1f8b0800', 'hex')],
  ['others', gzipSync('{"other":true}')],
])('a feed whose stored bytes are %s is not exported', async (_name, bytes) => {
  const bench = await mirror()
  tamper(bench.dir, 'UPDATE document SET body = ? WHERE path = ?', bytes, PATCH_FEED)
  const exported = exportBundle(optionsFor(bench))
  await expect(exported).rejects.toMatchObject({ code: 'corrupt' })
  await expect(exported).rejects.toThrow(
    `${PATCH_FEED} is damaged on this mirror and is not exported: run "patchmirror doctor --data --repair"`,
  )
})

/** The row of a feed, and that of the first record. */
const OF_FEED = `WHERE path = '${PATCH_FEED}'`
const OF_RECORD = 'WHERE id = (SELECT min(id) FROM osv_record)'

test.each([
  ['a feed of which only the row is left', `UPDATE document SET body = NULL ${OF_FEED}`],
  ['a feed of another size than its row says', `UPDATE document SET size = size + 1 ${OF_FEED}`],
  ['a feed whose row says that upstream has none', `UPDATE document SET present = 0 ${OF_FEED}`],
  ['a record with another digest than its row says', `UPDATE osv_record SET sha256 = zeroblob(32) ${OF_RECORD}`],
])('%s is not exported, since no mirror would accept it', async (_name, sql) => {
  const bench = await mirror()
  tamper(bench.dir, sql)
  await expect(exportBundle(optionsFor(bench))).rejects.toMatchObject({ code: 'corrupt' })
})

longTest('a record whose stored bytes are damaged is in no delta', async () => {
  const bench = await mirror()
  const { manifest } = await exportBundle(optionsFor(bench))
  bench.sandbox.feed.change(1)
  await bench.run('osv')
  tamper(bench.dir, 'UPDATE osv_body SET bytes = zeroblob(length(bytes))')
  const delta = exportBundle(optionsFor(bench, { since: String(manifest.sequence) }))
  await expect(delta).rejects.toThrow(/^no mirror would accept this bundle: record ROOT-/)
})

describe('a delta export', () => {
  longTest('contains the changes since the named export, and the changed records alone', async () => {
    const bench = await mirror()
    const first = await exportBundle(optionsFor(bench))
    bench.sandbox.feed.change(1)
    await bench.run('osv')
    const second = await exportBundle(optionsFor(bench, { since: '1' }))
    const { base, sources, kind, sequence } = second.manifest
    expect({ kind, sequence }).toEqual({ kind: 'delta', sequence: 2 })
    expect(base?.sequence).toBe(1)
    expect(base?.digest).toBe(first.manifest.digest)
    expect(sources.osv?.bases).toEqual([first.manifest.sources.osv?.digest])
    const zip = new AdmZip(second.files[0])
    const records = rowsIn(second.files[0] ?? '').get('rows/osv/osv-record-00001.jsonl') ?? []
    expect(records).toHaveLength(1)
    const changed = new AdmZip(zip.getEntry('osv/changed.zip')?.getData())
    expect(changed.getEntries().map(({ entryName }) => entryName)).toEqual([`${records[0]?.key}.json`])
    expect(changed.getEntries()[0]?.getData()).toEqual(bench.content(records[0]?.key ?? ''))
  })

  longTest('applies to all states exported since its base: it contains what was changed and changed back', async () => {
    const bench = await mirror()
    await exportBundle(optionsFor(bench))
    bench.sandbox.feed.change(1)
    await bench.run('osv')
    const middle = await exportBundle(optionsFor(bench))
    bench.sandbox.feed.change(1)
    await bench.run('osv')
    const { manifest } = await exportBundle(optionsFor(bench, { since: '1' }))
    expect(manifest.sources.osv?.bases).toHaveLength(2)
    expect(manifest.sources.osv?.bases).toContain(middle.manifest.sources.osv?.digest)
    expect(manifest.sources.feeds?.bases).toHaveLength(1)
  })

  test('accepts a snapshot as its base, and refuses an unknown or forgotten one', async () => {
    const bench = await mirror()
    const { manifest } = await exportBundle(optionsFor(bench))
    const snapshot = manifest.sources.osv?.snapshot.slice(0, 12) ?? ''
    const delta = await exportBundle(optionsFor(bench, { since: snapshot }))
    expect(delta.manifest.counts).toEqual({})
    expect(delta.manifest.sequence).toBe(1)
    const refused = (since: string) => exportBundle(optionsFor(bench, { since }))
    await expect(refused('99')).rejects.toThrow('never exported')
    await expect(refused('ffffffffffff')).rejects.toThrow('never exported')
    await expect(refused('yesterday')).rejects.toThrow('--since takes')
    await bench.store.transaction(() => {
      bench.store.ledger.forgetSummaries(0)
      return Promise.resolve({ commit: true })
    })
    await expect(refused('1')).rejects.toThrow('is not stored any more')
  })

  test('for a need file contains what the target mirror is missing, also when that is empty', async () => {
    const bench = await mirror()
    const need = await needOf(bench, false, {})
    const { manifest } = await exportBundle(optionsFor(bench, { need }))
    expect(manifest.base?.sequence).toBeNull()
    expect(manifest.sources.osv?.bases).toEqual([EMPTY_DIGEST])
    expect(manifest.counts['osv-record']).toEqual({ put: 5, removed: 0 })
  })

  longTest('for a brief need file is made as long as its state is recorded', async () => {
    const bench = await mirror()
    await exportBundle(optionsFor(bench))
    const { sources } = bench.store.carried.digestSources()
    const need = await needOf(bench, true, sources)
    bench.sandbox.feed.change(1)
    await bench.run('osv')
    const { manifest } = await exportBundle(optionsFor(bench, { need }))
    expect(manifest.base?.sequence).toBe(1)
    expect(manifest.counts['osv-record']).toEqual({ put: 1, removed: 0 })
    const unknown = await needOf(bench, true, { osv: 'e'.repeat(64) })
    await expect(exportBundle(optionsFor(bench, { need: unknown }))).rejects.toThrow('without --brief')
    const garbage = Buffer.from('garbage')
    await expect(exportBundle(optionsFor(bench, { need: garbage }))).rejects.toMatchObject({
      code: 'bundle',
    })
  })
})

/** A need file as the other side of the gap writes it, of a mirror that holds these states, or these rows. */
async function needOf({ store }: Bench, brief: boolean, digests: Partial<Record<string, string>>): Promise<Buffer> {
  const state = { snapshot: 'a'.repeat(64), asOf: NOW, records: 5 }
  const sources = Object.fromEntries(
    Object.entries(digests).map(([source, digest = '']) => [source, { ...state, digest }]),
  )
  const header: SummaryHeader = {
    format: 1,
    kind: 'patchmirror-summary',
    mirror: 'f'.repeat(32),
    digest: 'a'.repeat(64),
    sources,
    brief,
    createdAt: NOW,
    imported: null,
  }
  const chunks: Buffer[] = []
  for await (const chunk of writeSummary(store.carried, header)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

longTest('an export of an empty mirror, or beside another export, is refused', async () => {
  await expect(exportBundle(optionsFor({ dir: scratch() }))).rejects.toMatchObject({
    code: 'not_ready',
  })
  const bench = await mirror()
  const first = exportBundle(optionsFor(bench))
  await expect(exportBundle(optionsFor(bench))).rejects.toMatchObject({ code: 'locked' })
  const { files } = await first
  const bundle = await inspectBundle(files)
  expect(bundle.manifest.sequence).toBe(1)
  await bundle.close()
})

/** Everything that can be read in bytes: inflated, and what is base64 or an archive in them as well. */
function textsIn(data: Buffer): string[] {
  if (data[0] === 0x1f && data[1] === 0x8b) return textsIn(gunzipSync(data))
  if (data.subarray(0, 4).toString('latin1') === 'PK\x03\x04')
    return new AdmZip(data).getEntries().flatMap((entry) => textsIn(entry.getData()))
  const text = data.toString('latin1')
  const inner = [...text.matchAll(/"base64":"([^"]+)"/g)].map(([, base64 = '']) => base64)
  return [text, ...inner.flatMap((base64) => textsIn(Buffer.from(base64, 'base64')))]
}
