import { expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import type { EventTarget } from '../../../src/base/domain/image-reference.ts'
import { sampleEvent } from '../../../src/features/account/webhooks/send.ts'
import { isOldNews } from '../../../src/features/relay/news.ts'
import type { Announced, NewTag } from '../../../src/store/catalog/tags.ts'
import { timeOfAges } from '../../../src/store/runs/age-limit.ts'
import { catalogBench } from '../../support/catalog/mirror.ts'
import { DAY, createClock } from '../../sync/fixtures.ts'
import { SMALL } from '../../sync/catalog/fixtures.ts'
import { announced } from '../../sync/refreshes.ts'

const NOW = Date.UTC(2026, 5, 1)
const DIGEST = `sha256:${'a'.repeat(64)}`
const EVENT = {
  type: 'io.service.cr.image.created.v1',
  repository: 'python',
  tag: '3.12',
  digest: DIGEST,
  arch: 'amd64',
}
const body = sampleEvent('e1', NOW, EVENT)
const LISTED: Announced = { listed: true, digestMatches: true, artifacts: 'complete' }
const arrival = (names: Partial<NewTag>): NewTag => ({
  runId: 1,
  at: NOW - 1000,
  repository: 'python',
  tag: '3.12',
  digest: DIGEST,
  trigger: 'schedule',
  ...names,
})

test.each<[string, boolean, Announced, NewTag[]]>([
  ['a tag that was mirrored before, as a test event names one', true, LISTED, []],
  ['a tag of which another one is new', true, LISTED, [arrival({ tag: '3.13', digest: null })]],
  ['a new tag', false, LISTED, [arrival({})]],
  ['a new tag in another spelling', false, LISTED, [arrival({ repository: 'cr.example.com/python', digest: null })]],
  ['a new digest of a tag', false, LISTED, [arrival({ repository: null, tag: null })]],
  ['a tag that is listed with another digest', false, { ...LISTED, digestMatches: false }, []],
  ['a tag that is not mirrored', false, { listed: false, digestMatches: null, artifacts: null }, []],
])('a team workspace is told of %s: not %s', (_what, isOld, announced, arrived) => {
  const reads = {
    findAnnounced: () => announced,
    listNewTags: () => arrived,
    hasUnlistedTags: () => false,
  }
  expect(isOldNews(body, reads, NOW)).toBe(isOld)
})

test('an event that names no image is passed on to a team workspace', () => {
  const reads = { findAnnounced: () => LISTED, listNewTags: () => [], hasUnlistedTags: () => false }
  const snapshot = { type: 'io.patchmirror.snapshot.published.v1', data: { source: 'osv' } }
  expect(isOldNews(Buffer.from(JSON.stringify(snapshot)), reads, NOW)).toBe(false)
  expect(isOldNews(Buffer.from('no'), reads, NOW)).toBe(false)
})

test('changed findings are passed on to a team workspace, though they are always of a mirrored tag', () => {
  const reads = { findAnnounced: () => LISTED, listNewTags: () => [], hasUnlistedTags: () => false }
  const type = 'io.patchmirror.findings.changed.v1'
  const data = { tags: 1, changes: [{ tag: { id: 'tag_1', name: 'library/python:3.12' }, newFindings: 1 }] }
  const event = { specversion: '1.0', id: 'f1', source: '/patchmirror/a', type, data }
  expect(isOldNews(Buffer.from(JSON.stringify({ ...event, type: EVENT.type })), reads, NOW)).toBe(true)
  expect(isOldNews(Buffer.from(JSON.stringify(event)), reads, NOW)).toBe(false)
})

const ENDED = { state: 'complete', endedAt: NOW } as const

function eventOf({ repository, tag, digest }: EventTarget): Buffer {
  const names = { repository: repository ?? '', tag: tag ?? '', digest: digest ?? '' }
  return sampleEvent('e1', NOW, { ...EVENT, ...names })
}

longTest(
  'a tag that the first sync after a long outage finds is news, whatever the clock shows, and others are not',
  async () => {
    const clock = createClock()
    const made = await catalogBench(SMALL, { now: clock.now, sandbox: { now: clock.now } })
    const { service } = made.sandbox
    const isOld = (id: string, at = clock.now()): boolean =>
      isOldNews(eventOf(announced(service, id)), made.store.catalog, timeOfAges(made.store, at))
    await made.run('catalog')
    const [before = ''] = service.ids('tags')
    clock.pass(60 * DAY)
    const found = service.addTag()
    expect(isOld(found)).toBe(false) // its event comes before the sync
    await made.run('catalog')
    expect([isOld(before), isOld(found), isOld(found, clock.now() + 900 * DAY)]).toEqual([...[true, false, false]])
    const { runId } = made.store.catalog.listNewTags(0)[0] ?? { runId: 0 }
    const run = made.store.runs.listRuns(1)[0]
    if (run === undefined) throw new Error('no run')
    made.store.runs.endRun(runId, { ...run, ...ENDED, facts: { arrived: 1001 } }) // more than a run stores
    expect(isOld(before)).toBe(false)
    clock.pass(31 * DAY)
    await made.run('catalog')
    expect([isOld(before), isOld(found)]).toEqual([true, true])
  },
)
