import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openBundle } from '../../src/bundle/open.ts'
import { createBundleWriter } from '../../src/bundle/write.ts'
import { head, keyPair, refusal, scratch, trust } from '../bundle/bundles.ts'

const folder = scratch()
const key = keyPair(folder, 'key')

test('a bundle takes over 65,535 members, and unzip finds no fault in it', async () => {
  const path = join(folder, 'many.zip')
  const writer = createBundleWriter(path, { split: null, force: false })
  const byte = Buffer.of(1)
  const nameOf = (i: number): string => `blobs/${i.toString(16).padStart(64, '0')}.gz`
  for (let i = 0; i < 65_600; i++) await writer.addStored(nameOf(i), 1, [byte])
  await writer.finish(head(), [key])
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
      for (let left = size; left > 0; left -= chunk.length)
        yield chunk.subarray(0, Math.min(left, chunk.length))
    }
    const writer = createBundleWriter(path, { split, force: true })
    await writer.addStored('osv/all.zip', size, zeros())
    await writer.addDeflated('rows/osv/osv-record-00001.jsonl', Buffer.from('{}\n'))
    const { files } = await writer.finish(head(), [key])
    expect(await refusal(files, trust([key]))).toBeNull()
    if (split === null) {
      const script =
        'import sys, zipfile; print(zipfile.ZipFile(sys.argv[1]).infolist()[0].file_size)'
      const { stdout, error } = spawnSync('python3', ['-c', script, path], { encoding: 'utf8' })
      if (error === undefined) expect(Number(stdout)).toBe(size)
    }
    for (const file of files) rmSync(file)
  },
)
