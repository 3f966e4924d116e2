import { expect, test } from 'vitest'
import type { Status } from '../../../src/base/reports/status.ts'
import { describeFindings, describeViews } from '../../../src/cli/mirror/status/lines.ts'
import { load } from '../../config/loading.ts'

const NONE = {
  snapshot: null,
  madeAt: null,
  making: false,
  failing: false,
  odd: null,
  unread: null,
}

test('the status has a line with the state of the views, their time and their fault', () => {
  expect(describeViews({ kind: 'vex', state: 'none', ...NONE })).toBe('views of vex: none')
  const made = { ...NONE, snapshot: 'ab', madeAt: '2026-07-01T00:00:00.000Z' }
  expect(describeViews({ kind: 'osv', state: 'current', ...made, odd: 0 })).toBe(
    'views of osv: current, made on 2026-07-01 00:00:00Z',
  )
  const troubled = { ...made, making: true, failing: true, odd: 2 }
  expect(describeViews({ kind: 'osv', state: 'behind', ...troubled })).toMatch(
    /^views of osv: behind, made on .*, being built, the last try failed: see the log, 2 records with an invalid package$/,
  )
  expect(describeViews({ kind: 'osv', state: 'current', ...NONE, odd: 1 })).toMatch(
    / 1 record with an invalid package$/,
  )
  expect(describeViews({ kind: 'vex', state: 'behind', ...NONE, unread: 2 })).toBe(
    'views of vex: behind, 2 documents are damaged and missing: patchmirror doctor --data --repair',
  )
  expect(describeViews({ kind: 'vex', state: 'current', ...NONE, unread: 0 })).toBe('views of vex: current')
})

/** A report of a mirror with these snapshots and findings; `undefined` is a source that is not mirrored. */
function reported(
  snapshots: { osv: string | null; catalog: string | null | undefined },
  findings: Partial<Status['findings']> = {},
  views: 'none' | 'current' = 'current',
): Status {
  const none = { state: 'none', tags: 0, judged: 0, osv: null, catalog: null, judgedAt: null }
  const sources = Object.entries(snapshots).flatMap(([name, snapshot]) =>
    snapshot === undefined ? [] : [{ name, snapshot }],
  )
  return {
    sources,
    views: [{ kind: 'osv', ...NONE, state: views }],
    findings: { ...none, judging: false, failing: false, ...findings },
  } as unknown as Status // what this line is made from
}

test.each<[string, Status, string]>([
  ['there is no catalog', reported({ osv: 'a', catalog: undefined }), 'none: this mirror has no catalog'],
  [
    'nothing is mirrored yet',
    reported({ osv: null, catalog: null }, {}, 'none'),
    'the tags are not judged yet: the catalog is not mirrored yet, no records are mirrored yet, the views of the records are not built yet',
  ],
  [
    'they are judged for the first time',
    reported({ osv: 'a', catalog: 'b' }, { judging: true }),
    'the tags are not judged yet, being judged',
  ],
  [
    'the first try failed',
    reported({ osv: 'a', catalog: 'b' }, { failing: true }),
    'the tags are not judged yet, the last try failed: see the log',
  ],
  [
    'the catalog has no tag',
    reported({ osv: 'a', catalog: 'b' }, { state: 'current' }),
    'current, no tag is judged: the mirrored catalog has none',
  ],
  [
    'no tag has an SBOM',
    reported({ osv: 'a', catalog: 'b' }, { state: 'behind', tags: 4 }),
    'behind, 0 of 4 tags are judged: "patchmirror list findings" says why',
  ],
  [
    'all have one',
    reported({ osv: 'a', catalog: 'b' }, { state: 'current', tags: 1, judged: 1 }),
    'current, 1 of 1 tag is judged',
  ],
])('the status says of the findings of tags how far they are judged, or why not: %s', (_, status, line) => {
  expect(describeFindings(load().config, status)).toBe(`findings of tags: ${line}`)
})

test('the status names the setting that turns off the findings of tags, where there is a catalog', () => {
  const { config } = load({ env: { PATCHMIRROR_VIEWS_SERVE: 'bucket,derived,query,vex' } })
  expect(describeFindings(config, reported({ osv: 'a', catalog: 'b' }))).toContain('views.serve has no findings')
  expect(describeFindings(config, reported({ osv: 'a', catalog: null }))).toBeNull()
})
