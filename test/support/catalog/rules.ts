import { createServer } from 'node:http'
import { expect } from 'vitest'
import { SANDBOX_KEYS } from '../../sandbox/service/credentials.ts'
import { EVENT_TYPE } from '../../sandbox/service/routes/webhooks.ts'
import type { Shape } from '../../sandbox/service/shapes/shape.ts'
import { createTypeFilter, parseBody } from '../../../src/webhooks/receive/event.ts'
import { createSigningSecret, createVerifier } from '../../../src/webhooks/receive/signature.ts'
import { TEST_KEY } from '../keys.ts'
import { walkList } from '../walk.ts'
import type { CatalogBench } from './mirror.ts'
import { itemDifference, listDifference } from './differences.ts'

/** The signing secret of every subscription of the sandbox whose mirror is proven. */
export const WEBHOOK_SECRET = 'whsec_c2hhcGVzIG9mIHRoZSBzYW5kYm94IQ=='

/** A rule of the contract beside its endpoint tables, and what proves that the mirror keeps it. */
export interface Rule {
  /** Section of the contract. */
  section: string
  subject: string
  answer: string
  /** Proof against a mirror of a service of that shape; or the file of a test that does not depend on the shape. */
  by: ((made: CatalogBench, shape: Shape) => Promise<void>) | string
}

type Facts = Readonly<Record<string, unknown>>

/** A filter of `/patches` finds what the service finds: something, and not everything. */
const filter =
  (param: string, valueOf: (ticket: Facts) => unknown) =>
  async (made: CatalogBench, { patches }: Shape): Promise<void> => {
    const { service } = made.sandbox
    const tickets = service.ids('tickets')
    const value = String(valueOf(service.read('tickets', tickets[0] ?? '')))
    const path = `/v1/patches?${param}=${encodeURIComponent(value)}`
    expect(await listDifference(made, path, patches)).toBeNull()
    const { items } = await walkList(made.ask, path, patches)
    expect(items.length).toBeGreaterThan(0)
    expect(items.length).toBeLessThan(tickets.length)
  }

const feedFilter =
  (query: string) =>
  async (made: CatalogBench, { feed }: Shape): Promise<void> => {
    const path = `/external/patch_feed?${query}`
    if (feed === 'tree') expect(await itemDifference(made, path)).toBeNull()
    const [mirror, upstream] = await Promise.all([made.ask(path), made.askUpstream(path)])
    expect({ query, answer: await mirror.json() }).toEqual({ query, answer: await upstream.json() })
  }

const PATCHES = '4 `GET /patches`'
const FEED = '4 `GET /external/patch_feed`'
const SAME = 'the same items'

/** Every rule of sections 4 to 9 that is no row of an endpoint table. */
export const RULES: readonly Rule[] = [
  { section: PATCHES, subject: '`cve_id`', answer: SAME, by: filter('cve_id', (t) => t['cve_id']) },
  {
    section: PATCHES,
    subject: '`package_src_name`',
    answer: SAME,
    by: filter('package_src_name', (t) => t['package_src_name']),
  },
  {
    section: PATCHES,
    subject: '`ecosystem`',
    answer: SAME,
    by: filter('ecosystem', (t) => t['ecosystem']),
  },
  {
    section: PATCHES,
    subject: '`severities`',
    answer: SAME,
    by: filter('severities', (t) => t['severity']),
  },
  {
    section: PATCHES,
    subject: '`ticket_statuses`',
    answer: SAME,
    by: filter('ticket_statuses', (t) => t['ticket_status']),
  },
  {
    section: PATCHES,
    subject: '`order`',
    answer: 'the order of the service',
    by: async (made, { patches }) => {
      for (const order of ['created_at:desc', 'created_at:asc', 'severity:asc'])
        expect(await listDifference(made, `/v1/patches?order=${order}`, patches)).toBeNull()
    },
  },
  {
    section: PATCHES,
    subject: '`limit`: 1 to 1000, else 400',
    answer: 'pages of that size; the same refusals',
    by: async (made, { patches }) => {
      for (const limit of ['1', '7', '1000', '0', '1001', 'many'])
        expect(await listDifference(made, `/v1/patches?limit=${limit}`, patches)).toBeNull()
    },
  },
  {
    section: PATCHES,
    subject: '`after` and any other way to the next page',
    answer: 'cursors and URLs of the mirror’s own, read by the rule of the service',
    by: async (made, { patches }) => {
      const { items, pages } = await walkList(made.ask, '/v1/patches?limit=2', patches)
      const count = made.sandbox.service.ids('tickets').length
      expect([items.length, pages]).toEqual([count, Math.ceil(count / 2)])
    },
  },
  { section: FEED, subject: '`ecosystem`', answer: SAME, by: feedFilter('ecosystem=debian') },
  {
    section: FEED,
    subject: '`os_distro_major`',
    answer: SAME,
    by: feedFilter('ecosystem=debian&os_distro_major=12'),
  },
  {
    section: FEED,
    subject: '`package_src_name`',
    answer: SAME,
    by: feedFilter('package_src_name=curl'),
  },
  {
    section: '4 Payload gaps',
    subject: 'SBOM, VEX and provenance: in the answer at any depth, behind a URL, or not there yet',
    answer: 'the answer as it came, links of the mirror’s own, or 503',
    by: 'test/e2e/catalog/recognised.test.ts',
  },
  {
    section: '5 Authentication',
    subject: 'bearer token, or API key as Basic user name',
    answer: 'the mirror’s own keys in both forms, on both surfaces; else 401',
    by: async (made) => {
      const { origin } = new URL((await made.ask('/-/health')).url)
      const status = async (path: string, authorization?: string): Promise<number> => {
        const headers = authorization === undefined ? {} : { authorization }
        const answer = await fetch(origin + path, { headers })
        await answer.body?.cancel()
        return answer.status
      }
      for (const path of ['/v1/me', '/v1/users', '/v1/patches']) {
        expect(await status(path, `Bearer ${TEST_KEY}`)).toBe(200)
        expect(await status(path, `Basic ${btoa(`${TEST_KEY}:`)}`)).toBe(200)
        expect(await status(path)).toBe(401)
        expect(await status(path, `Bearer ${SANDBOX_KEYS.admin}`)).toBe(401) // the service's key is not the mirror's
      }
    },
  },
  {
    section: '5 Authentication',
    subject: 'permissions of keys: a path that is refused (403)',
    answer: '403 with the reason of the service; all else is mirrored',
    by: 'test/e2e/catalog/refused.test.ts',
  },
  {
    section: '5 Authentication',
    subject: 'no authentication for the public feeds',
    answer: 'open',
    by: async (made) => {
      const { origin } = new URL((await made.ask('/-/health')).url)
      for (const path of ['/external/osv/all.json', '/external/patch_feed'])
        expect((await fetch(origin + path)).status).toBe(200)
    },
  },
  {
    section: '6 Events',
    subject: 'a signed POST for each new remediated tag',
    answer: 'verified, and read for the image that it names, in any envelope',
    by: async (made) => {
      const { sandbox } = made
      const [tag = ''] = sandbox.service.ids('tags')
      const { headers, body } = await deliveryOf(sandbox, tag)
      const verify = createVerifier({
        secrets: () => [createSigningSecret('test', WEBHOOK_SECRET)],
        dialect: 'any',
        toleranceSeconds: 300,
        now: Date.now,
      })
      expect(verify(headers, body)).toMatchObject({ ok: true })
      const { wanted, target } = parseBody(body, createTypeFilter([EVENT_TYPE], 'service'))
      const { name, digest } = sandbox.service.read('tags', tag)
      expect({ wanted, tag: target?.tag, digest: target?.digest }).toEqual({
        wanted: true,
        tag: name,
        digest,
      })
    },
  },
  {
    section: '6 Events',
    subject: 'a timestamp older than 5 minutes',
    answer: 'refused with 401',
    by: 'test/webhooks/receive/signature.test.ts',
  },
  {
    section: '7 Errors',
    subject: 'remediation surface: status codes',
    answer: 'the status of the service, a JSON body with `message`',
    by: async (made) => {
      const answer = await made.ask('/v1/patches?limit=0')
      expect(answer.status).toBe(400)
      expect(await answer.json()).toMatchObject({ message: expect.any(String) as string })
    },
  },
  {
    section: '7 Errors',
    subject: 'identity surface: `error`, `error_description`, `status_code`',
    answer: 'the same form',
    by: async (made) => {
      const answer = await made.ask('/v1/users?limit=0')
      expect(await answer.json()).toMatchObject({
        error: expect.any(String) as string,
        error_description: expect.any(String) as string,
        status_code: 400,
      })
    },
  },
  {
    section: '8 Limits',
    subject: 'page size 100 by default, at most 1000',
    answer: 'the same',
    by: 'test/e2e/catalog/lists.test.ts',
  },
  {
    section: '8 Limits',
    subject: '429 with `X-RateLimit-Limit`, `X-RateLimit-Remaining`, `Retry-After`',
    answer: 'towards the service: kept to; of its own: for wrong keys, with `Retry-After`',
    by: 'test/upstream/http/limiter.test.ts',
  },
  {
    section: '9 Versioning',
    subject: '`/v1` and `/v3` in paths, none for the feeds',
    answer: 'the same paths; 404 for other versions',
    by: async (made) => {
      for (const path of ['/v2/me', '/v4/settings/webhooks', '/v1/external/osv/all.json'])
        expect({ path, status: (await made.ask(path)).status }).toEqual({ path, status: 404 })
    },
  },
  {
    section: '9 Versioning',
    subject: 'version suffix of event types',
    answer: 'another version is a reason to look, too',
    by: 'test/webhooks/receive/receiver.test.ts',
  },
]

/** What the service sends for a tag, as it arrives. */
async function deliveryOf(sandbox: CatalogBench['sandbox'], tag: string): Promise<{ headers: string[]; body: Buffer }> {
  let received = { headers: [] as string[], body: Buffer.alloc(0) }
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      received = { headers: request.rawHeaders, body: Buffer.concat(pieces) }
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const address = server.address()
    const port = typeof address === 'object' ? String(address?.port) : ''
    const url = `http://127.0.0.1:${port}/hook`
    await fetch(`${sandbox.url}/v3/settings/webhooks`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`${SANDBOX_KEYS.admin}:`)}` },
      body: JSON.stringify({ url, description: '', event_types: [EVENT_TYPE] }),
    })
    expect(await sandbox.service.announce(tag)).toMatchObject([{ status: 'delivered' }])
    return received
  } finally {
    await new Promise((resolve) => server.close(resolve))
  }
}
