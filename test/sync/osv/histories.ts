import fc from 'fast-check'
import type { Fault } from '../../sandbox/faults/fault.ts'
import { HOSTILE_KINDS } from '../../sandbox/faults/hostile-zip.ts'
import { type Bench, createBench, differences } from '../../support/mirror.ts'
import { ARCHIVE, INDEX, RECORDS, disagreements, verify } from '../fixtures.ts'

/** One thing that happens: to the feed, on the wire, or in the mirror. */
type Step =
  | { do: 'add' | 'change' | 'changeSilently' | 'withdraw' | 'remove' | 'moveBackwards'; n: number }
  | { do: 'freezeArchive' | 'thawArchive' | 'freezeIndex' | 'thawIndex' }
  | { do: 'fault'; path: string | RegExp; fault: Fault; after: number; times: number }
  | { do: 'sync' | 'reconcile' | 'full' }

const FAULTS: Fault[] = [
  { kind: 'status', status: 500 },
  { kind: 'status', status: 404 },
  { kind: 'status', status: 429, headers: { 'Retry-After': '9999' } },
  { kind: 'reset' },
  { kind: 'reset', bytes: 300 },
  { kind: 'truncate' },
  { kind: 'wrongLength', by: 5 },
  { kind: 'wrongLength', by: -5 },
  { kind: 'html' },
  { kind: 'empty' },
  { kind: 'garbage' },
  { kind: 'gzipBomb', bytes: 1_000_000 },
  { kind: 'redirect', location: 'http://127.0.0.2:9/' },
]
const INDEX_FAULTS: Fault[] = [
  ...FAULTS,
  { kind: 'corrupt' },
  { kind: 'shrinkIndex', keep: 0.4 },
  { kind: 'ghostIds' },
  { kind: 'duplicateIds' },
]
const ARCHIVE_FAULTS: Fault[] = [
  ...FAULTS,
  { kind: 'corrupt' },
  { kind: 'corrupt', offset: 100 },
  { kind: 'corrupt', offset: -30 },
  { kind: 'wrongCrc', member: 5 },
  { kind: 'truncatedZip', keep: 0.7 },
  { kind: 'ignoreRange' },
  { kind: 'wrongRange', how: 'shifted' },
  { kind: 'wrongRange', how: 'bytes' },
  { kind: 'wrongRange', how: 'total' },
  ...HOSTILE_KINDS.filter((kind) => !/bomb|many|long/i.test(kind)).map((archive): Fault => ({
    kind: 'archive',
    archive,
  })),
]

const fault = (path: string | RegExp, faults: Fault[]): fc.Arbitrary<Step> =>
  fc.record({
    do: fc.constant('fault' as const),
    path: fc.constant(path),
    fault: fc.constantFrom(...faults),
    after: fc.nat(3),
    times: fc.integer({ min: 1, max: 4 }),
  })

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom('add', 'change', 'changeSilently', 'withdraw', 'remove', 'moveBackwards'),
      n: fc.integer({ min: 1, max: 12 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('freezeArchive', 'thawArchive', 'freezeIndex', 'thawIndex'),
    }),
  },
  { weight: 1, arbitrary: fault(INDEX, INDEX_FAULTS) },
  { weight: 2, arbitrary: fault(ARCHIVE, ARCHIVE_FAULTS) },
  { weight: 1, arbitrary: fault(RECORDS, FAULTS) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('sync', 'reconcile', 'full') }) },
)

/** A random history; records of the feed from the first to the last step. */
export const histories = (maxLength: number): fc.Arbitrary<Step[]> =>
  fc.array(step, { minLength: 3, maxLength, size: 'max' })

/**
 * Lives through a history and tells what was wrong: at any moment index, records and archive must agree, a run must
 * end in a row, and after the faults are gone one sync and one reconcile must bring exactly what upstream has.
 */
export async function liveThrough(history: readonly Step[]): Promise<string[]> {
  const made = await createBench({
    sandbox: { records: 30, large: 0 },
    env: {
      LIMIT_OSV_ARCHIVE_THRESHOLD: '10',
      PATCHMIRROR_GUARD_LIMIT: 'removed=50% and 13',
      PATCHMIRROR_UPSTREAM_MAX_BYTES: 'json=200 KB',
      LIMIT_UPSTREAM_RETRIES: '1',
    },
  })
  try {
    const wrong: string[] = []
    for (const [i, one] of history.entries()) {
      wrong.push(...(await take(made, one)).map((what) => `step ${i} (${one.do}): ${what}`))
    }
    return [...wrong, ...(await settle(made))]
  } finally {
    await made.close()
  }
}

async function take(made: Bench, one: Step): Promise<string[]> {
  const { feed, faults } = made.sandbox
  if (one.do === 'fault') {
    const { path, after, times } = one
    faults.set(path, one.fault, { after, times })
    return []
  }
  if ('n' in one) {
    feed[one.do](one.do === 'remove' ? Math.min(one.n, feed.ids().length - 5) : one.n)
    return []
  }
  if (one.do !== 'sync' && one.do !== 'reconcile' && one.do !== 'full') {
    feed[one.do]()
    return []
  }
  const kind = one.do === 'reconcile' ? 'reconcile' : 'sync'
  const report = await made.run('osv', { kind, full: one.do === 'full' })
  const wrong = disagreements(made.store, made.dir)
  if (report.code === 'internal' || report.code === 'proof') wrong.push(String(report.message))
  const whole = made.store.snapshots.readSnapshot('osv')?.whole
  if (report.state === 'complete' && whole !== true) wrong.push('complete, but not whole')
  return wrong
}

async function settle(made: Bench): Promise<string[]> {
  const { sandbox, store, dir } = made
  sandbox.faults.clear()
  sandbox.feed.thawIndex()
  sandbox.feed.thawArchive()
  const runs = [await made.run('osv')]
  const open = store.quarantine.listOpenQuarantines().at(-1)
  const approved = open === undefined ? null : store.quarantine.readQuarantine(open.runId)
  if (runs[0]?.state === 'quarantined' && approved !== null)
    runs[0] = await made.run('osv', { kind: 'approve', approved })
  runs.push(await made.run('osv', { kind: 'reconcile' }))
  const bad = runs.filter(({ state }) => state !== 'complete')
  const { damagedRecords, disagreements: found } = await verify(dir)
  return [
    ...bad.map(({ state, message }) => `at last ${state}: ${message ?? ''}`),
    ...differences(made),
    ...damagedRecords,
    ...found,
  ]
}
