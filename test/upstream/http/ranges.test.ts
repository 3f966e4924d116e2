import { describe, expect } from 'vitest'
import { OSV_ARCHIVE } from '../../../src/base/domain/feed-paths.ts'
import { fetchArchiveRange } from '../../../src/upstream/osv.ts'
import { createOrigin } from '../../support/origin.ts'
import { connect, refusal, sandbox } from './sessions.ts'
import { longTest, test } from '../../support/tables.ts'

const FILE = Buffer.from('0123456789')

/** An origin that answers every range with this status, header and body. */
async function answering(
  status: number,
  headers: Record<string, string>,
  body: string | Buffer = '',
): Promise<ReturnType<typeof connect>> {
  const { url } = await createOrigin((_request, response) => {
    response.writeHead(status, headers).end(body)
  })
  return connect(url)
}

describe('a range of the archive', () => {
  test('has the requested bytes, with the size of the whole and its validators', async () => {
    const service = await sandbox()
    const zip = service.feed.archive()
    const { session } = connect(service.url)
    const middle = await fetchArchiveRange(session, { from: 10, length: 20 }, {}, 2000)
    expect(middle).toMatchObject({ start: 10, total: zip.length, body: zip.subarray(10, 30) })
    const end = await fetchArchiveRange(session, { suffix: 100 }, {}, 2000)
    expect(end).toMatchObject({ start: zip.length - 100, body: zip.subarray(-100) })
    expect(session.cost).toEqual({ requests: 2, bytes: 120, retries: 0 })
    expect(service.requests.entries[0]?.headers['accept-encoding']).toBe('identity')
  })

  test('longer than the archive has all of it', async () => {
    const service = await sandbox({ records: 2 })
    const zip = service.feed.archive()
    const { session } = connect(service.url)
    const whole = await fetchArchiveRange(session, { suffix: zip.length + 1000 }, {}, 2000)
    expect(whole).toMatchObject({ start: 0, total: zip.length, body: zip })
  })

  test('of another version is unavailable, and of the stored version unchanged', async () => {
    const service = await sandbox()
    const { session } = connect(service.url)
    const first = await fetchArchiveRange(session, { suffix: 100 }, {}, 2000)
    if (typeof first === 'string') throw new Error(first)
    const ask = (validators: object): ReturnType<typeof fetchArchiveRange> =>
      fetchArchiveRange(session, { suffix: 100 }, validators, 2000)
    expect(await ask({ known: first.meta })).toBe('unchanged')
    expect(await ask({ ifRange: first.meta.etag })).toMatchObject({ start: first.start })
    service.feed.change(1)
    expect(await ask({ ifRange: first.meta.etag })).toBe('unavailable')
    expect(await ask({ known: first.meta })).toMatchObject({
      total: service.feed.archive().length,
    })
    service.faults.set(OSV_ARCHIVE, { kind: 'status', status: 304, headers: { ETag: '"another"' } })
    expect(await ask({ known: first.meta })).toBe('unavailable')
  })

  longTest('is unavailable where ranges are ignored, and the archive is not downloaded for it', async () => {
    const service = await sandbox({ records: 2000, ranges: false })
    const { session } = connect(service.url)
    expect(await fetchArchiveRange(session, { suffix: 100 }, {}, 2000)).toBe('unavailable')
    expect(session.cost).toEqual({ requests: 1, bytes: 0, retries: 0 })
  })

  test.each([
    ['another place', 206, { 'Content-Range': 'bytes 3-6/10' }, '3456'],
    ['fewer bytes', 206, { 'Content-Range': 'bytes 2-4/10' }, '234'],
    ['more bytes', 206, { 'Content-Range': 'bytes 2-6/10' }, '23456'],
    ['an open total', 206, { 'Content-Range': 'bytes 2-5/*' }, '2345'],
    ['a total before its end', 206, { 'Content-Range': 'bytes 2-5/5' }, '2345'],
    ['another unit', 206, { 'Content-Range': 'lines 2-5/10' }, '2345'],
    ['no place at all', 206, {}, '2345'],
    ['several parts', 206, { 'Content-Type': 'multipart/byteranges; boundary=x' }, '--x'],
    ['a compressed part', 206, { 'Content-Range': 'bytes 2-5/10', 'Content-Encoding': 'gzip' }, 'abcd'],
    ['the whole', 200, {}, FILE],
    ['a page', 200, { 'Content-Type': 'text/html' }, '<html>'],
    ['nothing', 204, {}, ''],
    ['unsatisfiable', 416, { 'Content-Range': 'bytes */2' }, ''],
    ['unchanged, unasked', 304, {}, ''],
  ] as [string, number, Record<string, string>, string][])(
    'is unavailable when the answer is %s',
    async (_what, status, headers, body) => {
      const { session } = await answering(status, headers, body)
      expect(await fetchArchiveRange(session, { from: 2, length: 4 }, {}, 2000)).toBe('unavailable')
      expect(session.cost.requests).toBe(1)
    },
  )

  test('by suffix is unavailable when the answer is not the end', async () => {
    const { session } = await answering(206, { 'Content-Range': 'bytes 2-5/10' }, '2345')
    expect(await fetchArchiveRange(session, { suffix: 4 }, {}, 2000)).toBe('unavailable')
  })

  test('with an inconsistent Content-Range is unavailable', async () => {
    const service = await sandbox()
    const { session } = connect(service.url)
    service.faults.set(OSV_ARCHIVE, { kind: 'wrongRange', how: 'shifted' }, { times: 1 })
    expect(await fetchArchiveRange(session, { from: 5, length: 9 }, {}, 2000)).toBe('unavailable')
    service.faults.set(OSV_ARCHIVE, { kind: 'wrongRange', how: 'total' }, { times: 1 })
    expect(await fetchArchiveRange(session, { suffix: 100 }, {}, 2000)).toBe('unavailable')
  })

  test('that is shorter than declared is tried again, then given up', async () => {
    const headers = { 'Content-Range': 'bytes 2-5/10', 'Transfer-Encoding': 'chunked' }
    for (const body of ['234', '23456']) {
      const { session } = await answering(206, headers, body)
      const asked = fetchArchiveRange(session, { from: 2, length: 4 }, {}, 2000)
      expect((await refusal('upstream_unreachable', asked)).message).toContain('not as long')
      expect(session.cost.requests).toBe(3)
    }
  })

  test('that breaks off is tried again', async () => {
    const service = await sandbox({ records: 200 })
    service.faults.set(OSV_ARCHIVE, { kind: 'reset', bytes: 10 }, { times: 1 })
    service.faults.set(OSV_ARCHIVE, { kind: 'status', status: 503 }, { times: 1 })
    const { session } = connect(service.url)
    const zip = service.feed.archive()
    const part = await fetchArchiveRange(session, { from: 0, length: 5000 }, {}, 2000)
    expect(part).toMatchObject({ body: zip.subarray(0, 5000) })
    expect(session.cost).toMatchObject({ requests: 3, retries: 2 })
  })

  longTest('without an answer ends at its deadline', async () => {
    const service = await sandbox()
    service.faults.set(OSV_ARCHIVE, { kind: 'stall', at: 'body', bytes: 10 })
    const { session } = connect(service.url, { RETRIES: '0', LOW_SPEED_SECONDS: '30' })
    await refusal('upstream_unreachable', fetchArchiveRange(session, { suffix: 100 }, {}, 100))
  })
})
