import { join } from 'node:path'
import Database from 'better-sqlite3'
import { atomEntries } from '../../support/atom.ts'
import { afterEach, describe, expect } from 'vitest'
import { findChanges } from '../../../src/server/followers/changes.ts'
import { openShortReads } from '../../../src/store/reads.ts'
import { openWrites } from '../../../src/store/writes.ts'
import { createWeb } from '../../../src/features/pages/web.ts'
import { type Served, FILLED_AT, closeAll, jsonOf, serve } from '../served.ts'
import { longTest, test } from '../../support/tables.ts'

afterEach(closeAll)

interface Change {
  id: string
  change: string
  differences: { kind: string }[] | null
  words: string[]
}

/** A record about packages, each as `ecosystem name fixed`. */
const about = (...packages: string[]): string =>
  JSON.stringify({
    affected: packages.map((one) => {
      const [ecosystem, name, fixed] = one.split(' ')
      const events = [{ introduced: '0' }, { fixed }]
      return { package: { ecosystem, name }, ranges: [{ type: 'ECOSYSTEM', events }] }
    }),
  })

const BEFORE = {
  a: about('npm lodash 4.17.21'),
  b: about('PyPI Zope.Interface 5.0'),
  c: about('npm lodash 1.0.0', 'Debian:12 lodash 1.0-1'),
  d: '{"details":"one"}',
  f: about('npm other 1.0.0'),
}
const AFTER = {
  a: about('npm lodash 4.17.20'),
  b: about('PyPI zope-interface 5.1'),
  c: about('npm lodash 1.0.0', 'Debian:12 lodash 1.0-2'),
  d: '{"details": "one"}',
  e: about('npm lodash 5.0.0'),
}

/** A mirror with two snapshots, a second apart, and its answers. */
async function mirror() {
  const served = await serve((store) => store.publishOsv(BEFORE))
  served.store.publishOsv(AFTER, FILLED_AT + 1000)
  served.server.snapshotChanged()
  const ask = async (query: string) => {
    const reply = await served.get(`/-/changes?${query}`)
    return { status: reply.status, body: jsonOf(reply) }
  }
  const changes = async (query: string): Promise<Change[]> => {
    const { status, body } = await ask(query)
    expect([query, status]).toEqual([query, 200])
    return body['changes'] as Change[]
  }
  const words = async (query: string) => (await changes(query)).map(({ id, words: [first] }) => `${id} ${first}`)
  return { served, ask, changes, words }
}

test("a package that a vendor patches is found by the names of scanners, and by the vendor's", async () => {
  const served = await serve((store) => store.publishOsv({ v: about('Root:Maven a:b 1.0') }))
  served.store.publishOsv({ v: about('Root:Maven a:b 2.0') }, FILLED_AT + 1000)
  served.server.snapshotChanged()
  for (const [filter, found] of [
    ['purl=pkg:maven/a/b', 1],
    ['ecosystem=Maven', 1],
    ['ecosystem=Root:Maven', 1],
    ['ecosystem=Root', 1],
    ['ecosystem=npm', 0],
    ['purl=pkg:maven/a/c', 0],
  ] as const) {
    const body = jsonOf(await served.get(`/-/changes?since=1&${filter}`))
    expect([filter, (body['changes'] as object[]).length]).toEqual([filter, found])
  }
})

/** So many records that no page compares all of them, and one that is listed behind them. */
const many = (fixed: string): Record<string, string> => {
  const names = Array.from({ length: 250 }, (_, i) => [`m${i}`, about(`npm other ${fixed}`)])
  return Object.fromEntries(names) as Record<string, string>
}

/** A mirror with four snapshots of many records; the package is in two of the changes, once only in what was before. */
async function crowded() {
  const served = await serve((store) => store.publishOsv({ ...many('1.0'), z: about('npm lodash 1.0') }), {
    people: (config) => createWeb({ config, version: '9.9.9' }),
  })
  const later = [
    { ...many('2.0'), z: about('npm lodash 2.0') },
    { ...many('3.0'), z: about('npm lodash 2.0') },
    { ...many('4.0'), z: about('npm other 2.0') },
  ]
  later.forEach((records, i) => served.store.publishOsv(records, FILLED_AT + 1000 * (i + 1)))
  served.server.snapshotChanged()
  return served
}

describe('what changed of one package among very many', () => {
  test('is on the first page, which asks the filter before it counts names', async () => {
    const served = await crowded()
    for (const since of [1, 2, 3]) {
      const body = jsonOf(await served.get(`/-/changes?since=${since}&purl=pkg:npm/lodash`))
      expect([since, body['next']]).toEqual([since, null])
      expect((body['changes'] as Change[]).map(({ id }) => id)).toEqual(['z'])
    }
    const others = jsonOf(await served.get('/-/changes?since=1&purl=pkg:npm/other'))
    expect(others['changes']).toHaveLength(100)
    expect(others['next']).not.toBeNull()
    const none = jsonOf(await served.get('/-/changes?since=1&purl=pkg:npm/none'))
    expect(none).toMatchObject({
      changes: [],
      next: null,
      notJudged: 0,
      note: expect.stringContaining('compared as a whole') as string,
    })
    expect(others).not.toHaveProperty('note')
  })

  longTest('is in the feed alone, without an entry for a snapshot that does not concern it', async () => {
    const served = await crowded()
    const itemsOf = async (purl: string) => {
      const { body } = await served.get(`/-/ui/changes.atom?purl=${purl}`, { accept: 'application/atom+xml' })
      return atomEntries(body.toString())
    }
    const items = await itemsOf('pkg:npm/lodash')
    expect(items).toHaveLength(2)
    expect(items[1]?.content).toMatch(/^z: npm lodash: fix raised from 1.0 to 2.0\nz: [^\n]*$/)
    expect(items[0]?.content).toContain('z: npm lodash')
    expect(await itemsOf('pkg:npm/none')).toEqual([])
    const [crowd] = await itemsOf('pkg:npm/other')
    expect(crowd?.content).toMatch(
      /\nand 150 more differences\nmore of the changed records may concern it than are compared here/,
    )
    const page = await served.get('/-/ui/changes?since=1&purl=pkg:npm/lodash', {
      accept: 'text/html',
    })
    expect(String(page.body)).toContain('record?id=z')
  })
})

const FIRST = new Date(FILLED_AT).toISOString()

/** Runs work on the stored data, as another process does. */
function write(served: Served, work: (store: ReturnType<typeof openWrites>) => void): void {
  const store = openWrites(served.dir)
  work(store)
  store.close()
  served.server.snapshotChanged()
}

describe('/-/changes with differences', () => {
  test('reports nothing that is newer than what is served', async () => {
    const { served } = await mirror()
    served.store.publishOsv({ ...AFTER, a: about('npm lodash 9.0.0'), g: '{}' }, FILLED_AT + 2000)
    const opened = openShortReads(served.dir)
    if (opened === null) throw new Error('no database')
    const [first, second, third] = [1, 2, 3].map((id) => opened.reads.changes.readLogged(id)?.snapshot ?? '')
    const found = (latest: number | null) => {
      const asked = { after: null, limit: 100, detailed: true, now: Date.now(), latest }
      const { to, changes } = findChanges(opened.reads, { source: 'osv', after: 1 }, first ?? '', asked) ?? {}
      const words = changes?.flatMap((one) => ('id' in one && one.id < 'b' ? (one.words?.slice(0, 1) ?? []) : []))
      return { to, count: changes?.length, words }
    }
    expect(found(1)).toEqual({ to: first, count: 0, words: [] })
    expect(found(2)).toEqual({ to: second, count: 6, words: ['npm lodash: fix lowered from 4.17.21 to 4.17.20'] })
    expect(found(null)).toMatchObject({ to: third, count: 7, words: ['npm lodash: fix raised from 4.17.21 to 9.0.0'] })
    opened.close()
  })

  test('reports what changed in each record, as data and in words', async () => {
    const { changes, words } = await mirror()
    expect(await words(`since=1&detail=differences`)).toEqual([
      'a npm lodash: fix lowered from 4.17.21 to 4.17.20',
      'b PyPI zope-interface: fix raised from 5.0 to 5.1',
      'c Debian:12 lodash: fix raised from 1.0-1 to 1.0-2',
      `d only the date of modification changed from 2026-07-01T00:00:00Z to 2026-07-01T00:00:01Z`,
      'e record added',
      'f record removed',
    ])
    const [first] = await changes('since=1&detail=differences')
    expect(first?.differences).toMatchObject([
      {
        kind: 'fix_lowered',
        package: { ecosystem: 'npm', name: 'lodash' },
        from: '4.17.21',
        to: '4.17.20',
      },
      {
        kind: 'range_narrowed',
        removed: [{ events: [{ introduced: '0' }, { fixed: '4.17.21' }] }],
      },
    ])
    expect((await changes('since=1'))[0]).not.toHaveProperty('words')
  })

  test('reports those of an ecosystem or a package alone', async () => {
    const { ask, words } = await mirror()
    const ids = async (query: string) => (await words(`since=1&${query}`)).map((one) => one.slice(0, 1)).join('')
    expect(await ids('ecosystem=npm')).toBe('aef')
    expect(await ids('ecosystem=Debian')).toBe('c')
    expect(await ids('purl=pkg:npm/lodash@4.17.20')).toBe('ae')
    expect(await ids('purl=pkg:pypi/zope_interface')).toBe('b')
    expect(await ids('purl=pkg:npm/none')).toBe('')
    expect((await ask('since=1&ecosystem=npm&limit=1')).body).toMatchObject({ notJudged: 0 })
    for (const query of [
      'ecosystem=none',
      'purl=lodash',
      'purl=pkg:bogus/x',
      'detail=all',
      'detail=differences&source=feeds',
    ])
      expect([query, (await ask(`since=1&${query}`)).status]).toEqual([query, 400])
  })

  test('refuses the cursor of a list of other packages, whose names it would pass over', async () => {
    const { ask } = await mirror()
    const next = async (query: string) => String((await ask(`since=1&limit=1&${query}`)).body['next'])
    for (const [query, after] of [
      ['ecosystem=npm', await next('')],
      ['', await next('ecosystem=npm')],
      ['purl=pkg:npm/lodash', await next('ecosystem=npm')],
    ]) {
      const { status, body } = await ask(`since=1&${query}&after=${after}`)
      expect([query, status, body['message']]).toEqual([query, 400, expect.stringContaining('of other packages')])
    }
    const purl = await next('purl=pkg:npm/lodash@4.17.20')
    expect((await ask(`since=1&purl=pkg:npm/lodash&after=${purl}`)).status).toBe(200)
  })

  test('takes a time, which it echoes, beside a snapshot and its number', async () => {
    const { served, ask, words } = await mirror()
    const { body } = await ask(`since=${FIRST}&detail=differences`)
    expect(body).toMatchObject({ since: FIRST, complete: true })
    expect(body['changes']).toHaveLength(6)
    expect((await ask('since=2026-07-01T00:00:01Z')).body).toMatchObject({ changes: [] })
    expect(await words(`since=${String(body['from'])}&detail=differences`)).toHaveLength(6)
    expect((await ask('since=2026-06-30')).body).toMatchObject({ complete: false })
    expect((await ask('since=9999-01-01')).body).toMatchObject({ error: 'bad_request' })
    expect((await served.get('/-/changes?since=0d')).status).toBe(200)
  })

  test('compares what its pages belong to, also when another snapshot follows', async () => {
    const { served, ask, changes } = await mirror()
    const { next } = (await ask('since=1&detail=differences&limit=1')).body
    served.store.publishOsv({ ...AFTER, b: about('PyPI zope-interface 9.9') }, FILLED_AT + 2000)
    served.server.snapshotChanged()
    const [second] = await changes(`since=1&detail=differences&limit=1&after=${String(next)}`)
    expect(second?.words[0]).toBe('PyPI zope-interface: fix raised from 5.0 to 5.1')
  })

  test('says of a change that it compared before the same without reading it again, on pages of the same size', async () => {
    const { served, ask, words } = await mirror()
    const query = 'since=1&detail=differences'
    const first = await ask(query)
    const said = await words(query)
    const db = new Database(join(served.dir, 'mirror.db'))
    db.exec("UPDATE osv_body SET bytes = x'00'")
    db.close()
    served.server.snapshotChanged()
    expect(await ask(query)).toEqual(first)
    expect(await words(query)).toEqual(said)
    expect(await words('since=1&purl=pkg:npm/lodash')).toEqual([])
    const { body } = await ask('since=1&purl=pkg:npm/lodash')
    expect(body['notJudged']).toBeGreaterThan(0)
  })

  test('says of a removed record that is out of the scope that upstream lists it', async () => {
    const { served, words } = await mirror()
    const removed = async () => (await words('since=1&detail=differences')).at(-1)
    expect(await removed()).toBe('f record removed')
    const db = new Database(join(served.dir, 'mirror.db'))
    db.exec("INSERT INTO osv_outside (id, modified) VALUES ('f', '2026-07-01T00:00:01Z')")
    db.close()
    served.server.snapshotChanged()
    expect(await removed()).toBe(
      'f record removed from this mirror: upstream lists it, and it is out of the scope (osv.scope)',
    )
  })

  test('says where an earlier version is no longer stored, and guesses nothing', async () => {
    const { served, ask, words } = await mirror()
    const versions = ['a', 'b', 'c', 'd', 'e', 'f'].flatMap((id) => [1, 2, 3].map((log) => ({ id, log })))
    write(served, ({ changes }) => changes.dropVersions(versions))
    const unstored = `(earlier version not stored since ${new Date(FILLED_AT + 1000).toISOString()})`
    expect(await words('since=1&detail=differences')).toEqual([
      ...['a', 'b', 'c', 'd'].map((id) => `${id} changed ${unstored}`),
      'e record added',
      `f record removed; changed ${unstored}`,
    ])
    const { body } = await ask('since=1&purl=pkg:npm/lodash')
    expect(body).toMatchObject({ notJudged: 3 })
    expect((body['changes'] as Change[]).map(({ id, differences }) => [id, differences?.[0]?.kind])).toEqual([
      ['a', undefined],
      ['c', undefined],
      ['e', 'record_added'],
    ])
  })

  longTest('does not compare a record with too many values, and ends a page with many differences', async () => {
    const versions = (...numbers: number[]) =>
      JSON.stringify({ affected: numbers.map((one) => ({ versions: [`${one}`] })) })
    const many = Array.from({ length: 20_000 }, (_, i) => i)
    const scores = (score: string) =>
      JSON.stringify({ affected: Array.from({ length: 4500 }, (_, i) => ({ severity: [{ type: `${i}`, score }] })) })
    const one = scores('1')
    const other = scores('2')
    const served = await serve((store) => store.publishOsv({ a: versions(...many), b: one, c: one, d: one }))
    served.store.publishOsv({ a: versions(...many, 7), b: other, c: other, d: other }, FILLED_AT + 1000)
    served.server.snapshotChanged()
    const page = jsonOf(await served.get('/-/changes?since=1&detail=differences'))
    const changes = page['changes'] as Change[]
    expect(changes[0]?.words).toEqual(['changed (more than 30000 values, not compared)'])
    expect(changes.map(({ id }) => id).join('')).toBe('ab')
    expect([changes[1]?.differences?.length, changes[1]?.words.length]).toEqual([4500, 201])
    expect(changes[1]?.words.at(-1)).toBe('and 4300 more differences')
    const rest = jsonOf(await served.get(`/-/changes?since=1&detail=differences&after=${String(page['next'])}`))
    expect([(rest['changes'] as Change[]).map(({ id }) => id), rest['next']]).toEqual([['c'], expect.any(String)])
    expect(jsonOf(await served.get('/-/changes?since=1&detail=differences'))).toEqual(page)
    expect(jsonOf(await served.get('/-/changes?since=1&purl=pkg:npm/lodash'))).toMatchObject({
      changes: [],
      notJudged: 0,
    })
  })
})
