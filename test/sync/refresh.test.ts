import { describe, expect, onTestFinished } from 'vitest'
import { buildStatus } from '../../src/server/status/status.ts'
import { openPinnedReads } from '../../src/store/reads.ts'
import { DAY, contentsOf, createClock } from './fixtures.ts'
import { SMALL, asked, bench, differences, lackingOf, mirrored } from './catalog/fixtures.ts'
import { WIDE, announced, expectNothingLeft, guarded, refresh, targetOf } from './refreshes.ts'
import { catalogBench } from '../support/catalog/mirror.ts'
import { longTest, test } from '../support/tables.ts'
import { countCatalog } from '../support/stored-counts.ts'

const NOT_TOUCHED = /^\/v1\/(patches|packages|subscriptions|me|orgs|api_keys|avrs)|^\/packages/

describe('a refresh', () => {
  longTest.each(['wire', 'other'] as const)(
    'requests only what belongs to the named new tag, and stores it with its artifacts (%s shape)',
    async (shape) => {
      const made = await mirrored({ ...WIDE, shape })
      const { service } = made.sandbox
      const tag = service.addTag(service.ids('images')[2])
      const target = announced(service, tag)
      expect(made.store.catalog.findAnnounced(target)).toMatchObject({ listed: false })
      const report = await refresh(made, target)
      expect(report).toMatchObject({ state: 'complete', kind: 'refresh', trigger: 'webhook' })
      const own = ['', '/sbom', '/vex', '/provenance'].map((kind) => `/v1/tags/${tag}${kind}`)
      const image = `/v1/images/${String(service.ids('images')[2])}`
      const lists = ['/v1/images/', '/v1/tags/', `/v1/images/${String(target.repository)}/tags`]
      const paths = new Set(asked(made, 'api')) // the other form's lists are probed for their cursor
      expect([...paths].sort()).toEqual([...lists, image, ...own].sort())
      expect(asked(made, 'artifacts')).toHaveLength(4) // three documents and the public key
      // The image that it replaces links to no document, so none is searched that could be dropped.
      expect(report.facts).not.toHaveProperty('documentsDropped')
      expect(made.store.catalog.findAnnounced(target)).toEqual({
        listed: true,
        digestMatches: true,
        artifacts: 'complete',
      })
      expect(await differences(made)).toEqual([])
      await expectNothingLeft(made)
    },
  )

  longTest('drops the documents that a changed tag no longer links to, and no others', async () => {
    const made = await mirrored({ ...SMALL, tags: 2 })
    const { service } = made.sandbox
    const [tag = ''] = service.ids('tags')
    const before = countCatalog(made.dir).documents
    service.rotateArtifact('tag', tag, 'sbom')
    const report = await refresh(made, announced(service, tag))
    expect(report).toMatchObject({ state: 'complete', facts: { documentsDropped: 1 } })
    expect(countCatalog(made.dir).documents).toBe(before)
    expect(await differences(made)).toEqual([])
    await expectNothingLeft(made)
  })

  longTest('drops the document of an answer that an earlier run fetched and did not publish', async () => {
    const made = await mirrored({ ...SMALL, tags: 2 })
    const { service } = made.sandbox
    const tag = service.addTag()
    const { catalog } = made.store
    const sink = catalog.openDocument()
    sink.write(Buffer.from('of an earlier version of the tag'))
    const { digest } = sink.end('text/plain', 1)
    const owned = { resource: 'tags', owner: `tags/${tag}`, ownerSha: Buffer.from('earlier') }
    const content = { status: 200, body: null, size: 0, sha256: Buffer.alloc(32), etag: null }
    const links = [{ at: [], digest }]
    const about = { links, mentions: [], confirmedAt: null }
    catalog.keepFetched({ path: `/v1/tags/${tag}/sbom`, ...owned, ...content, ...about })
    const report = await refresh(made, announced(service, tag))
    expect(report).toMatchObject({ state: 'complete', facts: { documentsDropped: 1 } })
    expect(catalog.readDocument(digest)).toBeNull()
    expect(await differences(made)).toEqual([])
  })

  test('costs three requests and no write when the named tag has not changed', async () => {
    const made = await mirrored(WIDE)
    const [tag = ''] = made.sandbox.service.ids('tags')
    const target = announced(made.sandbox.service, tag)
    const before = contentsOf(made.dir)
    const report = await refresh(made, target, target)
    expect(report).toMatchObject({ state: 'complete', message: 'nothing changed', asOf: null })
    const sublist = `/v1/images/${String(target.repository)}/tags`
    expect(asked(made).sort()).toEqual(['/v1/images/', '/v1/tags/', sublist].sort())
    expect(contentsOf(made.dir)).toEqual(before)
  })

  longTest('without targets finds every change in the lists that it walks', async () => {
    const made = await mirrored(WIDE)
    const { service } = made.sandbox
    const tag = service.addTag()
    service.addTicket()
    service.addPackage()
    expect(await refresh(made)).toMatchObject({ state: 'complete' })
    expect(asked(made).filter((path) => NOT_TOUCHED.test(path))).toEqual([])
    expect(made.store.catalog.findAnnounced(announced(service, tag)).artifacts).toBe('complete')
    expect(made.store.catalog.readList('/v1/patches')?.entries).toBe(WIDE.tickets)
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
    expect(await differences(made)).toEqual([])
  })

  longTest('does not move the date of the catalog beyond its last complete sync', async () => {
    const clock = createClock()
    const made = await catalogBench(WIDE, {
      env: { PATCHMIRROR_CATALOG_SCOPE: 'all' },
      now: clock.now,
      sandbox: { now: clock.now },
    })
    await made.run('catalog')
    const before = made.store.snapshots.readSnapshot('catalog')
    const confirmed = made.store.runs.readConfirmedAt('catalog')
    clock.pass(DAY)
    made.sandbox.service.addTag()
    expect(await refresh(made)).toMatchObject({ state: 'complete', asOf: null })
    const after = made.store.snapshots.readSnapshot('catalog')
    expect(after).toMatchObject({ asOf: before?.asOf, whole: true, publishedAt: clock.now() })
    expect(after?.sequence).toBe((before?.sequence ?? 0) + 1)
    expect(made.store.runs.readConfirmedAt('catalog')).toBe(confirmed)
  })

  longTest('before the first snapshot is a sync of everything', async () => {
    const made = await bench(WIDE)
    const report = await refresh(made, targetOf({ repository: 'nginx', tag: '1' }))
    expect(report).toMatchObject({ state: 'complete', kind: 'sync', trigger: 'webhook' })
    expect(made.store.catalog.readList('/v1/patches')?.entries).toBe(WIDE.tickets)
    expect(report.asOf).not.toBeNull()
  })

  longTest('follows a tag that moved to another digest', async () => {
    const made = await mirrored(WIDE)
    const { service } = made.sandbox
    const [, tag = ''] = service.ids('tags')
    const digest = `sha256:${'5'.repeat(64)}`
    const held = announced(service, tag)
    const target = { ...held, digest }
    expect(made.store.catalog.findAnnounced(target)).toMatchObject({
      listed: true,
      digestMatches: false,
    })
    service.change('tags', tag, { digest })
    service.rotateArtifact('tag', tag, 'sbom', { silent: true })
    expect(await refresh(made, target)).toMatchObject({ state: 'complete', facts: { arrived: 1 } })
    expect(made.store.catalog.findAnnounced(target)).toMatchObject({
      listed: true,
      digestMatches: true,
    })
    expect(made.store.catalog.findAnnounced(held)).toMatchObject({ digestMatches: false })
    expect(await differences(made)).toEqual([])
    await expectNothingLeft(made)
  })

  longTest('removes a tag that upstream removed, with its answers and those of its artifact set', async () => {
    const made = await mirrored(WIDE)
    const { service } = made.sandbox
    const [, tag = ''] = service.ids('tags')
    const target = announced(service, tag)
    service.remove('tags', tag)
    expect(await refresh(made, target)).toMatchObject({
      state: 'complete',
      facts: { removed: 7 },
    })
    expect(made.store.catalog.findAnnounced(target)).toMatchObject({
      listed: false,
      artifacts: null,
    })
    expect(await differences(made)).toEqual([])
    await expectNothingLeft(made)
  })

  longTest('of a tag out of scope lists it and stores nothing else', async () => {
    const made = await mirrored(WIDE, { PATCHMIRROR_CATALOG_SCOPE: 'subscribed' })
    const { service } = made.sandbox
    const tag = service.addTag(service.ids('images')[4])
    const target = announced(service, tag)
    expect(await refresh(made, target)).toMatchObject({ state: 'complete', facts: { fetched: 0 } })
    expect(made.store.catalog.findAnnounced(target).artifacts).toBe('out of scope')
    expect(asked(made)).toEqual(expect.not.arrayContaining([`/v1/tags/${tag}`]))
  })
})

const NONE = { kind: 'status', status: 404 } as const

longTest(
  'artifacts that are published later than their tag are fetched by the next refresh that names the tag, on the same day',
  async () => {
    const made = await mirrored(WIDE)
    const { service, faults } = made.sandbox
    const tag = service.addTag()
    const target = announced(service, tag)
    faults.set(`/v1/tags/${tag}/vex`, NONE)
    expect(await refresh(made, target)).toMatchObject({ state: 'complete' })
    expect(made.store.catalog.findAnnounced(target).artifacts).toBe('none yet')
    made.sandbox.requests.clear()
    const before = contentsOf(made.dir)
    expect(await refresh(made, target)).toMatchObject({ message: 'nothing changed' })
    expect(asked(made)).toContain(`/v1/tags/${tag}/vex`)
    expect(contentsOf(made.dir)).toEqual(before)
    faults.clear()
    made.sandbox.requests.clear()
    expect(await refresh(made)).toMatchObject({ message: 'nothing changed' })
    expect(asked(made)).not.toContain(`/v1/tags/${tag}/vex`)
    expect(await refresh(made, target)).toMatchObject({ state: 'complete', facts: { fetched: 1 } })
    expect(made.store.catalog.findAnnounced(target).artifacts).toBe('complete')
    expect(await differences(made)).toEqual([])
  },
)

longTest('artifacts that are published later than their tag are fetched by a sync that serves an event', async () => {
  const made = await mirrored(WIDE)
  const { service, faults } = made.sandbox
  const tag = service.addTag()
  const target = announced(service, tag)
  faults.set(`/v1/tags/${tag}/sbom`, NONE)
  await refresh(made, target)
  faults.clear()
  expect(await made.run('catalog')).toMatchObject({ message: 'nothing changed' })
  expect(await made.run('catalog', { targets: [target] })).toMatchObject({ state: 'complete' })
  expect(made.store.catalog.findAnnounced(target).artifacts).toBe('complete')
})

describe('an incomplete refresh', () => {
  longTest('fails and changes nothing while upstream is down', async () => {
    const made = await mirrored(WIDE)
    const tag = made.sandbox.service.addTag()
    const before = contentsOf(made.dir)
    made.sandbox.faults.set(/^\/v1\//, { kind: 'status', status: 503 })
    const report = await refresh(made, announced(made.sandbox.service, tag))
    expect(report).toMatchObject({ state: 'failed', code: 'upstream_status' })
    expect(contentsOf(made.dir)).toEqual(before)
    made.sandbox.faults.clear()
    expect(await refresh(made)).toMatchObject({ state: 'complete' })
    expect(await differences(made)).toEqual([])
  })

  longTest('fails at once when the credential is refused', async () => {
    const made = await mirrored(WIDE)
    made.sandbox.service.addTag()
    made.sandbox.faults.set('/v1/tags/*/sbom', { kind: 'status', status: 401 })
    expect(await refresh(made)).toMatchObject({ state: 'failed', code: 'upstream_auth' })
    made.sandbox.faults.clear()
    expect(await refresh(made)).toMatchObject({ state: 'complete' })
    await expectNothingLeft(made)
  })

  test('is partial, and its missing path stays recorded until a run has fetched it', async () => {
    const made = await mirrored(WIDE)
    const { service, faults } = made.sandbox
    const tag = service.addTag()
    const target = announced(service, tag)
    faults.set(`/v1/tags/${tag}/sbom`, { kind: 'status', status: 500 })
    const report = await refresh(made, target)
    expect([report.state, lackingOf(report).length]).toEqual(['partial', 1])
    expect(made.store.snapshots.readSnapshot('catalog')?.whole).toBe(false)
    expect(made.store.catalog.findAnnounced(target).artifacts).toBe('lacking')
    faults.clear()
    made.sandbox.requests.clear()
    const other = await refresh(made)
    expect(other).toMatchObject({ state: 'partial', facts: { leftAlone: 1 } })
    expect(asked(made)).toHaveLength(2)
    expect(made.store.catalog.listMissingPaths()).toMatchObject([
      { path: `/v1/tags/${tag}/sbom`, reason: expect.stringContaining('500') as string },
    ])
    expect(await refresh(made, target)).toMatchObject({ state: 'complete' })
    expect(made.store.snapshots.readSnapshot('catalog')?.whole).toBe(true)
    expect(made.store.catalog.listMissingPaths()).toEqual([])
    await expectNothingLeft(made)
  })

  longTest('keeps the missing paths of an earlier sync recorded', async () => {
    const made = await bench(WIDE)
    made.sandbox.faults.set('/v1/patches', { kind: 'status', status: 500 })
    made.sandbox.faults.set(/artifacts\/patches$/, { kind: 'status', status: 500 })
    expect(await made.run('catalog')).toMatchObject({ state: 'partial' })
    const lacking = made.store.catalog.listMissingPaths()
    expect(lacking.length).toBeGreaterThan(2)
    made.sandbox.service.addTag()
    expect(await refresh(made)).toMatchObject({ state: 'partial', facts: { fetched: 5 } })
    expect(made.store.catalog.listMissingPaths()).toEqual(lacking)
    expect(made.store.snapshots.readSnapshot('catalog')?.whole).toBe(false)
    made.sandbox.faults.clear()
    expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  })

  longTest('leaves a widened scope to the next sync, and does not report a whole snapshot', async () => {
    const few = await mirrored(WIDE, { PATCHMIRROR_CATALOG_SCOPE: 'subscribed' })
    const all = await bench(WIDE, { dir: few.dir })
    const report = await refresh(all)
    expect(report).toMatchObject({ state: 'partial', facts: { fetched: 0 } })
    expect(report.message).toContain('left to the next sync')
    expect(await all.run('catalog')).toMatchObject({ state: 'complete' })
    expect(all.store.snapshots.readSnapshot('catalog')?.whole).toBe(true)
  })
})

describe('the guard', () => {
  test('quarantines a refresh that would remove too much, and approve applies it', async () => {
    const made = await guarded()
    const { service } = made.sandbox
    for (const id of service.ids('tags').slice(0, 6)) service.remove('tags', id)
    const report = await refresh(made)
    expect(report).toMatchObject({ state: 'quarantined', facts: { quarantine: report.id } })
    expect(report.message).toContain('/v1/tags: it would remove 6 of 12 items')
    expect(made.store.catalog.readList('/v1/tags')?.entries).toBe(12)
    expect(await made.run('catalog')).toMatchObject({ facts: { quarantine: report.id } })
    const approved = made.store.quarantine.readQuarantine(report.id)
    if (approved === null) throw new Error('nothing was kept')
    expect(await made.run('catalog', { kind: 'approve', approved })).toMatchObject({
      state: 'complete',
    })
    expect(await differences(made)).toEqual([])
  })

  longTest('keeps the quarantine of a sync open while refreshes publish other changes', async () => {
    const made = await guarded()
    const { service } = made.sandbox
    for (const id of service.ids('tickets').slice(0, 30)) service.remove('tickets', id)
    const { id: run } = await made.run('catalog')
    const tag = service.addTag()
    expect(await refresh(made)).toMatchObject({ state: 'complete' })
    expect(made.store.catalog.findAnnounced(announced(service, tag)).artifacts).toBe('complete')
    expect(await refresh(made)).toMatchObject({ message: 'nothing changed' })
    expect(made.store.quarantine.listOpenQuarantines()).toMatchObject([{ runId: run }])
    for (const id of service.ids('tags').slice(0, 6)) service.remove('tags', id)
    const refused = await refresh(made)
    expect(refused).toMatchObject({ state: 'quarantined', facts: { quarantine: run } })
    expect(refused.message).toContain(`approve or reject run ${run} first`)
    expect(made.store.quarantine.listOpenQuarantines()).toMatchObject([{ runId: run }])
  })
})

longTest('a successful refresh does not hide the failure of the last sync', async () => {
  const made = await mirrored(SMALL)
  const reads = openPinnedReads(made.dir)
  if (reads === null) throw new Error('there is no database')
  onTestFinished(() => reads.close())
  const stateNow = (): string | undefined =>
    buildStatus({
      reads: reads.live,
      version: 'test',
      config: made.config,
      active: ['catalog'],
      startedAt: null,
      now: Date.now,
      nextRunAt: () => null,
    }).sources[0]?.state
  const { faults } = made.sandbox
  const states = []
  for (const [sync, ok] of [
    [true, true],
    [false, false],
    [false, true],
    [true, false],
    [false, true],
    [true, true],
  ]) {
    if (ok === false) faults.set(/^\/v1\//, { kind: 'status', status: 503 })
    else faults.clear()
    await (sync === true ? made.run('catalog') : refresh(made))
    states.push(stateNow())
  }
  expect(states).toEqual(['complete', 'failed', 'complete', 'failed', 'failed', 'complete'])
})

test('a tag that is announced before it is listed is found by a later refresh', async () => {
  const made = await mirrored(WIDE)
  const { service } = made.sandbox
  const target = targetOf({ subject: 'cr.example.com/library/python:early' })
  expect(await refresh(made, target)).toMatchObject({ message: 'nothing changed' })
  expect(made.store.catalog.findAnnounced(target).listed).toBe(false)
  const tag = service.addTag(service.ids('images')[0])
  service.change('tags', tag, { name: 'early' })
  expect(await refresh(made, target)).toMatchObject({ state: 'complete' })
  expect(made.store.catalog.findAnnounced(target)).toMatchObject({
    listed: true,
    artifacts: 'complete',
  })
})

longTest('many refreshes do not push complete syncs out of the run log', async () => {
  const made = await mirrored(SMALL, {}, { limits: { keepRuns: 10 } })
  const confirmed = made.store.runs.readConfirmedAt('catalog')
  for (let i = 0; i < 12; i++) await refresh(made)
  const kinds = made.store.runs.listRuns(100).map(({ kind }) => kind)
  expect(kinds.filter((kind) => kind === 'refresh')).toHaveLength(10)
  expect(kinds.filter((kind) => kind === 'sync')).toHaveLength(1)
  expect(made.store.runs.readConfirmedAt('catalog')).toBe(confirmed)
})
