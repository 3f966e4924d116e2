import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { isPrivateAddress } from '../../src/upstream/http/destinations.ts'
import { fetchArtifact } from '../../src/upstream/artifacts.ts'
import { createSecretSearch } from '../../src/upstream/secret-search.ts'
import type { RawAnswer, Transport } from '../../src/upstream/http/transport.ts'

/** A host on the public internet, which a test cannot have: each URL leads on to the next, the last one is a document. */
function chain(locations: string[]): { transport: Transport; asked: string[] } {
  const asked: string[] = []
  const send: Transport['send'] = ({ url, headers }) => {
    asked.push(url.href)
    expect(Object.keys(headers).sort()).toEqual(['accept', 'accept-encoding', 'user-agent'])
    const location = locations[asked.length - 1]
    const body = Object.assign(Readable.from([Buffer.from('{}')]), {
      whole: () => null,
      dump: () => Promise.resolve(null),
    }) as unknown as RawAnswer['body']
    return Promise.resolve(
      location === undefined ? { status: 200, headers: {}, body } : { status: 302, headers: { location }, body },
    )
  }
  return { transport: { send, close: () => Promise.resolve() }, asked }
}

async function follow(locations: string[]): Promise<{ asked: string[]; cost: object }> {
  const { transport, asked } = chain(locations)
  const cost = { requests: 0, bytes: 0 }
  const options = { transport, isTrusted: () => false, maxBytes: 100, timeoutMs: 1000, cost }
  const rest = { userAgent: 'test', now: Date.now, secrets: createSecretSearch(() => []) }
  const sink = { begin: () => undefined, write: () => undefined }
  const { signal } = new AbortController()
  await fetchArtifact('https://store.example/a', (run) => run(), signal, { ...options, ...rest }, sink)
  return { asked, cost }
}

test('redirects between public hosts are followed, relative ones too', async () => {
  const { asked, cost } = await follow(['/b?sig=1', 'https://cdn.example/c'])
  expect(asked).toEqual(['https://store.example/a', 'https://store.example/b?sig=1', 'https://cdn.example/c'])
  expect(cost).toEqual({ requests: 3, bytes: 2 })
})

test.each([
  ['https://169.254.169.254/latest/meta-data/', /169\.254\.169\.254 is a private address/],
  ['https://10.0.0.1/', /private address/],
  ['http://store.example/b', /not an https URL \(http:\)/],
  ['file:///etc/passwd', /not an https URL \(file:\)/],
  ['//127.0.0.1/x', /private address/],
  ['https://someone@store.example/', /contains a credential/],
])('a redirect to %s is not followed', async (location, why) => {
  await expect(follow([location])).rejects.toMatchObject({
    code: 'upstream_shape',
    message: expect.stringMatching(why) as string,
  })
})

test('a chain of redirects ends after five', async () => {
  const endless = Array.from({ length: 20 }, (_, at) => `/hop-${at}`)
  await expect(follow(endless)).rejects.toMatchObject({ message: /too many redirects/ })
})

describe('a document that is gzipped without request', () => {
  /** What arrives of a gzip body, up to 100,000 bytes. */
  async function receive(sent: Buffer): Promise<string> {
    const body = Object.assign(Readable.from([sent.subarray(0, 9), sent.subarray(9)]), {
      whole: () => null,
      dump: () => Promise.resolve(null),
    }) as unknown as RawAnswer['body']
    const headers = { 'content-encoding': 'gzip', 'content-length': String(sent.length) }
    const transport: Transport = {
      send: () => Promise.resolve({ status: 200, headers, body }),
      close: () => Promise.resolve(),
    }
    const cost = { requests: 0, bytes: 0 }
    const secrets = createSecretSearch(() => ['a-secret-key'])
    const options = { transport, isTrusted: () => false, maxBytes: 100_000, timeoutMs: 60_000, cost }
    const pieces: Buffer[] = []
    const sink = { begin: () => undefined, write: (piece: Buffer) => void pieces.push(piece) }
    await fetchArtifact(
      'https://store.example/a',
      (run) => run(),
      new AbortController().signal,
      { ...options, userAgent: 'test', now: Date.now, secrets },
      sink,
    )
    expect(cost.bytes).toBe(sent.length)
    return Buffer.concat(pieces).toString()
  }

  test('is stored decompressed', async () => {
    const text = JSON.stringify(Array.from({ length: 5000 }, (_, i) => i))
    expect(await receive(gzipSync(text))).toBe(text)
  })

  test('is refused when it holds a credential', async () => {
    const text = `${'x'.repeat(70_000)}a-secret-key`
    await expect(receive(gzipSync(text))).rejects.toMatchObject({
      code: 'upstream_secret',
      message: expect.stringMatching(/^the document at store\.example: upstream returned/) as string,
    })
  })

  test('is refused when it inflates beyond the cap, or is damaged', async () => {
    await expect(receive(gzipSync(Buffer.alloc(10_000_000)))).rejects.toMatchObject({
      code: 'upstream_too_large',
    })
    const damaged = gzipSync('a document').fill(0, 12, 18)
    await expect(receive(damaged)).rejects.toMatchObject({
      code: 'upstream_shape',
      message: expect.stringContaining('the gzip body is damaged') as string,
    })
    await expect(receive(gzipSync('a document').subarray(0, 20))).rejects.toMatchObject({
      code: 'upstream_shape',
    })
  })
})

test.each([
  ['8.8.8.8', false],
  ['2606:4700::1111', false],
  ['100.64.1.1', true],
  ['172.31.255.255', true],
  ['172.32.0.1', false],
  ['::1', true],
  ['::ffff:8.8.8.8', false],
  ['::ffff:10.0.0.1', true],
  ['::7f00:1', true],
  ['2001:0:1::1', true],
  ['64:ff9b::7f00:1', true],
  ['fe80::1', true],
  ['no address', true],
])('%s is private: %s', (address, expected) => {
  expect(isPrivateAddress(address)).toBe(expected)
})
