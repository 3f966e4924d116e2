import { createCipheriv, createHash } from 'node:crypto'
import { join } from 'node:path'
import { crc32, deflateRawSync, gunzipSync } from 'node:zlib'
import { describe, expect, onTestFinished } from 'vitest'
import { longTest, test } from '../../../support/tables.ts'
import { openBundle } from '../../../../src/features/bundles/import/open.ts'
import { eachInChunk } from '../../../../src/features/bundles/import/records/layout.ts'
import { sendRecords } from '../../../../src/features/bundles/import/records/read.ts'
import { type Chunk, TRANSFER_BYTES, consumeChunks } from '../../../../src/base/threads/chunks.ts'
import { createZipWriter } from '../../../../src/archive/zip/writer.ts'
import { keyPair, scratch, trust, writeBundle } from '../fixtures.ts'

interface Given {
  id: string
  content: Buffer
  deflated: Buffer
  /** What its row says about the content. */
  sha256: string
}

function given(id: string, content: Buffer): Given {
  const sha256 = createHash('sha256').update(content).digest('hex')
  return { id, content, deflated: deflateRawSync(content), sha256 }
}

/** A bundle of records, in the order of their ids. */
async function bundleOf(records: readonly Given[]) {
  const pieces: Buffer[] = []
  const zip = createZipWriter((piece) => pieces.push(Buffer.from(piece)))
  const rows = records.map(({ id, content, deflated, sha256 }, i) => {
    const sum = crc32(content)
    const size = content.length
    zip.add({ name: `${id}.json`, crc32: sum, size, deflated })
    const modified = `2026-01-0${i + 1}T00:00:00Z`
    const asOf = i === 0 ? null : 1_700_000_000_000
    return JSON.stringify({ key: id, modified, crc32: sum, size, sha256, changed: 9 + i, asOf })
  })
  zip.finish()
  const dir = scratch()
  const key = keyPair(dir, 'key')
  const files = await writeBundle(
    join(dir, 'b.zip'),
    [key],
    [
      ['rows/osv/osv-record-00001.jsonl', Buffer.from(`${rows.join('\n')}\n`)],
      ['osv/all.zip', Buffer.concat(pieces)],
    ],
  )
  const bundle = await openBundle(files, trust([key]))
  onTestFinished(() => bundle.close())
  return bundle
}

type Opened = Awaited<ReturnType<typeof bundleOf>>

/** Reads the records here, as those of a small archive are. */
function readHere(bundle: Opened, use: (chunk: Chunk) => void): Promise<unknown> {
  return sendRecords(bundle, (chunk) => {
    use(chunk)
    return Promise.resolve(new Uint8Array(chunk.buffer))
  })
}

/** Reads them in a thread, as those of a large archive are. */
function readThere(bundle: Opened, use: (chunk: Chunk) => void): Promise<void> {
  const file = new URL('../../../../src/features/bundles/import/records/records.worker.ts', import.meta.url)
  return consumeChunks({ file, data: bundle.excerpt(() => true) }, use)
}

describe.each([
  ['here', readHere],
  ['in a thread', readThere],
])('the records of a bundle, read %s', (_, read) => {
  longTest('have the values and the bytes of their rows, whatever their size', async () => {
    const noise = createCipheriv('aes-128-ctr', Buffer.alloc(16), Buffer.alloc(16))
    const records = [
      given('A-1', Buffer.from('{"id":"A-1"}')),
      given('B-2', noise.update(Buffer.alloc(TRANSFER_BYTES + 9))),
      given('C-é', Buffer.from('{"id":"C"}')),
      given('D-4', Buffer.alloc(0)),
    ]
    const found: unknown[] = []
    await read(await bundleOf(records), (chunk) =>
      eachInChunk(chunk, ({ id, modified, sha256, body, asOf, bodyCrc32 }, changed) => {
        expect(bodyCrc32).toBe(crc32(body))
        const size = gunzipSync(body).length
        found.push([id, modified, sha256.toString('hex'), size, asOf === null, changed])
      }),
    )
    expect(found).toEqual(
      records.map(({ id, content, sha256 }, i) => [
        ...[id, `2026-01-0${i + 1}T00:00:00Z`, sha256, content.length, i === 0, 9 + i],
      ]),
    )
  })

  test('are refused with the reason where one is not what its row says', async () => {
    const records = ['A-1', 'B-2', 'C-3'].map((id) => given(id, Buffer.from(id)))
    const forged = records.with(1, { ...given('B-2', Buffer.from('B-2')), sha256: 'ab'.repeat(32) })
    const reading = read(await bundleOf(forged), () => undefined)
    await expect(reading).rejects.toMatchObject({
      code: 'bundle',
      message: 'record B-2 does not have the bytes that its row names',
    })
  })
})

test('a record whose stream hides another gzip member in it is refused', async () => {
  const content = Buffer.from('{"id":"B-2"}')
  const header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]
  const hidden = Buffer.concat([...[deflateRawSync(''), Buffer.alloc(8), Buffer.from(header), deflateRawSync(content)]])
  const records = [given('A-1', Buffer.from('{"id":"A-1"}')), { ...given('B-2', content), deflated: hidden }]
  const reading = readHere(await bundleOf(records), () => undefined)
  await expect(reading).rejects.toThrow(/^record B-2 in osv\/all\.zip: inflates to 0 bytes/)
})
