import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { exportInThread } from '../../src/features/bundles/tasks.ts'
import { openBundle } from '../../src/features/bundles/import/open.ts'
import { createBundleWriter } from '../../src/features/bundles/export/writer.ts'
import { head, keyPair, refusal, scratch, trust, writeBundle } from '../features/bundles/fixtures.ts'
import { createBench } from '../support/mirror.ts'

const folder = scratch()
const key = keyPair(folder, 'key')

test('a bundle takes over 65,535 members, and unzip finds no fault in it', async () => {
  const path = join(folder, 'many.zip')
  const writer = createBundleWriter(path, { split: null, force: false })
  const byte = Buffer.of(1)
  const nameOf = (i: number): string => `blobs/${i.toString(16).padStart(64, '0')}.gz`
  for (let i = 0; i < 65_600; i++) await writer.addStored(nameOf(i), 1, [byte])
  await writer.complete(head(), [key])
  await writer.publish()
  expect(await refusal([path], trust([key]))).toBeNull()
  const bundle = await openBundle([path], trust([key]))
  expect(bundle.manifest.members).toHaveLength(65_600)
  expect(await bundle.read(nameOf(65_599))).toEqual(byte)
  await bundle.close()
  const { status, error } = spawnSync('unzip', ['-tqq', path])
  if (error === undefined) expect(status).toBe(0)
})

test.each([null, 1_000_000_000])(
  'a bundle takes a member over 4 GiB and what lies behind it, split at %s',
  async (split) => {
    const path = join(folder, 'large.zip')
    const size = 2 ** 32 + 12_345
    function* zeros(): Generator<Buffer> {
      const chunk = Buffer.alloc(1 << 20)
      for (let left = size; left > 0; left -= chunk.length) yield chunk.subarray(0, Math.min(left, chunk.length))
    }
    const writer = createBundleWriter(path, { split, force: true })
    await writer.addStored('osv/all.zip', size, zeros())
    await writer.addDeflated('rows/osv/osv-record-00001.jsonl', Buffer.from('{}\n'))
    await writer.complete(head(), [key])
    const files = await writer.publish()
    expect(await refusal(files, trust([key]))).toBeNull()
    if (split === null) {
      const script = 'import sys, zipfile; print(zipfile.ZipFile(sys.argv[1]).infolist()[0].file_size)'
      const { stdout, error } = spawnSync('python3', ['-c', script, path], { encoding: 'utf8' })
      if (error === undefined) expect(Number(stdout)).toBe(size)
    }
    for (const file of files) rmSync(file)
  },
)

test('a bundle that was changed anywhere in any way is refused, and never in words of another program', async () => {
  const path = join(folder, 'small.zip')
  await writeBundle(path, [key])
  const bytes = readFileSync(path)
  const whom = trust([key])
  const place = fc.nat(bytes.length - 1)
  const edit = fc.oneof(
    fc.tuple(place, fc.uint8Array({ minLength: 1, maxLength: 8 })).map(([at, some]) => {
      const copy = Buffer.from(bytes)
      copy.set(some.subarray(0, copy.length - at), at)
      return copy
    }),
    fc.tuple(place, fc.uint8Array({ maxLength: 40 })).map(([at, some]) => {
      return Buffer.concat([bytes.subarray(0, at), some, bytes.subarray(at)])
    }),
    fc.tuple(place, place).map(([a, b]) => {
      return Buffer.concat([bytes.subarray(0, Math.min(a, b)), bytes.subarray(Math.max(a, b))])
    }),
    fc.tuple(place, place, fc.nat(200)).map(([from, to, length]) => {
      const copy = Buffer.from(bytes)
      bytes.copy(copy, to, from, from + length)
      return copy
    }),
  )
  await fc.assert(
    fc.asyncProperty(edit, async (changed) => {
      writeFileSync(path, changed)
      const said = await refusal([path], whom) // throws what is no refusal of ours
      expect(said === null).toBe(changed.equals(bytes))
    }),
    { numRuns: 1000 },
  )
})

test('exports beside syncs that never stop are each of one published state, in order', async () => {
  const bench = await createBench({ sandbox: { records: 300, service: false } })
  await bench.run('feeds')
  await bench.run('osv')
  const states = new Map([[bench.store.carried.digestSources().digest, 0]])
  const stop = new AbortController()
  const syncs = (async () => {
    for (let state = 1; !stop.signal.aborted; state++) {
      bench.sandbox.feed.change(1)
      await bench.run('osv')
      states.set(bench.store.carried.digestSources().digest, state)
    }
  })()
  const exported: { digest: string; sequence: number }[] = []
  for (let i = 0; i < 15; i++) {
    const since = i % 3 === 2 ? String(exported.at(-1)?.sequence) : null
    const task = {
      dataDir: bench.dir,
      path: join(folder, `${i}.zip`),
      sources: null,
      need: null,
      since,
      split: null,
      force: false,
      keyFiles: [key.path],
      trustRoot: [],
      expireDays: 0,
      keep: 30,
      spared: [],
      program: 'test',
    }
    const { manifest, files } = await exportInThread(task, () => undefined)
    expect(await refusal(files, trust([key], { now: Date.now }))).toBeNull()
    exported.push(manifest)
  }
  stop.abort()
  await syncs
  const order = exported.map(({ digest }) => states.get(digest) ?? -1)
  expect(order).not.toContain(-1)
  expect(order).toEqual([...order].sort((a, b) => a - b))
  const sequences = exported.map(({ sequence }) => sequence)
  expect(sequences).toEqual([...sequences].sort((a, b) => a - b))
  await bench.close()
})
