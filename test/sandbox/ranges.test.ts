import { beforeAll, describe, expect } from 'vitest'
import type { Sandbox } from './server.ts'
import { exchange } from './exchange.ts'
import { ZIP_PATH, sandboxes } from './fixtures.ts'
import { longTest, test } from '../support/tables.ts'

const open = sandboxes()

describe('a range request for the archive', () => {
  let sandbox: Sandbox
  let whole: Buffer
  beforeAll(async () => {
    sandbox = await open({ records: 1500 }) // more than one chunk of 1 MiB
    whole = sandbox.feed.archive()
  })
  const ask = (headers: Record<string, string>) => exchange(sandbox.url + ZIP_PATH, headers)

  test('gets exactly the bytes of a single range', async () => {
    const size = whole.length
    const cases: [string, number, number][] = [
      ['bytes=0-9', 0, 10],
      ['bytes=10-', 10, size],
      ['bytes=-22', size - 22, size],
      ['bytes=1048570-1048590', 1_048_570, 1_048_591],
      [`bytes=${size - 1}-${size + 100}`, size - 1, size],
      [`bytes=-${size * 2}`, 0, size],
    ]
    for (const [range, start, end] of cases) {
      const { status, headers, body } = await ask({ range })
      expect(status, range).toBe(206)
      expect(headers['content-range']).toBe(`bytes ${start}-${end - 1}/${size}`)
      expect(headers['content-length']).toBe(String(end - start))
      expect(body.equals(whole.subarray(start, end)), range).toBe(true)
    }
  })

  test('gets a 416 with the size when it begins behind the end', async () => {
    for (const range of [`bytes=${whole.length}-`, 'bytes=-0']) {
      const { status, headers } = await ask({ range })
      expect([status, headers['content-range']]).toEqual([416, `bytes */${whole.length}`])
    }
  })

  longTest('is ignored when its ranges are malformed or several', async () => {
    for (const range of ['bytes=9-0', 'bytes=a-b', 'bytes=-', 'lines=1-2', 'bytes=0-1,5-6']) {
      expect((await ask({ range })).status, range).toBe(200)
    }
  })

  longTest('gets the whole archive when If-Range names another one', async () => {
    const { headers } = await ask({})
    const { etag = '', 'last-modified': date = '' } = headers
    const range = 'bytes=0-9'
    expect((await ask({ range, 'if-range': etag })).status).toBe(206)
    expect((await ask({ range, 'if-range': date })).status).toBe(206)
    expect((await ask({ range, 'if-range': '"other"' })).status).toBe(200)
    expect((await ask({ range, 'if-range': `W/${etag}` })).status).toBe(200)
    expect((await ask({ range, 'if-none-match': etag })).status).toBe(304)
  })

  test('gets the whole archive where ranges are switched off', async () => {
    const { url } = await open({ ranges: false })
    const { status, headers } = await exchange(url + ZIP_PATH, { range: 'bytes=0-9' })
    expect([status, headers['accept-ranges']]).toEqual([200, undefined])
  })
})
