import { setImmediate } from 'node:timers/promises'
import { describe, expect } from 'vitest'
import type { CatalogBench } from '../../support/catalog/mirror.ts'
import { type Said, type Saying, plainBench } from '../../support/catalog/plain-service.ts'
import { bothTest, longTest, telling, test } from '../../support/tables.ts'
import { contentsOf } from '../fixtures.ts'
import { SMALL, asked, bench, differences, mirrored } from './fixtures.ts'
import { countCatalog } from '../../support/stored-counts.ts'

const MANY = { ...SMALL, tickets: 60, tags: 16 }
/** A guard that a small service can trip. */
const GUARD = { PATCHMIRROR_GUARD_LIMIT: 'removed=10% and 5' }

/** As `patchmirror approve RUN` does it. */
async function approve(made: Pick<CatalogBench, 'run' | 'store'>, run: number) {
  const approved = made.store.quarantine.readQuarantine(run)
  if (approved === null) throw new Error(`run ${run} has nothing in quarantine`)
  const report = await made.run(approved.source, { kind: 'approve', approved })
  if (report.state === 'complete') expect(made.store.quarantine.readQuarantine(run)?.decision).toBe('approved')
  return report
}

function served(dir: string): Record<string, string> {
  const { quarantine: _kept, catalog_fetched: _hand, ...rest } = contentsOf(dir)
  return rest
}

async function shrunk(): Promise<{ made: CatalogBench; run: number }> {
  const made = await mirrored(MANY, GUARD)
  const { service } = made.sandbox
  for (const id of service.ids('tickets').slice(0, 30)) service.remove('tickets', id)
  const before = served(made.dir)
  const report = await made.run('catalog')
  expect(report).toMatchObject({
    state: 'quarantined',
    asOf: null,
    facts: { quarantine: report.id },
  })
  expect(report.message).toContain('/v1/patches: it would remove 30 of 60 items (50.0 %)')
  expect(report.message).not.toContain('changed since')
  expect(report.facts).toMatchObject({ plannedRemoved: 30 })
  expect(report.facts['plannedRemovedIds']).toHaveLength(20)
  expect(served(made.dir)).toEqual(before)
  return { made, run: report.id }
}

describe('a list that suddenly shrinks', () => {
  longTest(
    'to nothing is quarantined, however few items it had; that of an account’s subscriptions may be',
    async () => {
      const made = await mirrored(SMALL)
      const { service } = made.sandbox
      const count = service.ids('tickets').length
      expect(count).toBeLessThanOrEqual(20)
      for (const id of service.ids('tickets')) service.remove('tickets', id)
      const report = await made.run('catalog')
      expect(report).toMatchObject({ state: 'quarantined' })
      expect(report.message).toContain(`/v1/patches: it would remove all ${count} items`)
      expect(await approve(made, report.id)).toMatchObject({ state: 'complete' })
      for (const id of service.ids('subscriptions')) service.remove('subscriptions', id)
      expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
      expect(await differences(made)).toEqual([])
    },
  )

  longTest('to the tags of other images, or to other tags, is mirrored: it is not empty', async () => {
    const made = await mirrored(SMALL)
    const { service } = made.sandbox
    const { catalog } = made.store
    const path = '/v1/images/library/python/tags'
    const { id = 0 } = catalog.readList(path) ?? {}
    const tags = [...catalog.eachEntry(id)].map((entry) => entry.id)
    expect(tags).toHaveLength(2)
    for (const tag of tags) service.remove('tags', tag)
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(catalog.readList(path)?.entries).toBe(0)
    const before = service.ids('tags')
    service.addTag()
    for (const tag of before) service.remove('tags', tag)
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(await differences(made)).toEqual([])
  })

  longTest('is quarantined, and approve applies exactly that list', async () => {
    const { made, run } = await shrunk()
    expect(await made.run('catalog')).toMatchObject({
      state: 'quarantined',
      facts: { quarantine: run },
    })
    expect((await made.ask('/v1/patches')).status).toBe(200)
    expect(made.store.catalog.readList('/v1/patches')?.entries).toBe(60)
    expect(await approve(made, run)).toMatchObject({ state: 'complete' })
    expect(made.store.catalog.readList('/v1/patches')?.entries).toBe(30)
    expect(made.store.quarantine.listOpenQuarantines()).toEqual([])
    expect(await differences(made)).toEqual([])
  })

  longTest('may grow before approval, which applies to the removal', async () => {
    const { made, run } = await shrunk()
    made.sandbox.service.addTicket()
    made.sandbox.service.addTag()
    expect(await approve(made, run)).toMatchObject({ state: 'complete' })
    expect(await differences(made)).toEqual([])
  })

  longTest('is quarantined again when it loses other items than the approved ones', async () => {
    const { made, run } = await shrunk()
    const { service } = made.sandbox
    made.sandbox.faults.clear()
    const [first = ''] = service.ids('tickets')
    const removed = [...made.store.catalog.eachEntry(made.store.catalog.readList('/v1/patches')?.id ?? 0)]
    service.remove('tickets', first)
    // One of those that had gone is back.
    const back = JSON.parse(String(removed[0]?.body)) as Record<string, unknown>
    const page = await (await made.askUpstream('/v1/patches?limit=1000')).json()
    const { tickets, cursor } = page as { tickets: object[]; cursor: object }
    const body = JSON.stringify({ tickets: [back, ...tickets], cursor })
    made.sandbox.faults.set('/v1/patches', { kind: 'body', type: 'application/json', body })
    const report = await approve(made, run)
    expect(report).toMatchObject({ state: 'quarantined' })
    expect(report.facts['quarantine']).not.toBe(run)
    expect(made.store.catalog.readList('/v1/patches')?.entries).toBe(60)
  })

  test('stays refused once it was rejected', async () => {
    const { made, run } = await shrunk()
    await made.store.exclusive(() => made.store.quarantine.decideQuarantine(run, 'rejected', Date.now()))
    for (let i = 0; i < 2; i++) {
      const report = await made.run('catalog')
      expect(report).toMatchObject({ state: 'quarantined', facts: { quarantine: run } })
      expect(report.message).toContain(`rejected before (run ${run})`)
    }
    expect(made.store.catalog.readList('/v1/patches')?.entries).toBe(60)
  })

  longTest('closes its quarantine when it returns to its size', async () => {
    const made = await mirrored(MANY, GUARD)
    const body = JSON.stringify({ tickets: [], cursor: { after: '' } })
    made.sandbox.faults.set('/v1/patches', { kind: 'body', type: 'application/json', body })
    expect(await made.run('catalog')).toMatchObject({ state: 'quarantined' })
    expect(made.store.quarantine.listOpenQuarantines()).toHaveLength(1)
    made.sandbox.faults.clear()
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(made.store.quarantine.listOpenQuarantines()).toEqual([])
  })

  test('is only reported by --dry-run', async () => {
    const made = await mirrored(MANY, GUARD)
    for (const id of made.sandbox.service.ids('tickets').slice(0, 30)) made.sandbox.service.remove('tickets', id)
    const before = contentsOf(made.dir)
    expect(await made.run('catalog', { dryRun: true })).toMatchObject({ state: 'quarantined' })
    expect(contentsOf(made.dir)).toEqual(before)
  })
})

describe('a list that shrinks in steps below the limits', () => {
  const steps = async (most: number) => {
    const made = await mirrored({ ...SMALL, tickets: 60 }, GUARD)
    const { service } = made.sandbox
    const states: string[] = []
    let message: string | null = null
    for (let step = 0; step < most; step++) {
      for (const id of service.ids('tickets').slice(0, 3)) service.remove('tickets', id)
      const report = await made.run('catalog')
      states.push(report.state)
      message = report.message
    }
    return { made, states, message }
  }

  test('is quarantined with the step that exceeds them together', async () => {
    const { states, message } = await steps(3)
    expect(states).toEqual(['complete', 'complete', 'quarantined'])
    expect(message).toContain(
      '9 of 60 items of /v1/patches would be removed within 7 days, 3 of them in this run (itemsRemoved, more than 5 and more than 10 %)',
    )
  })

  longTest('is approved with that step, and counted from there', async () => {
    const { made } = await steps(3)
    const run = made.store.quarantine.listOpenQuarantines()[0]?.runId ?? 0
    expect(await approve(made, run)).toMatchObject({ state: 'complete' })
    expect(made.store.catalog.readList('/v1/patches')?.entries).toBe(51)
    for (const id of made.sandbox.service.ids('tickets').slice(0, 3)) made.sandbox.service.remove('tickets', id)
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  })

  longTest('is not counted for items that are there again', async () => {
    const made = await mirrored({ ...SMALL, tickets: 60 }, GUARD)
    const all = await (await made.askUpstream('/v1/patches?limit=1000')).json()
    const { tickets } = all as { tickets: object[] }
    for (let step = 0; step < 6; step++) {
      const rest = step % 2 === 0 ? tickets.toSpliced(step * 3, 3) : tickets
      const body = JSON.stringify({ tickets: rest, cursor: { after: '' } })
      made.sandbox.faults.set('/v1/patches', { kind: 'body', type: 'application/json', body })
      expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    }
  })
})

describe('a scope that changes', () => {
  const env = (scope: string, more: Record<string, string> = {}) => ({
    ...GUARD,
    PATCHMIRROR_CATALOG_SCOPE: scope,
    ...more,
  })
  const OWNERS = /^(tags|images|packages)\//
  const ownersOf = ({ store }: Pick<CatalogBench, 'store'>) =>
    new Set([...store.catalog.eachStoredAnswer()].map(({ owner }) => owner).filter((owner) => OWNERS.test(owner)))

  longTest('from subscribed to all fetches what it adds and nothing else', async () => {
    const few = await mirrored(MANY, env('subscribed'))
    const before = ownersOf(few)
    const all = await bench(MANY, { dir: few.dir, env: env('all') })
    expect(await all.run('catalog')).toMatchObject({ state: 'complete' })
    expect(ownersOf(all).size).toBe(MANY.tags + 2 + 3) // every tag, image and package
    for (const owner of before) {
      const [kind = '', id = ''] = owner.split('/')
      const own = new RegExp(`^/v1/${kind}/${id}(/|$)`)
      expect(asked(all).filter((path) => own.test(path))).toEqual([])
    }
  })

  test('from all to subscribed prunes under the guard', async () => {
    const all = await mirrored(MANY, env('all'))
    const few = await bench(MANY, { dir: all.dir, env: env('subscribed') })
    const refused = await few.run('catalog')
    expect(refused).toMatchObject({ state: 'quarantined' })
    expect(refused.message).toMatch(/would remove \d+ of \d+ items with their artifacts/)
    expect(refused.message).toMatch(
      /; run 1 used another catalog\.scope, which may be the cause; approve or reject run 2$/,
    )
    const before = ownersOf(all)
    expect(ownersOf(few)).toEqual(before)
    const documents = countCatalog(few.dir).documents
    expect(await approve(few, refused.id)).toMatchObject({ state: 'complete' })
    const left = ownersOf(few)
    expect(left.size).toBeLessThan(20)
    const gone = [...before].filter((owner) => !left.has(owner)).sort()
    expect(refused.facts['plannedRemoved']).toBeGreaterThanOrEqual(gone.length)
    const named = refused.facts['plannedRemovedIds'] as string[]
    expect(named.filter((name) => OWNERS.test(name))).toEqual(gone)
    expect(countCatalog(few.dir).documents).toBeLessThan(documents)
    expect(await few.run('catalog')).toMatchObject({ message: 'nothing changed' })
  })

  const THREE = { ...SMALL, images: 3, tags: 6, packages: 5 }
  const THREE_OWNERS = 3 + 6 + 5

  longTest('by patterns adds and removes the items that they name', async () => {
    const base = await mirrored(THREE, { PATCHMIRROR_CATALOG_SCOPE: 'subscribed' })
    const [, , image = ''] = base.sandbox.service.ids('images')
    expect(ownersOf(base)).not.toContain(`images/${image}`)
    const include = await bench(THREE, {
      dir: base.dir,
      env: { PATCHMIRROR_CATALOG_SCOPE: 'subscribed', PATCHMIRROR_CATALOG_PATTERNS: 'image:nginx' },
    })
    expect(await include.run('catalog')).toMatchObject({ state: 'complete' })
    expect(ownersOf(include)).toContain(`images/${image}`)
    expect(include.store.catalog.readList('/v1/images/nginx/tags')?.entries).toBe(2)
    const exclude = await bench(THREE, {
      dir: base.dir,
      env: { PATCHMIRROR_CATALOG_SCOPE: 'all', PATCHMIRROR_CATALOG_PATTERNS: '!image:nginx' },
    })
    expect(await exclude.run('catalog')).toMatchObject({ state: 'complete' })
    expect(ownersOf(exclude)).not.toContain(`images/${image}`)
    expect(exclude.store.catalog.readList('/v1/images/nginx/tags')).toBeNull()
    expect(ownersOf(exclude).size).toBe(THREE_OWNERS - 3) // the image and its two tags
  })
})

longTest('staged catalog answers survive repeated rollbacks of another source', async () => {
  const made = await mirrored({ ...SMALL, tickets: 3000 })
  const { service } = made.sandbox
  for (const id of service.ids('tags')) service.rotateArtifact('tag', id, 'sbom')
  service.addTicket()
  const other = { running: true, rolledBack: 0 }
  const rollBack = async (): Promise<void> => {
    while (other.running) {
      await made.store.transaction(async () => {
        for (let turns = 0; turns < 20; turns++) await setImmediate() // the catalog gets answers meanwhile
        return { commit: false }
      })
      other.rolledBack++
    }
  }
  const rolling = rollBack()
  expect(await made.run('catalog')).toMatchObject({ state: 'complete', code: null })
  other.running = false
  await rolling
  expect(other.rolledBack).toBeGreaterThan(20)
  expect(await differences(made)).toEqual([])
})

longTest('a source that fails does not disturb another that runs at the same time', async () => {
  const made = await mirrored(SMALL)
  made.sandbox.service.addTag()
  made.sandbox.faults.set('/external/osv/all.json', { kind: 'html' })
  const [catalog, osv] = await Promise.all([made.run('catalog'), made.run('osv')])
  expect([catalog.state, osv.state]).toEqual(['complete', 'failed'])
  expect(await differences(made)).toEqual([])
})

longTest(
  'the identity surface and the catalog keep their own documents and lists when they run at the same time',
  async () => {
    const made = await mirrored(SMALL, { PATCHMIRROR_CATALOG_PERSONAL_DATA: 'users' })
    const { service } = made.sandbox
    for (let i = 0; i < 4; i++) {
      for (const id of service.ids('tags')) service.rotateArtifact('tag', id, 'sbom')
      const [user = ''] = service.ids('users')
      service.change('users', user, { name: `name ${i}` })
      const [catalog, identity] = await Promise.all([made.run('catalog'), made.run('identity')])
      expect([catalog.state, identity.state]).toEqual(['complete', 'complete'])
      expect(await differences(made)).toEqual([])
    }
  },
)

test('a list of users that is empty at once is quarantined: whoever asks is one of them', async () => {
  let users = ['a', 'b', 'c'].map((user_id) => ({ user_id }))
  const made = await plainBench({ '/v1/users': () => ({ body: users }) }, (origin) => {
    return { PATCHMIRROR_IDENTITY_API_URL: `${origin}/v1`, PATCHMIRROR_CATALOG_PERSONAL_DATA: 'users' }
  })
  expect(await made.run('identity')).toMatchObject({ state: 'complete' })
  users = []
  const report = await made.run('identity')
  expect(report).toMatchObject({ state: 'quarantined' })
  expect(report.message).toContain('/v1/users: it would remove all 3 items')
})

/** What the service says to an account: images that are listed, and its subscriptions to some of them. */
function accountOf(images: readonly string[], subscribed: readonly string[]): Record<string, Saying> {
  const list = (data: readonly object[]) => (): Said => ({ body: { data, cursor: { after: null } } })
  const paths: Record<string, Saying> = {
    '/v1/subscriptions/': list(subscribed.map((image) => ({ id: `s-${image}`, image_id: image }))),
    '/v1/images/': list(images.map((id) => ({ id, name: id }))),
    '/v1/tags/': list(images.map((id) => ({ id: `t-${id}`, image_id: id, name: '1' }))),
  }
  for (const id of images) {
    paths[`/v1/subscriptions/s-${id}/`] = () => ({ body: { id: `s-${id}` } })
    paths[`/v1/images/${id}`] = () => ({ body: { id } })
    paths[`/v1/images/${id}/tags`] = list([{ id: `t-${id}`, image_id: id, name: '1' }])
    paths[`/v1/tags/t-${id}`] = () => ({ body: { id: `t-${id}` } })
    paths[`/v1/tags/t-${id}/sbom`] = () => ({ body: { bomFormat: 'CycloneDX', specVersion: '1.5', serialNumber: id } })
  }
  return paths
}

describe('all images that are mirrored, however few,', () => {
  const ACCOUNTS: [string, 'all' | 'subscribed', Record<string, Saying>, string][] = [
    ['stay where another account answers', 'all', accountOf(['x', 'y'], ['x']), 'quarantined'],
    [
      'stay where another account with a subscription answers',
      'subscribed',
      accountOf(['x', 'y'], ['x']),
      'quarantined',
    ],
    ['stay where the only subscription is not listed', 'subscribed', accountOf(['a', 'b'], []), 'quarantined'],
    ['go where another listed one is subscribed', 'subscribed', accountOf(['a', 'b'], ['b']), 'complete'],
  ]
  bothTest.each(
    telling(ACCOUNTS, 'stay where another account answers', 'stay where the only subscription is not listed'),
  )('%s (scope: %s)', async (_, scope, account, state) => {
    const own = accountOf(['a', 'b'], ['a'])
    const made = await plainBench(own, { PATCHMIRROR_CATALOG_SCOPE: scope })
    const statusOf = async (path: string) => (await made.ask(path)).status
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    made.say(account)
    const report = await made.run('catalog')
    expect([report.state, await statusOf('/v1/tags/t-a/sbom')]).toEqual([state, state === 'complete' ? 404 : 200])
    if (state === 'complete') return
    expect(report.message).toContain('it would remove every image, tag and package that is mirrored')
    expect(await statusOf('/v1/tags/t-x')).toBe(404)
    made.say(own)
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(made.store.quarantine.listOpenQuarantines()).toEqual([])
    made.say(account)
    expect(await approve(made, (await made.run('catalog')).id)).toMatchObject({ state: 'complete' })
    expect(await statusOf('/v1/tags/t-a/sbom')).toBe(404)
  })
})

test('a later version in place of the only package that is mirrored, with other ids, is published', async () => {
  let n = 1
  const versions = '/packages/ecosystems/npm/packages/p/versions'
  const idsOf = (version: number): string[] => ['amd64', 'arm64'].map((arch) => `p-${version}-${arch}`)
  const entry = (id: string) => ({ id, name: 'p', ecosystem: 'npm', version: `1.0.${n}` })
  const paths: Record<string, Saying> = {
    '/v1/packages/': () => ({ body: { data: idsOf(n).map(entry) } }),
    [versions]: () => ({ body: [`1.0.${n}`] }),
  }
  for (const id of [...idsOf(1), ...idsOf(2)]) paths[`/v1/packages/${id}/`] = () => ({ body: { id } })
  const made = await plainBench(paths)
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  n++
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  expect((await made.ask('/v1/packages/p-2-arm64/')).status).toBe(200)
})
