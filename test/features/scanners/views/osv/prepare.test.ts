import { expect, test } from 'vitest'
import { deflate } from '../../../../../src/base/gzip/member.ts'
import type { Chunk } from '../../../../../src/base/threads/chunks.ts'
import { createPreparedWriter, eachPrepared } from '../../../../../src/features/scanners/views/osv/prepare/layout.ts'
import { type PreparedRecord, prepareRecord } from '../../../../../src/features/scanners/views/osv/prepare/prepared.ts'
import { record } from '../fixtures.ts'

const rules = { vendors: new Set(['Root']), chosen: null }

function prepared(id: string, text: string): PreparedRecord {
  const content = Buffer.from(text)
  const sums = { sha256: Buffer.alloc(32, id), crc32: 0xfedcba98, deflated: deflate(content) }
  return prepareRecord({ id, stamp: '2026-05-01T00:00:00Z', content, ...sums }, rules)
}

test('records that were prepared come out of the chunks as they went in, also one larger than a chunk', async () => {
  const noise = Array.from({ length: 45_000 }, (_, i) => (i * 2654435761).toString(36)).join('')
  const plain = record('é "a"', '2026-06-01', ['Root:npm', 'plain'], ['Root:Debian:12', 'ü'])
  const records = [
    prepared('é "a"', plain),
    prepared('large', plain.replace('"id"', `"details":"${noise}","id"`)),
    prepared('own', record('own', 'soon', ['npm', 'p'])),
    prepared('malformed', '{'),
  ]
  const chunks: Chunk[] = []
  const writer = createPreparedWriter((chunk) => {
    chunks.push(chunk)
    return Promise.resolve(new Uint8Array(1 << 18))
  })
  for (const one of records) await writer.add(one)
  await writer.end()
  expect(chunks.length).toBeGreaterThan(2)
  const read: PreparedRecord[] = []
  for (const chunk of chunks) eachPrepared(chunk, (one) => read.push(one))
  const bytesOf = ({ own, derived, ...rest }: PreparedRecord): unknown => ({
    ...rest,
    own: { ...own, deflated: Buffer.from(own.deflated).toString('base64') },
    derived: derived && { ...derived, content: Buffer.from(derived.content).toString() },
  })
  expect(read.map(bytesOf)).toEqual(records.map(bytesOf))
})
