import { afterEach, describe, expect } from 'vitest'
import { catalogRoutes } from '../../../src/server/catalog/routes.ts'
import type { ReadRequest, ReadingRequest } from '../../../src/server/reading/request.ts'
import { createReadingThread } from '../../../src/server/reading/thread.ts'
import { createServer } from '../../../src/server/server.ts'
import { readRequestHeaders } from '../../../src/server/http/request-headers.ts'
import { type PinnedReads, openPinnedReads } from '../../../src/store/reads.ts'
import { TEST_KEY, bearer } from '../../support/keys.ts'
import { type CatalogBench, filledCatalogBench } from '../../support/catalog/mirror.ts'
import { longTest, test } from '../../support/tables.ts'
import { scannerRoutes } from '../../../src/features/scanners/routes/public-paths.ts'

const SERVICE = { images: 3, tags: 4, packages: 3, tickets: 130 }
const PATHS = [
  '/v1/patches?order=version:desc&limit=50',
  '/v1/patches?severities=high&order=updated_at:asc',
  '/v1/patches?order=no_such:asc',
  '/v1/tags/',
  '/v1/me',
  '/v1/images/no/such/tags',
  '/packages/ecosystems/npm/packages/no-such/versions',
]

const closing: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const mirrored = (): Promise<CatalogBench> => filledCatalogBench(SERVICE, { PATCHMIRROR_CATALOG_SCOPE: 'all' })

/** Reads that take the longer the more is stored. */
const HEAVY = [
  'listEntries',
  'countEntries',
  'hasFacet',
  'findFieldNames',
  'findEntryWith',
  'eachEntry',
  'readAnswer',
] as const satisfies readonly (keyof PinnedReads['pinned']['catalog'])[]

describe('the serving thread', () => {
  test('reads no list, no item and no reason of a missing one itself', async () => {
    const made = await mirrored()
    const reads = openPinnedReads(made.dir)
    if (reads === null) throw new Error('no database')
    const refuse = (): never => {
      throw new Error('read on the serving thread')
    }
    const refused = Object.fromEntries(HEAVY.map((name) => [name, refuse]))
    const all = (own: PinnedReads['pinned']) => ({
      ...own,
      catalog: { ...own.catalog, ...refused },
    })
    const server = createServer({
      reads: { ...reads, pinned: all(reads.pinned), live: all(reads.live) },
      dataDir: made.dir,
      config: {
        ...made.config,
        server: { ...made.config.server, host: '127.0.0.1', port: 0, keys: [TEST_KEY] },
      },
      version: 'test',
      startedAt: 0,
      now: Date.now,
      log: null,
      nextRunAt: () => null,
      plugins: [scannerRoutes(null), catalogRoutes],
    })
    const { url } = await server.listen()
    closing.push(async () => {
      await server.close()
      reads.close()
    })
    for (const path of PATHS) {
      const [ours, theirs] = await Promise.all([fetch(url + path, { headers: bearer() }), made.ask(path)])
      expect([path, ours.status, await ours.text()]).toEqual([path, theirs.status, await theirs.text()])
    }
  })
})

/** A client that waits. */
const HERE = { isGone: () => false, address: 'a' }

describe('the reading thread', () => {
  const request: ReadRequest = {
    path: '/v1/patches',
    method: 'GET',
    params: {},
    query: '',
    baseUrl: 'http://x',
    now: 0,
    served: null,
    linkSecret: null,
    requestHeaders: readRequestHeaders([]),
  }

  longTest(
    'gives the place of a request whose client has left to another, and refuses requests beyond its queue',
    async () => {
      const made = await mirrored()
      const thread = createReadingThread({ config: made.config }, 2)
      closing.push(() => thread.close())
      const [first, gone, third, fourth, fifth] = await Promise.allSettled([
        thread.ask(request, HERE),
        thread.ask(request, { ...HERE, isGone: () => true }),
        thread.ask(request, HERE),
        thread.ask(request, HERE),
        thread.ask(request, HERE),
      ])
      expect(first).toMatchObject({ status: 'fulfilled', value: { status: 200 } })
      expect(gone).toEqual({ status: 'fulfilled', value: null })
      expect(third).toMatchObject({ status: 'fulfilled', value: { status: 200 } })
      expect(fourth).toMatchObject({ status: 'fulfilled', value: { status: 200 } })
      expect(fifth).toMatchObject({ status: 'rejected', reason: { code: 'not_ready' } })
    },
  )

  longTest('answers differences once no list waits, and refuses more than a few of them', async () => {
    const made = await mirrored()
    const thread = createReadingThread({ config: made.config })
    closing.push(() => thread.close())
    const order: string[] = []
    const ask = async (what: string, asked: ReadingRequest, when: 'now' | 'later') => {
      await thread.ask(asked, HERE, when)
      order.push(what)
    }
    const differences = {
      differences: 'since=1&detail=differences',
      now: 0,
      served: null,
      latest: 0,
      denied: null,
    }
    const first = ask('list', request, 'now')
    const many = Array.from({ length: 33 }, () => ask('differences', differences, 'later'))
    const list = ask('list', request, 'now')
    const settled = await Promise.allSettled([first, ...many, list])
    expect(order.slice(0, 2)).toEqual(['list', 'list'])
    const refused = settled.filter(({ status }) => status === 'rejected')
    expect(refused).toMatchObject([{ reason: { code: 'not_ready' } }])
  })

  longTest('fails its requests when it ends, and answers again after its restart', async () => {
    const made = await mirrored()
    const thread = createReadingThread({ config: made.config })
    closing.push(() => thread.close())
    const asked = expect(thread.ask(request, HERE)).rejects
    const failed = asked.toMatchObject({ code: 'aborted' })
    await thread.close()
    await failed
    expect(await thread.ask(request, HERE)).toMatchObject({ status: 200 })
  })

  test('answers a page of a prepared order from the current list', async () => {
    const made = await mirrored()
    const path = '/v1/patches?order=version:asc&limit=1000'
    const total = async (): Promise<number> =>
      ((await (await made.ask(path)).json()) as { tickets: unknown[] }).tickets.length
    expect(await total()).toBe(130)
    made.sandbox.service.addTicket()
    await made.run('catalog')
    expect(await total()).toBe(131)
  })
})

test('a refused method names the snapshot of what is read at the path', async () => {
  const made = await mirrored()
  const snapshotOf = async (method: string) => (await made.ask('/v1/tags', { method })).headers.get('x-mirror-snapshot')
  expect(await snapshotOf('PUT')).toMatch(/^[\da-f]{8}/)
  expect(await snapshotOf('PUT')).toBe(await snapshotOf('GET'))
})
