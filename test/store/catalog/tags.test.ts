import Database from 'better-sqlite3'
import { describe, expect } from 'vitest'
import type { EventTarget } from '../../../src/base/domain/image-reference.ts'
import { MAX_TRACKED } from '../../../src/store/changes/tracker.ts'
import { databasePath } from '../../../src/store/database/open.ts'
import type { StoredAnswer } from '../../../src/store/catalog/answers.ts'
import type { FetchedAnswer } from '../../../src/store/catalog/answer-writes.ts'
import type { Writes } from '../../../src/store/writes.ts'
import { targetOf } from '../../sync/refreshes.ts'
import { NOW, writes } from '../fixtures.ts'
import { longTest, test } from '../../support/tables.ts'

const TAGS = '/v1/tags'
const A = `sha256:${'a'.repeat(64)}`
const B = `sha256:${'b'.repeat(64)}`

/** Publishes a list of items, all of one page. */
async function publish(
  store: Writes,
  items: readonly Record<string, unknown>[],
  path = TAGS,
  resource = 'tags',
): Promise<void> {
  await store.transaction(() => {
    store.catalog.staging.dropWalk(path)
    const entries = items.map((item, at) => {
      const sha = Buffer.alloc(16, 'x')
      return { id: `id ${at}`, body: Buffer.from(JSON.stringify(item)), sha, facets: [] }
    })
    const page = { cursor: null, next: null, etag: null, lastModified: null, number: 0 }
    const row = { ...page, sha256: Buffer.alloc(32), entries: entries.length }
    store.catalog.staging.stagePage(path, row, entries)
    store.catalog.replaceList(path, resource, '{}', [], NOW)
    return Promise.resolve({ commit: true })
  })
}

const isListed = (store: Writes, named: Partial<EventTarget>): boolean =>
  store.catalog.findAnnounced(targetOf(named)).listed

describe('the tag that an event names', () => {
  const FORMS = {
    'fields of its own': { name: '3.12', image: { repository: 'library/python' }, digest: A },
    'a repository with a host': { tag: '3.12', repo: 'cr.example.com/library/python', sha: A },
    'a reference of tag and repository': { ref: 'library/python:3.12', content: A },
  }
  test.each(Object.entries(FORMS))('is found in an item with %s', async (_form, item) => {
    const store = writes()
    await publish(store, [{ name: '3.12', image: { repository: 'node' } }, item])
    const target = { tag: '3.12', digest: A }
    for (const repository of ['library/python', 'localhost/library/python'])
      expect(store.catalog.findAnnounced(targetOf({ ...target, repository }))).toMatchObject({
        listed: true,
        digestMatches: true,
      })
    const subject = 'cr.example.com:5000/library/python:3.12'
    expect(isListed(store, { subject, digest: A })).toBe(true)
    expect(isListed(store, { digest: A })).toBe(true)
    expect(isListed(store, { tag: '3.12', repository: 'python' })).toBe(false)
    expect(isListed(store, { tag: '3.1', repository: 'library/python' })).toBe(false)
    expect(isListed(store, { digest: B })).toBe(false)
  })

  test('is found in a whole reference when the event says the same', async () => {
    const store = writes()
    const subject = 'cr.example.com:5000/library/python:3.12'
    await publish(store, [{ ref: `${subject}@${A}` }, { ref: subject }])
    expect(store.catalog.findAnnounced(targetOf({ subject }))).toMatchObject({ listed: true })
    expect(store.catalog.findAnnounced(targetOf({ subject, digest: A })).digestMatches).toBe(true)
    expect(isListed(store, { subject: subject.replace('3.12', '3.13') })).toBe(false)
  })

  test('may be missing without an error', async () => {
    const store = writes()
    await publish(store, [])
    const nothing = { listed: true, digestMatches: null, artifacts: null }
    expect(store.catalog.findAnnounced(targetOf({}))).toEqual(nothing)
    expect(store.catalog.findAnnounced(targetOf({ repository: 'nginx', arch: 'arm64' }))).toEqual(nothing)
  })

  test('may be malformed without an error', async () => {
    const store = writes()
    await publish(store, [{ name: '1', image: 'nginx' }])
    const odd = [`${'x'.repeat(300_000)}:1`, `"; DROP TABLE run; --`, '%', '\0', '\ud800', '::@@//:']
    for (const text of odd) {
      expect(isListed(store, { tag: text })).toBe(false)
      expect(isListed(store, { subject: text, tag: '1', repository: text })).toBe(false)
      expect(isListed(store, { subject: text, digest: text })).toBe(false)
    }
  })

  test('under another digest differs from a tag without a digest', async () => {
    const store = writes()
    await publish(store, [
      { name: '1', image: 'nginx', digest: B },
      { name: '2', image: 'nginx' },
    ])
    const find = (tag: string) =>
      store.catalog.findAnnounced(targetOf({ tag, repository: 'nginx', digest: A })).digestMatches
    expect([find('1'), find('2')]).toEqual([false, null])
    expect(store.catalog.findAnnounced(targetOf({ tag: '1' })).digestMatches).toBeNull()
  })

  test('for one architecture of several is the one with its digest', async () => {
    const store = writes()
    const one = { name: '1', image: 'nginx' }
    await publish(store, [
      { ...one, arch: 'arm64', digest: B },
      { ...one, arch: 'amd64', digest: A },
    ])
    expect(store.catalog.findAnnounced(targetOf({ tag: '1', digest: A })).digestMatches).toBe(true)
  })

  test('is removed with the item, and is searched only among tags', async () => {
    const store = writes()
    await publish(store, [{ name: '1' }, { name: '2' }])
    await publish(store, [{ name: '9' }], '/v1/packages', 'packages')
    expect(isListed(store, { tag: '2' })).toBe(true)
    expect(isListed(store, { tag: '9' })).toBe(false)
    await publish(store, [{ name: '1' }])
    expect(isListed(store, { tag: '2' })).toBe(false)
    await store.exclusive(() => store.catalog.removeList(TAGS))
    expect(isListed(store, { tag: '1' })).toBe(false)
  })

  test('is found without reading the items of other tags', async () => {
    const store = writes()
    const items = Array.from({ length: 3000 }, (_, i) => ({
      name: `t${i}`,
      image: `repo/${i % 50}`,
    }))
    await publish(store, items)
    const db = new Database(databasePath(store.dir), { readonly: true })
    const plan = db
      .prepare<[string], { detail: string }>(
        `EXPLAIN QUERY PLAN SELECT e.id FROM catalog_entry e WHERE e.rowid IN
           (SELECT entry FROM catalog_text WHERE text IN (SELECT value FROM json_each(?)))`,
      )
      .all('["t1"]')
      .map(({ detail }) => detail)
    db.close()
    expect(plan.filter((detail) => /^SCAN (e|catalog_)/.test(detail))).toEqual([])
    expect(isListed(store, { tag: 't2999', repository: 'repo/49' })).toBe(true)
  })
})

describe('the artifacts of a listed tag', () => {
  const SHA = Buffer.alloc(16, 'x')
  const answer = (path: string, more: Partial<FetchedAnswer> = {}): FetchedAnswer => ({
    path,
    resource: 'tags',
    owner: 'tags/id 0',
    ownerSha: SHA,
    status: 200,
    body: null,
    size: 0,
    sha256: Buffer.alloc(32),
    etag: null,
    links: [],
    mentions: [],
    confirmedAt: null,
    ...more,
  })
  const stateWith = async (
    answers: readonly FetchedAnswer[],
    lacking: readonly string[] = [],
  ): Promise<string | null> => {
    const store = writes()
    await publish(store, [{ name: '1' }])
    await store.transaction(() => {
      for (const one of answers) store.catalog.keepFetched(one)
      store.catalog.publishFetched(
        () => true,
        () => true,
        NOW,
      )
      store.catalog.replaceMissingPaths(
        () => true,
        lacking.map((path) => ({ path, resource: 'tags', reason: null })),
      )
      return Promise.resolve({ commit: true })
    })
    return store.catalog.findAnnounced(targetOf({ tag: '1' })).artifacts
  }
  const own = '/v1/tags/id%200'

  longTest('are published when there are more than the change log lists', async () => {
    const store = writes()
    const count = MAX_TRACKED + 10
    const paths = Array.from({ length: count }, (_, at) => `/v1/tags/${at}`)
    await store.transaction(() => {
      for (const path of paths) store.catalog.keepFetched(answer(path))
      const published = store.catalog.publishFetched(
        () => true,
        () => true,
        NOW,
      )
      expect(published).toBe(count)
      return Promise.resolve({ commit: true })
    })
    expect([...store.catalog.eachFetchedPath()]).toEqual([])
    const [first, last] = [paths[0], paths.at(-1)].map((path) => store.catalog.readAnswer(path ?? ''))
    expect(last).toEqual({ ...first, path: paths.at(-1) })
    expect(last?.changed).toBe(Math.floor(NOW / 1000))
  })

  longTest('are published by the thousand, but for those of another source', async () => {
    const store = writes()
    await store.transaction(() => {
      for (let at = 0; at < 2500; at++)
        store.catalog.keepFetched(answer(`/v1/tags/${at}`, { resource: at % 5 === 0 ? 'users' : 'tags' }))
      const count = store.catalog.publishFetched(
        (resource) => resource === 'tags',
        (path) => path !== '/v1/tags/2499',
        NOW,
      )
      expect(count).toBe(1999)
      return Promise.resolve({ commit: true })
    })
    expect([...store.catalog.eachFetchedPath()]).toHaveLength(500)
    const stored = [...store.catalog.eachStoredAnswer()]
    expect(stored).toHaveLength(1999)
    const digests = (one: StoredAnswer | undefined) => one && [one.path, one.ownerSha, one.sha256, one.confirmedAt]
    expect(stored[0]?.sha256.length).toBe(answer('').sha256.length)
    const shown = stored.map(({ path, owner, status }) => ({ path, owner, status }))
    const owners = new Set(stored.map(({ owner }) => owner))
    const [first = ''] = owners
    for (const read of [store.catalog.readStoredAnswers(), store.catalog.readStoredOwners()]) {
      expect(stored.map(({ path }) => digests(read.get(path)))).toEqual(stored.map(digests))
      expect(read.owners()).toEqual(owners)
      const named = [...read.ofOwners((owner) => owner === first)]
      expect(named.map(({ path, owner, status }) => ({ path, owner, status }))).toEqual(
        shown.filter(({ owner }) => owner === first),
      )
      expect([...read.ofOwners(() => false)]).toEqual([])
      expect([read.get('/v1/tags/2499'), read.has('/v1/tags/2499')]).toEqual([undefined, false])
      expect(read.has(shown[0]?.path ?? '')).toBe(true)
    }
  })

  test('are reported as complete, none yet, lacking or out of scope', async () => {
    const details = answer(own)
    const sbom = answer(`${own}/sbom`)
    expect(await stateWith([])).toBe('out of scope')
    expect(await stateWith([details, sbom])).toBe('complete')
    expect(await stateWith([details, { ...sbom, status: 404 }])).toBe('none yet')
    expect(await stateWith([details], [`${own}/sbom`])).toBe('lacking')
    expect(await stateWith([], [own])).toBe('lacking')
    expect(await stateWith([details], ['/v1/tags/id%2001/sbom'])).toBe('complete')
    const stale = { ...sbom, ownerSha: Buffer.alloc(16, 'y') }
    expect(await stateWith([details, stale])).toBe('lacking')
  })
})
