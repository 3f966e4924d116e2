import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { describe, expect } from 'vitest'
import { filledCatalogBench, type CatalogBench, catalogBench, sharedBench } from '../../support/catalog/mirror.ts'
import { raw } from '../../support/catalog/raw.ts'
import { longTest, test } from '../../support/tables.ts'

const LARGE = 3_500_000
const MIB = 1_048_576
const ENV = { PATCHMIRROR_CATALOG_SCOPE: 'all' }
const SERVICE = { images: 2, tags: 4, packages: 2, tickets: 3, largeSboms: 1, largeBytes: LARGE }

interface Options {
  largeBytes?: number
  env?: Record<string, string>
  now?: () => number
}

function mirrored({ env = {}, largeBytes = LARGE, ...more }: Options = {}): Promise<CatalogBench> {
  return filledCatalogBench({ ...SERVICE, largeBytes }, ENV, { ...more, env })
}

const shared = sharedBench(async (atEnd) => {
  const made = await catalogBench(SERVICE, { env: ENV }, undefined, atEnd)
  expect(await made.run('catalog')).toMatchObject({ state: 'complete', code: null })
  return made
})

/** A tag whose SBOM is several MiB, and its exact bytes. */
function large({ sandbox: { service } }: CatalogBench): { id: string; bytes: Buffer } {
  for (const id of service.ids('tags')) {
    const [bytes] = service.documents('tag', id, 'sbom')
    if (bytes !== undefined && bytes.length > 2 * MIB) return { id, bytes }
  }
  throw new Error('the sandbox has no large SBOM')
}

async function linkOf(made: CatalogBench, path: string, headers = {}): Promise<string> {
  const answer = await raw(made, path, headers)
  expect([path, answer.status]).toEqual([path, 200])
  const { sbom_file_url: url } = JSON.parse(answer.body.toString()) as { sbom_file_url: string }
  return url
}

const targetOf = (url: string): string => new URL(url).pathname + new URL(url).search

describe('an artifact answer', () => {
  longTest('has links of the mirror’s own, new ones each time, and must not be cached', async () => {
    const made = shared()
    const { id, bytes } = large(made)
    for (const coding of ['identity', 'gzip']) {
      const answer = await raw(made, `/v1/tags/${id}/sbom`, { 'accept-encoding': coding })
      expect(answer.headers).toMatchObject({
        'cache-control': 'no-store',
        'content-type': 'application/json',
      })
      expect(answer.headers.vary).toMatch(/Accept-Encoding.*Authorization/)
      expect(answer.headers.etag).toBeUndefined()
      const text = coding === 'gzip' ? gunzipSync(answer.body) : answer.body
      expect(text.toString()).not.toContain(new URL(made.sandbox.artifactUrl).host)
    }
    const url = await linkOf(made, `/v1/tags/${id}/sbom`)
    expect((await raw(made, url)).body.equals(bytes)).toBe(true)
    const second = await linkOf(made, `/v1/images/tags/${id}/sbom`)
    expect((await raw(made, second)).body.equals(bytes)).toBe(true)
    const head = await raw(made, `/v1/tags/${id}/sbom`, {}, 'HEAD')
    expect([head.status, head.body.length]).toEqual([200, 0])
  })

  test('has a link to every file that it names, also to the public key of a provenance', async () => {
    const made = shared()
    const { service } = made.sandbox
    const [tag = ''] = service.ids('tags')
    const answer = await raw(made, `/v1/tags/${tag}/provenance`)
    const named = Object.values(JSON.parse(answer.body.toString()) as Record<string, string>)
    const files = await Promise.all(named.map(async (url) => (await raw(made, url)).body))
    expect(files).toEqual([...service.documents('tag', tag, 'provenance'), service.publicKey()])
  })

  longTest('has links to the address by which the client reaches the mirror', async () => {
    const asked = async (env: Record<string, string>, headers: Record<string, string>) => {
      const made = await mirrored({ env, largeBytes: 10_000 })
      const [id = ''] = made.sandbox.service.ids('tags')
      return (await linkOf(made, `/v1/tags/${id}/sbom`, headers)).split('/-/')[0]
    }
    const forwarded = {
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'mirror.example',
      'x-forwarded-for': '192.0.2.1',
      'x-forwarded-prefix': '/patches',
    }
    expect(await asked({ PATCHMIRROR_SERVER_PUBLIC_URL: 'https://m.example/p/' }, forwarded)).toBe(
      'https://m.example/p',
    )
    expect(await asked({ PATCHMIRROR_SERVER_TRUST_PROXY: '127.0.0.1' }, forwarded)).toBe(
      'https://mirror.example/patches',
    )
    expect(await asked({}, { ...forwarded, host: 'plain.example:81' })).toBe('http://plain.example:81')
  })
})

describe('a link to a document', () => {
  longTest('opens without a key for fifteen minutes, and is then refused as expired', async () => {
    let now = Date.now()
    const made = await mirrored({ now: () => now, largeBytes: 10_000 })
    const [id = ''] = made.sandbox.service.ids('tags')
    const path = `/v1/tags/${id}/sbom`
    expect((await raw(made, path, { authorization: '' })).status).toBe(401)
    const url = await linkOf(made, path)
    now += 15 * 60_000 - 1000
    expect((await raw(made, url)).status).toBe(200)
    now += 62_000
    const late = await raw(made, url)
    expect([late.status, JSON.parse(late.body.toString())]).toEqual([
      403,
      expect.objectContaining({ error: 'link_expired' }),
    ])
  })

  test('opens no other document when it is changed', async () => {
    const made = shared()
    const { service } = made.sandbox
    const [one = '', two = ''] = service.ids('tags')
    const first = new URL(await linkOf(made, `/v1/tags/${one}/sbom`))
    const second = new URL(await linkOf(made, `/v1/tags/${two}/sbom`))
    const moved = second.pathname + first.search
    const later = targetOf(first.href).replace(/expires=\d+/, (text) => `${text}0`)
    const bent = targetOf(first.href).replace(/signature=./, (text) => `signature=${text.endsWith('A') ? 'B' : 'A'}`)
    for (const target of [moved, later, bent, first.pathname, `${targetOf(first.href)}&expires=9`]) {
      const answer = await raw(made, target)
      expect([target, answer.status]).toEqual([target, 403])
    }
  })

  longTest('whose document is gone is a 404 that says where to get a new link', async () => {
    const made = await mirrored({ largeBytes: 10_000 })
    const { service } = made.sandbox
    const [id = ''] = service.ids('tags')
    const url = await linkOf(made, `/v1/tags/${id}/sbom`)
    service.rotateArtifact('tag', id, 'sbom')
    await made.run('catalog')
    const answer = await raw(made, url)
    expect([answer.status, answer.body.toString()]).toEqual([
      404,
      expect.stringContaining('request the path that returned this link again'),
    ])
  })
})

describe('a document', () => {
  test('is served with its type and validators, plain and as gzip, and as 304 when the client has it', async () => {
    const made = shared()
    const { id, bytes } = large(made)
    const url = await linkOf(made, `/v1/tags/${id}/sbom`)
    const plain = await raw(made, url)
    expect(plain.headers).toMatchObject({
      'content-type': 'application/vnd.cyclonedx+json',
      'content-length': String(bytes.length),
      'accept-ranges': 'bytes',
      'x-content-type-options': 'nosniff',
      'last-modified': expect.stringMatching(/GMT$/) as string,
    })
    const zipped = await raw(made, url, { 'accept-encoding': 'gzip' })
    expect(zipped.headers['content-encoding']).toBe('gzip')
    expect(zipped.headers['content-length']).toBe(String(zipped.body.length))
    expect(zipped.headers.etag).not.toBe(plain.headers.etag)
    expect(gunzipSync(zipped.body).equals(bytes)).toBe(true)
    for (const [held, coding] of [
      [plain, {}],
      [zipped, { 'accept-encoding': 'gzip' }],
    ] as const) {
      const condition = { 'if-none-match': held.headers.etag ?? '', ...coding }
      expect((await raw(made, url, condition)).status).toBe(304)
      const head = await raw(made, url, coding, 'HEAD')
      expect([head.status, head.body.length, head.headers['content-length']]).toEqual([
        200,
        0,
        String(held.body.length),
      ])
    }
    expect((await raw(made, url, { 'if-modified-since': plain.headers['last-modified'] ?? '' })).status).toBe(304)
    expect((await raw(made, url, { 'if-match': '"other"' })).status).toBe(412)
  })

  longTest('is served in ranges at any position', async () => {
    const made = shared()
    const { id, bytes } = large(made)
    const url = await linkOf(made, `/v1/tags/${id}/sbom`)
    const end = bytes.length - 1
    const parts: [string, number, number][] = [
      ['0-0', 0, 0],
      ['0-99', 0, 99],
      [`${MIB - 1}-${MIB}`, MIB - 1, MIB],
      [`${MIB}-${2 * MIB - 1}`, MIB, 2 * MIB - 1],
      [`10-${3 * MIB + 5}`, 10, 3 * MIB + 5],
      ['-1', end, end],
      [`-${MIB + 7}`, bytes.length - MIB - 7, end],
      [`${end}-`, end, end],
      [`5-${end + 1000}`, 5, end],
    ]
    for (const [range, from, to] of parts) {
      const part = await raw(made, url, { range: `bytes=${range}`, 'accept-encoding': 'gzip' })
      expect([range, part.status, part.headers['content-range']]).toEqual([
        range,
        206,
        `bytes ${from}-${to}/${bytes.length}`,
      ])
      expect(part.headers['content-encoding']).toBeUndefined()
      expect(part.body.equals(bytes.subarray(from, to + 1))).toBe(true)
    }
    const beyond = await raw(made, url, { range: `bytes=${bytes.length}-` })
    expect([beyond.status, beyond.headers['content-range']]).toEqual([416, `bytes */${bytes.length}`])
    const several = await raw(made, url, { range: 'bytes=0-1,5-6' })
    expect([several.status, several.body.length]).toEqual([200, bytes.length])
    const etag = (await raw(made, url, {}, 'HEAD')).headers.etag ?? ''
    const same = await raw(made, url, { range: 'bytes=0-9', 'if-range': etag })
    expect([same.status, same.body.length]).toEqual([206, 10])
    const other = await raw(made, url, { range: 'bytes=0-9', 'if-range': '"another"' })
    expect([other.status, other.body.length]).toEqual([200, bytes.length])
  })

  longTest('is served whole to a slow client, also after another client disconnected', async () => {
    const made = shared()
    const { id, bytes } = large(made)
    const url = await linkOf(made, `/v1/tags/${id}/sbom`)
    const gone = await open(url)
    gone.destroy()
    const slow = await open(url)
    const chunks: Buffer[] = []
    for await (const chunk of slow) {
      chunks.push(chunk as Buffer)
      if (chunks.length % 8 === 0) await new Promise(setImmediate)
    }
    expect(Buffer.concat(chunks).equals(bytes)).toBe(true)
    expect((await raw(made, url)).status).toBe(200)
  })

  longTest('that is deleted while it is sent ends in a broken connection', async () => {
    const made = await mirrored({ largeBytes: 12_000_000 }) // more than any socket holds
    const { service } = made.sandbox
    const { id, bytes } = large(made)
    const response = await open(await linkOf(made, `/v1/tags/${id}/sbom`))
    response.pause()
    service.rotateArtifact('tag', id, 'sbom')
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    await made.ask('/-/health') // the server moves on to the new snapshot
    let length = 0
    response.on('data', (chunk: Buffer) => (length += chunk.length))
    await new Promise((resolve) => response.resume().once('close', resolve))
    expect(response.complete).toBe(false)
    expect(length).toBeLessThan(bytes.length)
  })
})

/** A response whose body waits to be read. */
async function open(url: string): Promise<IncomingMessage> {
  const sent = request(url, { agent: false })
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  response.on('error', () => undefined) // told to whoever waits for it
  return response
}
