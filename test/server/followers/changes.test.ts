import fc from 'fast-check'
import { afterEach, describe, expect } from 'vitest'
import { openWrites } from '../../../src/store/writes.ts'
import type { FilledStore } from '../../support/filled-store.ts'
import { snapshot } from '../../store/fixtures.ts'
import { type Reply, type Served, FEEDS, FILLED_AT, closeAll, jsonOf, serve } from '../served.ts'
import { commandHost } from '../../support/hosted.ts'
import { LONG, longTest, test } from '../../support/tables.ts'

const patchmirror = commandHost()

afterEach(closeAll)

const KEY = 'Zk3v9wq7Rt5y2Lm8'
const KEYED = { Authorization: `Bearer ${KEY}` }

interface Page {
  source: string
  from: string
  to: string
  complete: boolean
  changes: { source: string; id?: string; path?: string; change: string; snapshot: string }[]
  next: string | null
}

const pageOf = (reply: Reply): Page => {
  expect(reply.status).toBe(200)
  return jsonOf(reply) as unknown as Page
}

/** The id of the snapshot that a source serves. */
async function serving({ server, get }: Served, source = 'osv'): Promise<string> {
  server.snapshotChanged()
  const path = source === 'osv' ? '/external/osv/all.json' : '/external/patch_feed'
  return String((await get(path)).headers['x-mirror-snapshot'])
}

const short = ({ changes }: Page) => changes.map(({ id, path, change }) => [id ?? path, change])

async function three(): Promise<{ served: Served; ids: string[] }> {
  const served = await serve((store) => store.publishOsv({ a: '1', b: '1', c: '1' }))
  const ids = [await serving(served)]
  served.store.publishOsv({ a: '2', b: '1', d: '1', e: '1' }, FILLED_AT + 1000)
  ids.push(await serving(served))
  served.store.publishOsv({ a: '2', c: '9', d: '1' }, FILLED_AT + 2000)
  ids.push(await serving(served))
  return { served, ids }
}

test('/-/records/{id} has the dates of a record, also of a removed one', async () => {
  const { served } = await three()
  const iso = (ms: number): string => new Date(FILLED_AT + ms).toISOString()
  const dates = async (id: string) => jsonOf(await served.get(`/-/records/${id}`))
  const at = (ms: number) => ({ at: iso(ms), exact: true })
  const none = { fixSeen: null, removedAt: null, returnedAt: null, upstream: null }
  expect(await dates('a')).toMatchObject({ id: 'a', state: 'present', ...none, firstSeen: at(0), changed: at(1000) })
  const tags = { count: null, notShown: expect.stringContaining('not on the mirror any more') as string }
  expect(await dates('b')).toMatchObject({ state: 'removed', removedAt: iso(2000), returnedAt: null, tags })
  expect(await dates('%63')).toMatchObject({ id: 'c', state: 'present', removedAt: iso(1000), returnedAt: iso(2000) })
  served.store.publishOsv({ z: '{"published":"2020-01-01","modified":7,"fixed":"1"}' }, FILLED_AT + 3000)
  await serving(served)
  const upstream = { published: '2020-01-01', modified: null, withdrawn: null }
  expect(await dates('z')).toMatchObject({ firstSeen: at(3000), fixSeen: at(3000), upstream })
  for (const id of ['none', '']) {
    const reply = await served.get(`/-/records/${id}`)
    expect([id, reply.status]).toEqual([id, 404])
  }
  expect((await served.get('/-/records/%ff')).status).toBe(400)
  expect((await served.get('/-/records/a', {}, 'POST')).status).toBe(405)
})

test('/-/records/{id} is answered however old the data is, and says how old', async () => {
  const asked = async (env: Record<string, string>) => {
    const now = (): number => FILLED_AT + 2 * 3_600_000
    const served = await serve((store) => store.publishOsv({ a: '1' }), { env, now })
    const { status, ...reply } = await served.get('/-/records/a')
    return [status, jsonOf({ status, ...reply })]
  }
  const asOf = expect.stringMatching(/^20.*Z$/) as string
  expect(await asked({})).toMatchObject([200, { asOf, stale: null }])
  const refuse = { PATCHMIRROR_SERVER_STALE_ACTION: 'osv=refuse', PATCHMIRROR_SYNC_MAX_AGE_HOURS: 'osv=1' }
  expect(await asked(refuse)).toMatchObject([200, { asOf, stale: 'older than sync.maxAgeHours (1)' }])
})

describe('/-/changes', () => {
  test('lists the net changes between a snapshot and the served one', async () => {
    const { served, ids } = await three()
    const page = pageOf(await served.get(`/-/changes?since=${ids[0]}`))
    expect(page).toMatchObject({ source: 'osv', from: ids[0], to: ids[2], complete: true })
    expect(page.changes).toEqual([
      { source: 'osv', id: 'a', change: 'changed', snapshot: ids[1], at: '2026-07-01T00:00:01.000Z' },
      { source: 'osv', id: 'b', change: 'removed', snapshot: ids[2], at: '2026-07-01T00:00:02.000Z' },
      { source: 'osv', id: 'c', change: 'changed', snapshot: ids[2], at: '2026-07-01T00:00:02.000Z' },
      { source: 'osv', id: 'd', change: 'added', snapshot: ids[1], at: '2026-07-01T00:00:01.000Z' },
    ])
    expect(page.next).toBeNull()
    const last = pageOf(await served.get(`/-/changes?since=${ids[1]}&source=osv`))
    expect(short(last)).toEqual([
      ['b', 'removed'],
      ['c', 'added'],
      ['e', 'removed'],
    ])
    const none = pageOf(await served.get(`/-/changes?since=${ids[2]}`))
    expect(none).toMatchObject({ from: ids[2], to: ids[2], complete: true, changes: [] })
  })

  test('says that the snapshot is partial, and how many listed records are missing or outdated', async () => {
    const { served, ids } = await three()
    const ask = async () => jsonOf(await served.get(`/-/changes?since=${ids[0]}`))
    expect(await ask()).toMatchObject({ partial: false, missing: 0 })
    served.store.damage("UPDATE snapshot SET whole = 0 WHERE source = 'osv'")
    served.server.snapshotChanged()
    expect(await ask()).toMatchObject({ partial: true, missing: null, to: ids[2] })
    served.store.damage("INSERT INTO osv_missing (id) VALUES ('x'), ('y')")
    const end = { state: 'partial', snapshot: ids[2] ?? '', endedAt: FILLED_AT + 9000 } as const
    served.store.addRun('osv', FILLED_AT + 9000, end)
    served.server.snapshotChanged()
    expect(await ask()).toMatchObject({ partial: true, missing: 2 })
  })

  test('has pages of the same two snapshots, also when others are published between them', async () => {
    const { served, ids } = await three()
    const found: unknown[] = []
    let next: string | null = null
    do {
      const after: string = next === null ? '' : `&after=${next}`
      const page = pageOf(await served.get(`/-/changes?since=${ids[0]}&limit=1${after}`))
      expect(page).toMatchObject({ from: ids[0], to: ids[2] })
      found.push(...short(page))
      served.store.publishOsv({ z: String(found.length) }, FILLED_AT + (3 + found.length) * 1000)
      served.server.snapshotChanged()
      next = page.next
    } while (next !== null)
    expect(found).toEqual([
      ['a', 'changed'],
      ['b', 'removed'],
      ['c', 'changed'],
      ['d', 'added'],
    ])
  })

  test('continues a list since a time where it began, and refuses the cursor of another list', async () => {
    const { served, ids } = await three()
    const [since, later] = [0, 1000].map((ms) => new Date(FILLED_AT + ms).toISOString())
    const first = pageOf(await served.get(`/-/changes?since=${since ?? ''}&limit=1`))
    // A time such as 7d may mean another snapshot by then.
    const second = pageOf(await served.get(`/-/changes?since=${later ?? ''}&limit=9&after=${first.next ?? ''}`))
    expect([first, second]).toMatchObject([{ from: ids[0] }, { from: ids[0], next: null }])
    expect([...short(first), ...short(second)]).toHaveLength(4)
    const other = await served.get(`/-/changes?since=${ids[1]}&after=${first.next ?? ''}`)
    expect([other.status, jsonOf(other)['message']]).toEqual([400, expect.stringContaining('repeat the since')])
  })

  test('ends a page of long names earlier, and continues on the next page', async () => {
    const names = Array.from({ length: 70 }, (_, i) => `${i + 10}-${'x'.repeat(7_800)}`)
    const served = await serve((store) => store.publishOsv({ a: '1' }))
    const since = await serving(served)
    served.store.publishOsv(Object.fromEntries(['a', ...names].map((name) => [name, '1'])), FILLED_AT + 1000)
    await serving(served)
    const first = pageOf(await served.get(`/-/changes?since=${since}`))
    expect(first.changes.length).toBeLessThan(65)
    const rest = pageOf(await served.get(`/-/changes?since=${since}&after=${first.next ?? ''}`))
    expect([...first.changes, ...rest.changes].map(({ id }) => id)).toEqual(names)
    expect(rest.next).toBeNull()
  })

  test('accepts a unique prefix of a snapshot id, as the command status prints it', async () => {
    const { served, ids } = await three()
    const [first = '', second = ''] = ids
    const page = pageOf(await served.get(`/-/changes?since=${first.slice(0, 12)}`))
    expect(page).toMatchObject({ from: first, to: ids[2] })
    expect(short(page)).toHaveLength(4)
    for (const [since, status] of [
      [first.slice(0, 11), 400],
      [`${first.slice(0, 12)}g`, 400],
      [first.slice(1, 14), 404],
    ] as const)
      expect((await served.get(`/-/changes?since=${since}`)).status).toBe(status)
    const store = openWrites(served.dir)
    await store.transaction(() => {
      store.snapshots.replaceSnapshot(snapshot({ id: `${second.slice(0, 12)}${'0'.repeat(52)}` }))
      return Promise.resolve({ commit: true })
    })
    store.close()
    served.server.snapshotChanged()
    const reply = await served.get(`/-/changes?since=${second.slice(0, 12)}`)
    expect([reply.status, jsonOf(reply)['error']]).toEqual([404, 'unknown_snapshot'])
    expect((await served.get(`/-/changes?since=${second}`)).status).toBe(200)
  })

  test('requests a full read after an unknown or forgotten snapshot, never returns an empty list', async () => {
    const { served, ids } = await three()
    const store = openWrites(served.dir)
    store.changes.forgetChanges('osv', FILLED_AT + 1500)
    store.close()
    served.server.snapshotChanged()
    const earliest = new Date(FILLED_AT + 2000).toISOString()
    for (const since of ['f'.repeat(64), ids[0], '99', '2020-01-01']) {
      const reply = await served.get(`/-/changes?since=${since}`)
      expect([since, reply.status, jsonOf(reply)['error']]).toEqual([since, 404, 'unknown_snapshot'])
      expect(String(jsonOf(reply)['message'])).toMatch(/do a full read/)
      expect(String(jsonOf(reply)['message'])).toContain(`since=${earliest}`)
    }
    expect((await served.get(`/-/changes?since=${earliest}`)).status).toBe(200)
    // What came right before the oldest snapshot that is remembered still leads on.
    expect(short(pageOf(await served.get(`/-/changes?since=${ids[1]}`)))).toHaveLength(3)
    expect((await served.get(`/-/changes?since=${ids[1]}&source=feeds`)).status).toBe(404)
  })

  longTest('reports more than ten thousand changes as incomplete instead of naming a part', async () => {
    const { served, ids } = await three()
    const many = Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`m${i}`, 'x']))
    served.store.publishOsv(many, FILLED_AT + 3000)
    served.store.publishOsv({ ...many, later: 'x' }, FILLED_AT + 4000)
    served.server.snapshotChanged()
    const page = pageOf(await served.get(`/-/changes?since=${ids[0]}`))
    const namedSince = new Date(FILLED_AT + 3000).toISOString()
    expect(page).toMatchObject({ complete: false, changes: [], next: null, namedSince })
    expect(page).toMatchObject({
      counts: { added: 4, changed: 1, removed: 3, unknownSnapshots: 1 },
    })
    const json = ['changes', '--since', ids[0] ?? '', '--json']
    const { code, out } = await patchmirror(json, { PATCHMIRROR_DATA_DIR: served.dir }, served.dir)
    expect([code, JSON.parse(out)]).toEqual([3, expect.objectContaining({ found: false, namedSince })])
    const young = pageOf(await served.get('/-/changes?since=2020-01-01'))
    const knownSince = new Date(FILLED_AT).toISOString()
    expect(young).toMatchObject({ complete: false, changes: [], namedSince, knownSince })
    const named = pageOf(await served.get(`/-/changes?since=${namedSince}`))
    expect(named).toMatchObject({ complete: true, changes: [{ id: 'later' }] })
  })

  longTest('lists what concerns one package out of more than ten thousand names', async () => {
    const about = (name: string): string => JSON.stringify({ affected: [{ package: { ecosystem: 'npm', name } }] })
    const { served } = await three()
    let records: Record<string, string> = { z: about('lodash') }
    for (const part of [1, 2, 3]) {
      const more = Array.from({ length: 6_000 }, (_, i) => [`m${part}-${i}`, about('other')])
      records = { ...records, ...(Object.fromEntries(more) as Record<string, string>) }
      served.store.publishOsv(records, FILLED_AT + 2000 + part * 1000)
    }
    served.server.snapshotChanged()
    let next: string | null = null
    const ids: string[] = []
    do {
      const after: string = next === null ? '' : `&after=${next}`
      const page = pageOf(await served.get(`/-/changes?since=3&purl=pkg:npm/lodash${after}`))
      expect(page).toMatchObject({ complete: true })
      ids.push(...page.changes.map(({ id }) => id ?? ''))
      next = page.next
    } while (next !== null)
    expect(ids).toEqual(['z'])
    expect(pageOf(await served.get('/-/changes?since=3'))).toMatchObject({
      complete: false,
      counts: { added: 18_001, changed: 0, removed: 3, unknownSnapshots: 0 },
    })
  })

  test('says of an empty mirror that its log is empty', async () => {
    const served = await serve(() => undefined)
    for (const since of ['7d', '2026-01-01']) {
      const reply = await served.get(`/-/changes?since=${since}`)
      expect([reply.status, jsonOf(reply)['message']]).toEqual([
        404,
        expect.stringMatching(/^the log is empty: nothing of it was published/),
      ])
    }
  })

  test('refuses malformed parameters with a reason', async () => {
    const { served, ids } = await three()
    const since = `since=${ids[0]}`
    for (const query of [
      ...['', 'since=', `${since}&${since}`, `${since}&source=ovs`, `${since}&limit=0`],
      ...[`${since}&limit=10001`, `${since}&limit=x`, `${since}&after=x`, `${since}&after=WzEsMl0`],
      ...['since=2026-11-25T20:00:00%2B99:99', 'since=2026-11-25T20:00:00-24:00'],
    ]) {
      const reply = await served.get(`/-/changes?${query}`)
      expect([query, reply.status, jsonOf(reply)['error']]).toEqual([query, 400, 'bad_request'])
    }
    const foreign = Buffer.from(JSON.stringify([0, 3, ''])).toString('base64url')
    expect((await served.get(`/-/changes?${since}&after=${foreign}`)).status).toBe(404)
  })

  test('answers a time before the first snapshot with all since that, and says that the mirror is younger', async () => {
    const { served, ids } = await three()
    const knownSince = new Date(FILLED_AT).toISOString()
    const young = pageOf(await served.get('/-/changes?since=2020-01-01'))
    expect(young).toMatchObject({
      from: ids[0],
      to: ids[2],
      complete: false,
      since: '2020-01-01T00:00:00.000Z',
      knownSince,
    })
    const known = pageOf(await served.get(`/-/changes?since=${knownSince}`))
    expect(known).toMatchObject({ complete: true, changes: young.changes })
    expect(known).not.toHaveProperty('knownSince')
    const first = pageOf(await served.get('/-/changes?since=2020-01-01&limit=1'))
    const rest = pageOf(await served.get(`/-/changes?since=2020-01-01&after=${first.next ?? ''}`))
    expect([...first.changes, ...rest.changes]).toEqual(young.changes)
  })

  test('judges all that is asked before it looks into the log, and takes nothing empty for all records', async () => {
    const { served, ids } = await three()
    for (const [query, status, message] of [
      ['purl=lodash', 400, 'Invalid purl'],
      ['ecosystem=nope', 400, 'the ecosystem nope'],
      ['limit=0', 400, 'limit must be'],
      ['detail=all', 400, 'detail=…'],
      ['detail=differences&source=feeds', 400, 'source=osv'],
      ['ecosystem=', 400, 'ecosystem= is empty'],
      ['purl=', 400, 'purl= is empty'],
      ['tag=', 400, 'tag= is empty'],
      ['ecosystem=npm', 404, 'is not known here, or too long ago'],
    ] as const) {
      const reply = await served.get(`/-/changes?since=${'f'.repeat(64)}&${query}`)
      expect([query, reply.status]).toEqual([query, status])
      expect(String(jsonOf(reply)['message'])).toContain(message)
    }
    const bogus = await served.get(`/-/changes?since=bogus`)
    expect([bogus.status, String(jsonOf(bogus)['message'])]).toEqual([
      400,
      expect.stringMatching(/since=bogus is none of: .*X-Mirror-Snapshot.*a weekday/),
    ])
    expect((await served.get(`/-/changes?since=${ids[0]}&source=`)).status).toBe(200)
  })

  longTest('is read only, answers HEAD, and is never cached', async () => {
    const { served, ids } = await three()
    const path = `/-/changes?since=${ids[0]}`
    const full = await served.get(path)
    const head = await served.head(path)
    expect(full.headers['cache-control']).toBe('no-store')
    expect({ ...head.headers, date: '' }).toEqual({ ...full.headers, date: '' })
    expect(head.body).toHaveLength(0)
    expect((await served.get(path, {}, 'POST')).status).toBe(405)
  })

  test('lists changes of the feeds to every client, of the catalog to clients with a key', async () => {
    const fill = (store: FilledStore) => store.publishFeeds(FEEDS)
    const served = await serve(fill, { env: { PATCHMIRROR_SERVER_KEYS: KEY } })
    const feed = await serving(served, 'feeds')
    served.store.publishFeeds({ ...FEEDS, '/external/cve_feed': '[]' }, FILLED_AT + 1000)
    const store = openWrites(served.dir)
    for (const id of ['c1', 'c2'])
      await store.transaction(() => {
        if (id === 'c2') store.catalog.replaceList('/v1/tags', 'tags', '{}', [], FILLED_AT)
        store.snapshots.replaceSnapshot(snapshot({ source: 'catalog', id }))
        return Promise.resolve({ commit: true })
      })
    store.close()
    served.server.snapshotChanged()
    expect(short(pageOf(await served.get(`/-/changes?since=${feed}`)))).toEqual([['/external/cve_feed', 'added']])
    const detailed = ['names', 'differences'].flatMap((detail) => [
      `since=c1&detail=${detail}`,
      `since=1&source=catalog&detail=${detail}`,
    ])
    const queries = ['since=c1', 'since=c1&source=catalog', 'since=none&source=identity']
    for (const query of [...queries, ...detailed, 'since=1&source=identity&purl=pkg:npm/a']) {
      const reply = await served.get(`/-/changes?${query}`)
      expect([query, reply.status]).toEqual([query, 401])
      expect(reply.body.toString()).not.toContain('/v1/tags')
    }
    expect(short(pageOf(await served.get('/-/changes?since=c1', KEYED)))).toEqual([['/v1/tags', 'added']])
  })

  longTest('leads from a copy of any earlier snapshot to the served one', async () => {
    const feed = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd', 'é', 'x y'), fc.constantFrom('1', '2'))
    await fc.assert(
      fc.asyncProperty(fc.array(feed, { minLength: 2, maxLength: 8 }), async (history) => {
        const served = await serve((store) => store.publishOsv({ first: '0' }))
        const kept: [string, Map<string, string>][] = []
        for (const [n, records] of history.entries()) {
          served.store.publishOsv(records, FILLED_AT + (n + 1) * 1000)
          kept.push([await serving(served), new Map(Object.entries(records))])
          for (const [since, copy] of kept) {
            const { changes } = pageOf(await served.get(`/-/changes?since=${since}&limit=100`))
            const followed = new Map(copy)
            for (const { id = '', change } of changes) {
              if (change === 'removed') followed.delete(id)
              else followed.set(id, records[id] ?? '')
            }
            expect(followed).toEqual(new Map(Object.entries(records)))
          }
        }
        await closeAll()
      }),
      { numRuns: LONG ? 8 : 2 },
    )
  })
})
