import { beforeAll, describe, expect, test } from 'vitest'
import type { Sandbox } from '../server.ts'
import { sandboxes } from '../fixtures.ts'
import { type Json, asAdmin, ask, walk } from './asking.ts'

const open = sandboxes()
let sandbox: Sandbox
let first: (kind: 'tags' | 'packages' | 'avrs' | 'subscriptions' | 'apiKeys', n?: number) => string
beforeAll(async () => {
  sandbox = await open({ service: { tickets: 120 } })
  first = (kind, n = 0) => sandbox.service.ids(kind)[n] ?? ''
})

/** The contract's GET rows of the remediation surface, with an id where there is a parameter. */
const rows = (): string[] => [
  '/v1/me',
  '/v1/orgs/',
  '/v1/api_keys/',
  `/v1/api_keys/${first('apiKeys')}/`,
  '/v1/subscriptions/',
  `/v1/subscriptions/${first('subscriptions')}/`,
  '/v1/patches',
  '/v1/images/',
  '/v1/images/1001',
  '/v1/images/library/python/tags',
  '/v1/tags/',
  `/v1/tags/${first('tags')}`,
  `/v1/tags/${first('tags')}/sbom`,
  `/v1/images/tags/${first('tags')}/sbom`,
  `/v1/tags/${first('tags')}/vex`,
  `/v1/tags/${first('tags')}/provenance`,
  '/v1/packages/',
  `/v1/packages/${first('packages')}/`,
  `/v1/packages/${first('packages')}/artifacts/patches`,
  `/v1/packages/${first('packages')}/artifacts/provenance`,
  `/v1/avrs/${first('avrs')}/artifacts/sbom`,
  `/v1/avrs/${first('avrs')}/artifacts/vex`,
  `/v1/avrs/${first('avrs')}/artifacts/provenance`,
  '/v3/settings/webhooks',
]

const turned = (path: string): string => (path.endsWith('/') ? path.slice(0, -1) : `${path}/`)

describe('every GET row of the contract', () => {
  test('answers JSON, and HEAD the same without a body', async () => {
    for (const path of rows()) {
      const { status, headers } = await asAdmin(sandbox, path)
      expect([path, status, headers.get('content-type')]).toEqual([path, 200, 'application/json'])
      const head = await asAdmin(sandbox, path, { method: 'HEAD' })
      expect([path, head.status, head.bytes.length]).toEqual([path, 200, 0])
    }
  })

  test('answers only with its own trailing slash; the other form is a 404', async () => {
    for (const path of rows()) {
      const { status, value } = await asAdmin(sandbox, turned(path))
      expect([path, status, Object.keys(value)]).toEqual([path, 404, ['message']])
    }
  })

  test('refuses another method with 405 and the allowed methods', async () => {
    for (const path of rows()) {
      const { status, headers } = await asAdmin(sandbox, path, { method: 'PUT', body: {} })
      expect([path, status]).toEqual([path, 405])
      expect(headers.get('allow')).toContain('GET, HEAD')
    }
  })

  test('is a 404 for an unknown id', async () => {
    for (const path of rows()) {
      const [id] = /[0-9a-f]{8}-[0-9a-f-]{27}|1001|library\/python/.exec(path) ?? []
      if (id === undefined) continue
      const { status } = await asAdmin(sandbox, path.replace(id, 'nothing'))
      expect([path, status]).toEqual([path, 404])
    }
  })

  test('answers a conditional request with 304, except artifact answers, which are new each time', async () => {
    for (const path of rows()) {
      const { headers } = await asAdmin(sandbox, path)
      const etag = headers.get('etag')
      const isArtifact = /artifacts|sbom|vex|provenance/.test(path)
      expect([path, etag === null]).toEqual([path, isArtifact])
      if (etag === null) continue
      const again = await asAdmin(sandbox, path, { headers: { 'if-none-match': etag } })
      expect([path, again.status, again.bytes.length]).toEqual([path, 304, 0])
    }
  })
})

test('the sandbox’s validators can be switched off', async () => {
  const plain = await open({ validators: false })
  const { headers } = await asAdmin(plain, '/v1/tags/')
  expect([headers.get('etag'), headers.get('last-modified')]).toEqual([null, null])
})

test('every surface of the sandbox but the feeds can be switched off', async () => {
  const feeds = await open({ service: false })
  expect((await ask(`${feeds.url}/v1/me`)).status).toBe(404)
  expect([feeds.catalogUrl, feeds.identityUrl]).toEqual(['', ''])
  expect(() => feeds.service).toThrow('service: false')
})

describe('a list', () => {
  const lists: readonly [path: string, key: string, count: number][] = [
    ['/v1/patches', 'tickets', 120],
    ['/v1/images/', 'data', 12],
    ['/v1/tags/', 'data', 40],
    ['/v1/packages/', 'data', 30],
    ['/v1/subscriptions/', 'data', 6],
    ['/v1/api_keys/', 'data', 4],
    ['/v1/images/library/python/tags', 'data', 4],
  ]

  test('is walked by its cursor to the last item, each once', async () => {
    for (const [path, key, count] of lists) {
      const { items, pages } = await walk(sandbox, path, 3, key)
      expect([path, items.length, pages]).toEqual([path, count, Math.ceil(count / 3)])
      expect(new Set(items.map((item) => JSON.stringify(item))).size).toBe(count)
    }
  })

  test('has its total and the cursors of the next and the previous page', async () => {
    const { value } = await asAdmin(sandbox, '/v1/tags/?limit=10')
    const { after, ...rest } = value['cursor'] as Json
    expect(rest).toEqual({ before: null, limit: 10, total_count: 40 })
    const next = await asAdmin(sandbox, `/v1/tags/?limit=10&after=${String(after)}`)
    expect(next.value['cursor']).toMatchObject({ before: expect.any(String) as string })
  })

  test('ends with an empty cursor, a null one or none at all', async () => {
    const cursor = async (path: string) => (await asAdmin(sandbox, path)).value['cursor'] as Json
    expect((await cursor('/v1/patches?limit=1000'))['after']).toBe('')
    expect(await cursor('/v1/tags/')).not.toHaveProperty('after')
    const { after } = await cursor('/v1/tags/?limit=30')
    expect((await cursor(`/v1/tags/?limit=30&after=${String(after)}`))['after']).toBeNull()
  })

  test('has 100 items a page unless asked for up to 1000', async () => {
    const { value } = await asAdmin(sandbox, '/v1/patches')
    expect(value['tickets']).toHaveLength(100)
    expect((await asAdmin(sandbox, '/v1/patches?limit=1000')).value['tickets']).toHaveLength(120)
    for (const limit of ['1001', '0', '-1', 'many', '1.5']) {
      expect((await asAdmin(sandbox, `/v1/patches?limit=${limit}`)).status, limit).toBe(400)
    }
  })

  test('refuses an unknown cursor', async () => {
    for (const after of ['x', 'WzFd', 'bnVsbA']) {
      expect((await asAdmin(sandbox, `/v1/tags/?after=${after}`)).status).toBe(400)
    }
  })

  test('neither repeats nor skips unchanged items while others are added and removed', async () => {
    const living = await open({ service: { tags: 9, images: 2 } })
    const before = living.service.ids('tags')
    const { value } = await asAdmin(living, '/v1/tags/?limit=4')
    living.service.remove('tags', before[3] ?? '')
    living.service.remove('tags', before[0] ?? '')
    const added = living.service.addTag()
    const { after } = value['cursor'] as { after: string }
    const rest = await asAdmin(living, `/v1/tags/?limit=100&after=${after}`)
    const ids = (rest.value['data'] as { id: string }[]).map(({ id }) => id)
    expect(ids).toEqual([...before.slice(4), added])
  })
})

describe('details', () => {
  test('have more members than the list, and numbers that JavaScript cannot represent', async () => {
    const { value, bytes } = await asAdmin(sandbox, '/v1/images/1001')
    const [listed] = (await asAdmin(sandbox, '/v1/images/')).value['data'] as Json[]
    expect(value).toMatchObject(listed ?? {})
    expect(Object.keys(value).length).toBeGreaterThan(Object.keys(listed ?? {}).length)
    expect(bytes.toString()).not.toBe(JSON.stringify(value))
    expect(bytes.toString()).toMatch(/"pull_count":9007199254\d{6},"popularity":\d\.0/)
    expect(String(value['description'])).toContain('修復済み')
  })

  test('of an image are found by a number, of another kind by an id that other kinds may share', async () => {
    expect((await asAdmin(sandbox, '/v1/images/')).value['data']).toMatchObject([
      { id: 1001 },
      {},
      ...Array<Json>(10).fill({}),
    ])
    expect(first('tags')).toBe(first('packages'))
    expect(first('tags')).toBe(first('avrs'))
    expect(first('tags', 5)).not.toBe(first('packages', 5))
  })

  test('of a tag name its AVR', async () => {
    const { value } = await asAdmin(sandbox, `/v1/tags/${first('tags', 4)}`)
    expect(value['avr_id']).toBe(first('avrs', 4))
  })
})

describe('an image repository', () => {
  test('may have slashes, plain or encoded, and end in a word of the paths', async () => {
    for (const repo of ['nginx', 'library/python', 'bitnami/charts/redis', 'tools/build/tags']) {
      for (const path of [repo, encodeURIComponent(repo)]) {
        const { status, value } = await asAdmin(sandbox, `/v1/images/${path}/tags`)
        expect([path, status]).toEqual([path, 200])
        const tags = value['data'] as { image: { repository: string } }[]
        expect(new Set(tags.map(({ image }) => image.repository))).toEqual(new Set([repo]))
      }
    }
    expect((await asAdmin(sandbox, '/v1/images/library/tags')).status).toBe(404)
    expect((await asAdmin(sandbox, '/v1/images/%ZZ/tags')).status).toBe(404)
  })
})

describe('the other shape', () => {
  test('has items, cursor and URLs under other names', async () => {
    const other = await open({ service: { shape: 'other' } })
    const [tag] = other.service.ids('tags')
    const keys = async (path: string) => Object.keys((await asAdmin(other, path)).value)
    expect(await keys('/v1/tags/?limit=3')).toEqual(['results', 'pagination'])
    expect(await keys('/v1/patches?limit=3')).toEqual(['items', 'next_cursor', 'total'])
    expect(await keys(`/v1/tags/${String(tag)}/sbom`)).toEqual(['download'])
    expect(await keys(`/v1/tags/${String(tag)}/vex`)).toEqual(['url'])
    expect(await keys(`/v1/tags/${String(tag)}/provenance`)).toEqual(['attestation', 'verification'])
    const patched = other.service.ids('packages')[3] ?? ''
    const { value } = await asAdmin(other, `/v1/packages/${patched}/artifacts/patches`)
    expect(value['patches']).toMatchObject([{ href: expect.any(String) as string }, {}, {}])
  })

  test('lists the same items', async () => {
    const other = await open({ service: { shape: 'other', tickets: 120 } })
    const seen: Json[] = []
    let next: string | undefined
    do {
      const after = next === undefined ? '' : `&after=${next}`
      const { value } = await asAdmin(other, `/v1/patches?limit=50${after}`)
      seen.push(...(value['items'] as Json[]))
      next = value['next_cursor'] as string | undefined
    } while (next !== undefined)
    expect(seen).toEqual((await walk(sandbox, '/v1/patches', 1000, 'tickets')).items)
  })
})
