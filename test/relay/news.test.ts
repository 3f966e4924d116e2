import { expect, test } from 'vitest'
import { sampleEvent } from '../../src/cli/webhooks/send.ts'
import { isOldNews } from '../../src/relay/news.ts'
import type { Announced, NewTag } from '../../src/store/catalog/tags.ts'

const NOW = Date.UTC(2026, 5, 1)
const DIGEST = `sha256:${'a'.repeat(64)}`
const EVENT = { type: 'io.service.cr.image.created.v1', repository: 'python', tag: '3.12', digest: DIGEST, arch: 'amd64' } // prettier-ignore
const body = sampleEvent('e1', NOW, EVENT)
const LISTED: Announced = { listed: true, digestMatches: true, artifacts: 'complete' }
const arrival = (names: Partial<NewTag>): NewTag => ({
  ...{ runId: 1, at: NOW - 1000, repository: 'python', tag: '3.12', digest: DIGEST },
  ...{ trigger: 'schedule', ...names },
})

test.each<[string, boolean, Announced, NewTag[]]>([
  ['a tag that was mirrored before, as a test event names one', true, LISTED, []],
  ['a tag of which another one is new', true, LISTED, [arrival({ tag: '3.13', digest: null })]],
  ['a new tag', false, LISTED, [arrival({})]],
  [
    'a new tag in another spelling',
    false,
    LISTED,
    [arrival({ repository: 'cr.example.com/python', digest: null })],
  ],
  ['a new digest of a tag', false, LISTED, [arrival({ repository: null, tag: null })]],
  ['a tag that is listed with another digest', false, { ...LISTED, digestMatches: false }, []],
  [
    'a tag that is not mirrored',
    false,
    { listed: false, digestMatches: null, artifacts: null },
    [],
  ],
])('a team workspace is told of %s: not %s', (_what, isOld, announced, arrived) => {
  const reads = { findAnnounced: () => announced, listNewTags: () => arrived }
  expect(isOldNews(body, reads, NOW)).toBe(isOld)
})

test('an event that names no image is passed on to a team workspace', () => {
  const reads = { findAnnounced: () => LISTED, listNewTags: () => [] }
  const snapshot = { type: 'io.patchmirror.snapshot.published.v1', data: { source: 'osv' } }
  expect(isOldNews(Buffer.from(JSON.stringify(snapshot)), reads, NOW)).toBe(false)
  expect(isOldNews(Buffer.from('no'), reads, NOW)).toBe(false)
})
