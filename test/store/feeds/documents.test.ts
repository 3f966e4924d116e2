import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Document, nextChanged } from '../../../src/store/feeds/documents.ts'
import { contentOf, packContent } from '../../../src/store/database/gzip.ts'
import { deflate } from '../../../src/base/gzip/member.ts'
import { NOW, sha256, snapshot, writes } from '../fixtures.ts'

const PATH = '/external/patch_feed'

function document(text: string | null, more: Partial<Document> = {}): Document {
  const content = Buffer.from(text ?? '')
  const body = text === null ? null : packContent(content, deflate)
  const size = content.length
  const made = { path: PATH, source: 'feeds' as const, body, size, sha256: sha256(content) }
  return { ...made, changed: NOW / 1000, entries: 3, ...more }
}

describe('a stored feed document', () => {
  test('is returned unchanged, and replaced as a whole', () => {
    const store = writes()
    expect(store.feeds.readDocument(PATH)).toBeNull()
    store.feeds.replaceDocument(document('{"alpine":[]}'))
    expect(store.feeds.readDocument(PATH)).toEqual(document('{"alpine":[]}'))
    store.feeds.replaceDocument(document('{}', { changed: 5, entries: 0 }))
    const held = store.feeds.readDocument(PATH)
    expect(held).toEqual(document('{}', { changed: 5, entries: 0 }))
    expect(contentOf(held?.body ?? Buffer.alloc(0), 2).toString()).toBe('{}')
  })

  test('that upstream does not have is recorded as absent, and can return', () => {
    const store = writes()
    store.feeds.replaceDocument(document(null))
    expect(store.feeds.readDocument(PATH)?.body).toBeNull()
    expect(store.feeds.listDocuments('feeds')).toMatchObject([{ path: PATH, present: false }])
    store.feeds.replaceDocument(document('{}'))
    expect(store.feeds.listDocuments('feeds')).toMatchObject([{ path: PATH, present: true }])
  })

  test('is listed under its own source, by path, without its body', () => {
    const store = writes()
    for (const path of ['/b', '/a']) store.feeds.replaceDocument(document('{}', { path }))
    store.feeds.replaceDocument(document('[]', { path: '/c', source: 'osv' }))
    const listed = store.feeds.listDocuments('feeds')
    expect(listed.map(({ path }) => path)).toEqual(['/a', '/b'])
    expect(listed[0]).not.toHaveProperty('body')
  })

  test("is removed together with upstream's validators for it", () => {
    const store = writes()
    store.feeds.replaceDocument(document('{}'))
    store.feeds.replaceUpstreamState(PATH, { etag: '"e"', lastModified: null, body: null })
    expect(store.feeds.readUpstreamState(PATH)).toEqual({
      etag: '"e"',
      lastModified: null,
      body: null,
    })
    store.feeds.replaceUpstreamState(PATH, {
      etag: null,
      lastModified: 'x',
      body: Buffer.from('b'),
    })
    expect(store.feeds.readUpstreamState(PATH)).toMatchObject({ etag: null, lastModified: 'x' })
    store.feeds.removeDocument(PATH)
    expect([store.feeds.readDocument(PATH), store.feeds.readUpstreamState(PATH)]).toEqual([null, null])
  })
})

describe('the date of a new version', () => {
  const second = fc.integer({ min: 0, max: 2_000_000_000 })
  const dates = fc.tuple(
    fc.option(second),
    fc.option(second),
    second.map((s) => s * 1000 + 999),
  )

  test('always moves strictly forward', () => {
    fc.assert(
      fc.property(dates, ([previous, upstream, now]) => {
        expect(nextChanged(previous, upstream, now)).toBeGreaterThan(previous ?? -1)
      }),
    )
  })

  test('is in the future only where the previous one requires it', () => {
    fc.assert(
      fc.property(dates, ([previous, upstream, now]) => {
        const next = nextChanged(previous, upstream, now)
        if (next > Math.floor(now / 1000)) expect(next).toBe((previous ?? 0) + 1)
      }),
    )
  })

  test("is upstream's own where possible, and otherwise as little later as possible", () => {
    fc.assert(
      fc.property(dates, ([previous, upstream, now]) => {
        const next = nextChanged(previous, upstream, now)
        const past = upstream !== null && upstream * 1000 <= now
        if (past && upstream > (previous ?? -1)) expect(next).toBe(upstream)
        if (past && upstream <= (previous ?? -1)) expect(next).toBe((previous ?? 0) + 1)
      }),
    )
  })
})

describe('a snapshot of a source', () => {
  test('gets the next sequence number only when its content changes', () => {
    const store = writes()
    expect(store.snapshots.readSnapshot('osv')).toBeNull()
    store.snapshots.replaceSnapshot(snapshot({ id: 'aa' }))
    expect(store.snapshots.readSnapshot('osv')).toEqual({
      ...snapshot({ id: 'aa' }),
      sequence: 1,
      scope: null,
      contentDigest: expect.any(String) as string,
    })
    store.snapshots.replaceSnapshot(snapshot({ id: 'aa', runId: 2, whole: false }))
    expect(store.snapshots.readSnapshot('osv')).toMatchObject({
      sequence: 1,
      runId: 2,
      whole: false,
    })
    store.snapshots.replaceSnapshot(snapshot({ id: 'bb', records: 7 }))
    store.snapshots.replaceSnapshot(snapshot({ id: 'aa' }))
    expect(store.snapshots.readSnapshot('osv')).toMatchObject({ sequence: 3, id: 'aa' })
  })

  test('keeps the date of its publication while its content is equal, as its id and its ETags do', () => {
    const store = writes()
    const at = (id: string, publishedAt: number, whole = true) => {
      store.snapshots.replaceSnapshot(snapshot({ id, publishedAt, whole }))
      return store.snapshots.readSnapshot('osv')
    }
    expect(at('aa', 1000)).toMatchObject({ publishedAt: 1000 })
    expect(at('aa', 2000, false)).toMatchObject({ publishedAt: 1000, whole: false })
    expect(store.changes.readLatestLogged('osv')).toMatchObject({ publishedAt: 1000 })
    expect(at('bb', 3000)).toMatchObject({ publishedAt: 3000 })
    expect(at('aa', 4000)).toMatchObject({ publishedAt: 4000 })
    expect(store.changes.readLatestLogged('osv')).toMatchObject({ publishedAt: 4000 })
  })

  test('is separate for each source', () => {
    const store = writes()
    store.snapshots.replaceSnapshot(snapshot({ id: 'aa' }))
    store.snapshots.replaceSnapshot(snapshot({ id: 'ff', source: 'feeds' }))
    store.snapshots.replaceSnapshot(snapshot({ id: 'bb' }))
    expect(store.snapshots.readSnapshot('feeds')).toMatchObject({ id: 'ff', sequence: 1 })
    expect(store.snapshots.readSnapshot('osv')).toMatchObject({ id: 'bb', sequence: 2 })
  })
})
