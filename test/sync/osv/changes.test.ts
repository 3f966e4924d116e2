import fc from 'fast-check'
import { expect } from 'vitest'
import type { SourceName } from '../../../src/base/domain/sources.ts'
import type { Reads } from '../../../src/store/reads.ts'
import { type Bench, createBench } from '../../support/mirror.ts'
import { bench } from '../catalog/fixtures.ts'
import { bothTest, LONG, longTest } from '../../support/tables.ts'

/** What a follower keeps of a source: name → a text that differs for each state. */
type Copy = Map<string, string>

function holdings(reads: Reads, source: SourceName): Copy {
  if (source === 'osv') {
    const sums = [...reads.osv.eachSum()]
    return new Map(sums.map(([id, , , sha, , modified]) => [id, `${sha.toString('hex')} ${modified}`]))
  }
  if (source === 'catalog') return catalogHoldings(reads)
  const documents = reads.feeds.listDocuments(source).filter(({ present }) => present)
  return new Map(documents.map(({ path, sha256 }) => [path, sha256.toString('hex')]))
}

/** Answers that are served, and lists with all that is in them. */
function catalogHoldings(reads: Reads): Copy {
  const held: Copy = new Map()
  for (const { path, status, sha256 } of reads.catalog.eachStoredAnswer()) {
    const links = JSON.stringify(reads.catalog.readAnswer(path)?.links)
    if (status === 200) held.set(path, `${sha256.toString('hex')} ${links}`)
  }
  for (const { id, path, frame } of reads.catalog.listLists()) {
    const items = [...reads.catalog.eachEntry(id)].map(({ sha }) => sha.toString('hex'))
    held.set(path, `${held.get(path) ?? ''} ${frame} ${items.join(' ')}`)
  }
  return held
}

/** Brings a copy of an earlier snapshot up to now by what the log says; null when it says to read everything. */
function follow(copy: Copy, snapshot: string, source: SourceName, now: Reads): Copy | null {
  const place = now.changes.findInLog(snapshot).find((one) => one.source === source)
  if (place === undefined) throw new Error(`${snapshot} is not in the log`)
  const span = { ...place, until: now.changes.readLatestLogged(source)?.id ?? 0 }
  if (now.changes.countNames(span) === null) return null
  const held = holdings(now, source)
  const next = new Map(copy)
  for (const { name, change } of now.changes.listChanged(span, '', 1000)) {
    expect([name, change, copy.has(name), held.has(name)]).toEqual([
      ...[name, change, change !== 'added', change !== 'removed'],
    ])
    if (change === 'removed') next.delete(name)
    else next.set(name, held.get(name) ?? '')
  }
  return next
}

interface Kept {
  snapshot: string
  copy: Copy
}

/** Checks after a run that every earlier copy, updated by the change log, equals the store. */
function check({ store }: Bench, source: SourceName, kept: Kept[]): void {
  const { id = '' } = store.snapshots.readSnapshot(source) ?? {}
  const held = holdings(store, source)
  for (const { snapshot, copy } of kept) {
    const followed = follow(copy, snapshot, source, store)
    if (followed !== null) expect([...followed].sort()).toEqual([...held].sort())
  }
  if (kept.at(-1)?.snapshot === id) expect(kept.at(-1)?.copy).toEqual(held)
  else kept.push({ snapshot: id, copy: held })
}

const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      edit: fc.constantFrom('add', 'change', 'changeSilently', 'withdraw', 'remove', 'moveBackwards'),
      n: fc.integer({ min: 1, max: 14 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ run: fc.constantFrom('sync', 'reconcile', 'full') }) },
)

bothTest('a copy that follows the change log equals the store after any history of the feed', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 6, maxLength: 14, size: 'max' }), async (steps) => {
      const made = await createBench({
        sandbox: { records: 30, large: 0 },
        env: { LIMIT_OSV_ARCHIVE_THRESHOLD: '8', PATCHMIRROR_GUARD_LIMIT: 'removed=100% and 20' },
      })
      try {
        const kept: Kept[] = []
        await made.run('osv')
        check(made, 'osv', kept)
        for (const one of steps) {
          if ('edit' in one) {
            const most = made.sandbox.feed.ids().length - 3
            made.sandbox.feed[one.edit](one.edit === 'remove' ? Math.min(one.n, most) : one.n)
            continue
          }
          const rows = made.store.changes.lastLogged()
          const before = made.store.snapshots.readSnapshot('osv')?.id
          const kind = one.run === 'reconcile' ? 'reconcile' : 'sync'
          await made.run('osv', { kind, full: one.run === 'full' })
          const moved = made.store.snapshots.readSnapshot('osv')?.id !== before
          expect(made.store.changes.lastLogged() - rows).toBe(moved ? 1 : 0)
          check(made, 'osv', kept)
        }
      } finally {
        await made.close()
      }
    }),
    { numRuns: LONG ? 6 : 2 },
  )
})

longTest('the change log names a changed feed by its path and omits runs without changes', async () => {
  const made = await createBench()
  try {
    const kept: Kept[] = []
    await made.run('feeds')
    check(made, 'feeds', kept)
    await made.run('feeds')
    expect(made.store.changes.lastLogged()).toBe(1)
    made.sandbox.feed.change(3)
    await made.run('feeds')
    check(made, 'feeds', kept)
  } finally {
    await made.close()
  }
})

longTest('the change log names the paths of changed catalog lists and answers', async () => {
  const made = await bench()
  const { service } = made.sandbox
  const kept: Kept[] = []
  const run = async (): Promise<void> => {
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    check(made, 'catalog', kept)
  }
  await run()
  await run()
  expect(made.store.changes.lastLogged()).toBe(1)
  const [first = '', second = '', untouched = ''] = service.ids('tags')
  const edits = [
    () => service.addTag(),
    () => service.change('tags', first),
    () => service.rotateArtifact('tag', second, 'sbom'),
    () => service.remove('packages', service.ids('packages')[0] ?? ''),
    () => service.addTicket(),
    () => service.remove('tags', first),
  ]
  const few = [() => edits.slice(0, 5).forEach((edit) => edit()), ...edits.slice(5)]
  for (const edit of LONG ? edits : few) {
    edit()
    await run()
  }
  const span = { source: 'catalog', after: 1, until: made.store.changes.lastLogged() } as const
  const told = made.store.changes.listChanged(span, '', 1000)
  const paths = new Map(told.map(({ name, change }) => [name, change]))
  expect(paths.get('/v1/tags')).toBe('changed')
  expect(paths.get('/v1/patches')).toBe('changed')
  expect(paths.get(`/v1/tags/${first}`)).toBe('removed')
  expect(paths.get(`/v1/tags/${second}/sbom`)).toBe('changed')
  expect(paths.get(`/v1/tags/${untouched}`)).toBeUndefined()
})
