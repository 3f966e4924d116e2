import { expect } from 'vitest'
import { isCarried } from '../../../src/features/bundles/format/doubts.ts'
import { problemsOf } from '../../../src/server/status/problems.ts'
import { buildStatus } from '../../../src/server/status/status.ts'
import { announce } from '../../../src/store/changes/message.ts'
import { openShortReads } from '../../../src/store/reads.ts'
import { whyWithheld } from '../../../src/store/runs/rejected.ts'
import { approve, attack } from '../../sync/osv/attacks.ts'
import { synced } from '../../sync/fixtures.ts'
import { longTest, test } from '../../support/tables.ts'
import { type Below, below, carry, folder, signer } from './air-gap.ts'

/** The words of the status below the gap about doubtful changes. */
function doubtfulWords({ dir, config }: Below): (string | null)[] {
  const short = openShortReads(dir)
  if (short === null) throw new Error('no database')
  try {
    const status = buildStatus({
      reads: short.reads,
      version: 'test',
      config,
      active: ['osv'],
      startedAt: null,
      now: Date.now,
      nextRunAt: () => null,
    })
    const problems = problemsOf(status, config, Date.now())
    return problems.flatMap(({ code, detail }) => (code === 'doubtful' ? [detail ?? null] : []))
  } finally {
    short.close()
  }
}

longTest('what a mirror published although its guard doubted it is known below the gap, once', async () => {
  const made = await synced({ env: { PATCHMIRROR_GUARD_MODE: 'warn' } })
  const there = below()
  const media = folder()
  const first = await carry(made.dir, media)
  await there.take(first.files)
  expect(doubtfulWords(there)).toEqual([])
  attack(made)
  expect((await made.run('osv')).facts['doubts']).toBe(30)
  const delta = await carry(made.dir, media, { since: String(first.manifest.sequence) })
  expect(delta.manifest.counts['doubts-osv-affectedlost']).toEqual({ put: 30, removed: 0 })
  await there.take(delta.files)
  const run = there.store.runs.readLatestEndedRun('osv')
  expect(run).toMatchObject({ kind: 'import', facts: { doubts: 30 } })
  expect(run?.message).toContain(
    'doubtful at the mirror that made the bundle: 30 records have fewer affected versions than before (affectedLost)',
  )
  expect(doubtfulWords(there)).toEqual([
    expect.stringMatching(/^30 more records have fewer affected versions than before since the run of \S+ \S+ UTC$/),
  ])
  const row = there.store.changes.readLatestLogged('osv')
  if (row === null) throw new Error('nothing was logged')
  const above = made.store.changes.readLatestLogged('osv')?.id ?? 0
  const named = made.store.changes.readDoubts(above)?.doubted.affectedLost ?? []
  expect(named).toHaveLength(30)
  expect(there.store.changes.readDoubts(row.id)?.doubted).toEqual({ affectedLost: named.slice(0, 20) })
  expect(announce(there.store, row).doubts).toEqual([
    `doubtful: 30 records have fewer affected versions than before (affectedLost, run ${run?.id})`,
  ])
  made.sandbox.feed.add(1)
  await made.run('osv')
  const next = await carry(made.dir, media, { since: String(delta.manifest.sequence) })
  expect(Object.keys(next.manifest.counts).filter((name) => name.startsWith('doubts-'))).toEqual([])
})

longTest(
  'a newer state that is quarantined above is said to be missing below, until a bundle has what replaces it',
  async () => {
    const made = await synced()
    const there = below()
    const media = folder()
    const first = await carry(made.dir, media)
    expect((await there.take(first.files)).withheld).toEqual([])
    expect(whyWithheld(there.store, 'osv')).toBe(null)
    attack(made)
    const refused = await made.run('osv')
    expect(refused.state).toBe('quarantined')
    const again = await carry(made.dir, media)
    expect(again.manifest).toMatchObject({ sequence: 1, counts: { 'withheld-osv': { put: 1, removed: 0 } } })
    expect(await there.take(again.files, { dryRun: true })).toMatchObject({ outcome: 'same', withheld: ['osv'] })
    expect(await there.take(again.files)).toMatchObject({ outcome: 'same', renewed: true, withheld: ['osv'] })
    expect(await there.take(again.files)).toMatchObject({ outcome: 'same', renewed: false, withheld: ['osv'] })
    const said = 'a newer state is quarantined or rejected at the mirror that made the bundle'
    expect(whyWithheld(there.store, 'osv')).toBe(said)
    expect(there.store.runs.readLatestEndedRun('osv')?.message).toBe(`nothing changed; ${said}`)
    const further = await carry(there.dir, media, { keys: [signer()] })
    expect(further.manifest.counts).toHaveProperty('withheld-osv')
    await approve(made, refused.id)
    const delta = await carry(made.dir, media, { since: '1' })
    expect(delta.manifest.counts).not.toHaveProperty('withheld-osv')
    expect((await there.take(delta.files)).withheld).toEqual([])
    expect(whyWithheld(there.store, 'osv')).toBe(null)
  },
)

test('a name that is too long, or has control characters, is not carried: the mirror below would refuse the bundle', () => {
  expect(['ROOT-1', 'a\nb', 'a\u0007', 'x'.repeat(501)].filter(isCarried)).toEqual(['ROOT-1'])
})
