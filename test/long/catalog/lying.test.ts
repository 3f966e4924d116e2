import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { type PlainBench, type Said, type Saying, plainBench } from '../../support/catalog/plain-service.ts'
import { createOrigin } from '../../support/origin.ts'

const SBOM = { bomFormat: 'CycloneDX', specVersion: '1.5' }

/** A mirror of a service whose tags have these SBOM answers, by the tag's id. */
async function benchOf(said: Record<string, Said>, env = {}): Promise<PlainBench> {
  const made = await plainBench({}, { LIMIT_UPSTREAM_RETRIES: '0', ...env })
  tell(made, said)
  return made
}

/** `n` makes the items of the list other ones, so that every answer is asked for again. */
function tell(made: PlainBench, said: Record<string, Said>, n = 1): void {
  const data = Object.keys(said).map((id) => ({ id, n }))
  const answers = Object.entries(said).flatMap(([id, one]): [string, Saying][] => [
    [`/v1/tags/${id}`, () => ({ body: { id } })],
    [`/v1/tags/${id}/sbom`, () => one],
  ])
  made.say({
    '/v1/tags/': () => ({ body: { data, cursor: { after: null } } }),
    ...Object.fromEntries(answers),
  })
}

const nested = (depth: number, inner: string, before = '{"a":', after = '}'): string =>
  before.repeat(depth) + inner + after.repeat(depth)

test('answers that are built to be costly or strange end in a named path, and the rest goes on', async () => {
  const said: Record<string, Said> = {
    good: { body: SBOM },
    objects: { body: nested(20_000, '1') },
    lists: { body: nested(20_000, '1', '[', ']') },
    attestations: { body: nested(20_000, '1', '{"attestations":[', ']}') },
    urls: { body: nested(20_000, '{"url":"http://127.0.0.1:9/"}') },
    bomb: { body: gzipSync(Buffer.alloc(10_000_000, ' ')) },
    'not-gzip': { body: Buffer.from([0x1f, 0x8b, 8, 0, 1, 2, 3]) },
    strings: { body: { a: '{'.repeat(10_000), b: '['.repeat(10_000), c: btoa('{'.repeat(10_000)) } },
  }
  const made = await benchOf(said, { PATCHMIRROR_UPSTREAM_MAX_BYTES: 'record=2 MB' })
  const report = await made.run('catalog')
  expect(report).toMatchObject({ state: 'partial', code: null, facts: { lacking: Object.keys(said).length - 1 } })
  expect((await made.ask('/v1/tags/good/sbom')).status).toBe(200)
})

test('an answer with many links that give no document has few of them requested', async () => {
  const stranger = await createOrigin((_request, response) => response.writeHead(404).end())
  const urls = (count: number): string[] => Array.from({ length: count }, (_, at) => `${stranger.url}/${at}`)
  const made = await benchOf({ hundred: { body: { urls: urls(100) } }, thousands: { body: { urls: urls(2000) } } })
  expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { lacking: 2 } })
  expect(stranger.requests.length).toBeLessThanOrEqual(10)
})

test('no form of the service’s own address is followed as pre-signed, and none gets a credential of a URL', async () => {
  const made = await benchOf({})
  const { host } = new URL(made.origin.url)
  const port = host.split(':')[1] ?? ''
  const urls = [
    `http://${host}/v1/tags/x`,
    `http://${host}/v1/images/tags/x/sbom?download=1`,
    `http://user:secret@${host}/files/sbom`,
    `http://127.1:${port}/v1/me`,
    `https://${host}/files/sbom`,
  ]
  tell(made, Object.fromEntries(urls.map((url, at) => [`t${at}`, { body: { url } }])))
  made.say({ '/files/sbom': () => ({ body: SBOM }) })
  expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { lacking: urls.length } })
  const asked = made.origin.requests.filter(({ url = '' }) => url.startsWith('/files/') || url.includes('download'))
  expect(asked.map(({ url }) => url)).toEqual([])
  expect(made.origin.requests.every(({ headers }) => headers.authorization !== undefined)).toBe(true)
})

test('a service that takes back what it gave, in every form, leaves the mirror with it', async () => {
  const ids = ['a', 'b', 'c', 'd', 'e', 'f']
  const made = await benchOf(Object.fromEntries(ids.map((id) => [id, { body: SBOM }])))
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  const lies: Said[] = [
    { body: {} },
    { body: 'null' },
    { body: { status: 'queued' } },
    { body: { url: 'http://127.0.0.1:9/x' } },
    { body: '<!doctype html>' },
    { body: { data: { attributes: { document: { bomFormat: 'Other' } } } } },
  ]
  for (const [at, lie] of lies.entries()) {
    tell(made, Object.fromEntries(ids.map((id) => [id, lie])), at + 2)
    expect(await made.run('catalog')).toMatchObject({ state: 'partial', facts: { lacking: 6 } })
    for (const id of ids)
      expect([at, id, await (await made.ask(`/v1/tags/${id}/sbom`)).text()]).toEqual([at, id, JSON.stringify(SBOM)])
  }
})
