import type { IncomingMessage } from 'node:http'
import { type Origin, createOrigin } from '../origin.ts'
import type { RunLimits } from '../../../src/sync/context.ts'
import { type CatalogBench, catalogBench } from './mirror.ts'

/** What a path answers: JSON of `body` unless that is a text or bytes. */
export interface Said {
  status?: number
  headers?: Record<string, string>
  body?: unknown
}

/** Answers a request of a path; `url` is the whole request, with the host that it came to. */
export type Saying = (url: URL, request: IncomingMessage) => Said

/** A service of a test's own, and a mirror of it. */
export interface PlainBench extends CatalogBench {
  origin: Origin
  /** What paths answer from now on, on top of what they answered before. */
  say(paths: Record<string, Saying>): void
  /** What every other path answers from now on, instead of a 404 in JSON. */
  sayOthers(others: Said): void
  /** Requests that came for a path, oldest first, without the host. */
  asked(path: string): string[]
}

const EMPTY: Said = { body: { data: [], cursor: { after: null } } }
const LISTS = ['api_keys', 'subscriptions', 'patches', 'images', 'tags', 'packages', 'users']

/** A mirror of a service that has nothing but what these paths (`/v1/tags/`) say. */
export async function plainBench(
  paths: Record<string, Saying>,
  env: Record<string, string> | ((origin: string) => Record<string, string>) = {},
  now?: () => number,
  limits: RunLimits = {},
): Promise<PlainBench> {
  let said = paths
  let others: Said = { status: 404, body: { message: 'not found' } }
  const origin = await createOrigin((request, response) => {
    const url = new URL(request.url ?? '/', `http://${request.headers.host ?? ''}`)
    const saying = said[url.pathname] ?? said[url.pathname.replace(/\/$/, '')]
    const { status = 200, headers = {}, body } = saying?.(url, request) ?? plain(url.pathname) ?? others
    const type = typeof body === 'string' || Buffer.isBuffer(body) ? {} : JSON_TYPE
    response.writeHead(status, { ...type, ...headers })
    if (Buffer.isBuffer(body) || typeof body === 'string') response.end(body)
    else response.end(body === undefined ? '' : JSON.stringify(body))
  })
  const more = typeof env === 'function' ? env(origin.url) : env
  const made = await catalogBench(
    {},
    {
      ...(now && { now }),
      limits,
      env: {
        PATCHMIRROR_CATALOG_SCOPE: 'all',
        PATCHMIRROR_UPSTREAM_API_ROOT: origin.url,
        PATCHMIRROR_UPSTREAM_CATALOG_URL: origin.url,
        ...more,
      },
    },
  )
  return {
    ...made,
    origin,
    say: (more) => void (said = { ...said, ...more }),
    sayOthers: (given) => void (others = given),
    asked: (path) =>
      origin.requests.map(({ url = '' }) => url).filter((url) => new URL(url, 'http://h').pathname === path),
  }
}

const JSON_TYPE = { 'content-type': 'application/json' }

function plain(path: string): Said | null {
  if (LISTS.some((name) => path === `/v1/${name}/` || path === `/v1/${name}`)) return EMPTY
  if (path === '/v1/me' || path === '/v1/orgs/') return { body: { id: 'x' } }
  return null
}

/** Tickets `t-1` to `t-count`. */
export function tickets(count: number): { ticket_id: string; n: number }[] {
  return Array.from({ length: count }, (_, at) => ({ ticket_id: `t-${at + 1}`, n: at + 1 }))
}
