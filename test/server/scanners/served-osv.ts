import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { crc32, deflateRawSync } from 'node:zlib'
import { createFailures } from '../../../src/server/http/problems.ts'
import { createHeads } from '../../../src/server/http/response.ts'
import {
  type OsvQueryOptions,
  type QueryViews,
  createOsvQuery,
} from '../../../src/features/scanners/routes/query-routes.ts'
import { MirrorError } from '../../../src/base/errors.ts'
import { createViewOrigins } from '../../../src/features/scanners/routes/generation.ts'
import type { ViewRecord } from '../../../src/features/scanners/store/reads.ts'
import { packageKey } from '../../../src/base/identity/names.ts'
import { folderOf } from '../../../src/features/scanners/store/generations.ts'

/** A record with its JSON as it stands, and where it is to be found. */
export interface Held {
  readonly id: string
  readonly text: string
  readonly packages: readonly (readonly [ecosystem: string, name: string])[]
  /** Given for the form that a derived view shows. */
  readonly prefixes?: readonly string[]
}

/** A generation of views in memory. `broken` makes it one that is closed. */
export function viewsOf(
  records: readonly Held[],
  snapshot = 'a'.repeat(64),
): QueryViews & { broken: boolean; looks: number } {
  const record = (held: Held | undefined): ViewRecord | null => {
    if (held === undefined) return null
    const content = Buffer.from(held.text)
    const { prefixes = [] } = held
    return { content, crc32: crc32(content), deflated: deflateRawSync(content), prefixes }
  }
  const inFolder = (held: Held, folder: string): boolean =>
    held.packages.some(([ecosystem]) => folderOf(ecosystem) === folder)
  const views = {
    broken: false,
    looks: 0,
    folder: snapshot,
    info: {
      snapshot,
      asOf: 1_767_225_600_000,
      changed: 1_767_225_000,
      records: records.length,
      odd: 0,
      form: '',
    },
    listCandidates(ecosystem: string, name: string, after: string, limit: number) {
      if (views.broken) throw new TypeError('The database connection is not open')
      views.looks++
      const folder = folderOf(ecosystem)
      const key = packageKey(ecosystem, name)
      return records
        .filter((held) => held.packages.some(([e, n]) => folderOf(e) === folder && packageKey(e, n) === key))
        .map(({ id, prefixes = [] }) => ({ id, derived: prefixes.length > 0 }))
        .filter(({ id }) => id > after)
        .sort((one, other) => (one.id < other.id ? -1 : 1))
        .slice(0, limit)
    },
    readViewRecord: (folder: string, id: string) =>
      record(records.find((held) => held.id === id && inFolder(held, folder))),
    listAliasIds: (name: string, after: string, limit: number) =>
      records.flatMap(({ id, text }) => (id > after && text.includes(`["${name}"]`) ? [id] : [])).slice(0, limit),
    listUntidyIds: () => records.map(({ id }) => id).filter((id) => /[ %]/.test(id)),
    listNamed: (name: string, after: string, limit: number) =>
      records
        .filter((held) => held.packages.some(([e, n]) => packageKey(e, n) === packageKey(e, name)))
        .filter(({ id, prefixes }) => id > after && prefixes === undefined)
        .sort((one, other) => (one.id < other.id ? -1 : 1))
        .slice(0, limit),
    readUpstreamRecord: (id: string) => record(records.find((held) => held.id === id && held.prefixes === undefined)),
    readDerivedRecord: (id: string) => record(records.find((held) => held.id === id && held.prefixes !== undefined)),
  }
  return views
}

/** A server of the query API alone, on a free port. `current` can be changed. */
export async function serveOsv(
  state: { current: QueryViews | null; enabled?: boolean },
  more: Partial<Pick<OsvQueryOptions, 'now' | 'bodyTimeOf' | 'missing' | 'leftOut'>> = {},
) {
  const { now = () => 0 } = more
  const current = (): QueryViews => {
    if (state.current === null) throw new MirrorError('not_ready', 'not yet')
    return state.current
  }
  const query = createOsvQuery({
    missing: () => null,
    leftOut: () => null,
    ...more,
    now,
    enabled: state.enabled !== false,
    originOf: createViewOrigins({ knownOrigin: () => null, markStale: (_, origin) => origin }),
    views: {
      current,
      read: (use) => use(current()),
    },
    heads: createHeads('public, max-age=0, must-revalidate'),
    failures: createFailures('/nowhere', null),
  })
  const server = createServer(query)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}/osv/v1/`
  return {
    port,
    url,
    /** POSTs JSON, or text as it stands. */
    post: async (path: string, body: unknown, headers: Record<string, string> = {}) => {
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      const response = await fetch(url + path, { method: 'POST', body: text, headers })
      return { status: response.status, headers: response.headers, text: await response.text() }
    },
    close: async (): Promise<void> => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A record that concerns one package below a version; its JSON has odd spacing, which must survive. */
export function heldRecord(id: string, ecosystem: string, name: string, fixed: string): Held {
  const ranges = [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed }] }]
  const record = {
    id,
    modified: '2026-01-02T03:04:05.678Z',
    affected: [{ package: { ecosystem, name }, ranges }],
  }
  return { id, text: `${JSON.stringify(record, null, 1)} \n`, packages: [[ecosystem, name]] }
}
