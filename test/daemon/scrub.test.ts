import { expect } from 'vitest'
import { problemsOf } from '../../src/server/status/problems.ts'
import { buildStatus } from '../../src/server/status/status.ts'
import type { ScrubOptions } from '../../src/daemon/verification/scrub.ts'
import { performTask } from '../../src/features/scanners/views/task.ts'
import { activeSources } from '../../src/base/domain/sources.ts'
import { readLastVerification } from '../../src/store/notes.ts'
import { flipLists } from '../support/damaged-views.ts'
import type { Bench } from '../support/mirror.ts'
import { flip, scrubOf, scrubbedBench } from '../support/scrub.ts'
import { longTest, test } from '../support/tables.ts'

function statusOf({ config, store }: Bench) {
  const reads = store as unknown as Parameters<typeof buildStatus>[0]['reads'] // the writer has all reads
  const options = { reads, version: 'test', config, active: activeSources(config), startedAt: null }
  return buildStatus({ ...options, now: Date.now, nextRunAt: () => null })
}

longTest('damage that nothing here can fetch again is a problem until a verification finds none', async () => {
  const made = await scrubbedBench()
  const alone = {
    ...made,
    config: { ...made.config, upstream: { ...made.config.upstream, apiRoot: null } },
  }
  flip(made, 'catalog_chunk', 'bytes')
  const { said, verify } = scrubOf(alone)
  await verify()
  expect(said).toEqual([
    'verified: 1 part of what is stored is damaged, and nothing was fetched again: run "patchmirror doctor --data", which says what helps',
  ])
  const status = statusOf(alone)
  expect(status.verified).toMatchObject({
    damagedCount: 1,
    damaged: [expect.stringMatching(/^document [0-9a-f]{64}$/)],
  })
  const codes = (): string[] => problemsOf(statusOf(alone), alone.config, Date.now()).map(({ code }) => code)
  expect(codes()).toContain('damaged')
  flip(made, 'catalog_chunk', 'bytes')
  await verify()
  expect(codes()).not.toContain('damaged')
})

longTest('a verification waits while a run is in progress', async () => {
  const made = await scrubbedBench()
  let asked = 0
  const readLatestRun = () => (++asked > 12 ? null : { state: 'running' })
  const reads = { live: { runs: { readLatestRun } } } as unknown as ScrubOptions['reads']
  const { said, verify } = scrubOf(made, { waitMs: 1, reads })
  await verify()
  expect(asked).toBeGreaterThan(12)
  expect(said).toEqual(['verified: all that is stored is sound'])
})

test('a time that was missed is made up for at the start, by the end that is stored', async () => {
  const made = await scrubbedBench()
  const config = { ...made.config, verify: { schedule: '43 4 * * 0' } }
  const weekly = { ...made, config }
  const day = 86_400_000
  const first = scrubOf(weekly)
  first.scrub.catchUp()
  expect(readLastVerification(made.dir)?.endedAt).toBeNull()
  await first.scrub.close()
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const later = scrubOf(weekly, {
    now: () => Date.now() + 8 * day,
    onVerified: () => resolve(undefined),
  })
  later.scrub.catchUp()
  await promise
  await later.scrub.close()
  expect(Date.parse(readLastVerification(made.dir)?.endedAt ?? '')).toBeGreaterThan(Date.now() + 7 * day)
  const again = scrubOf(weekly, { now: () => Date.now() + 8 * day })
  again.scrub.catchUp()
  await again.scrub.close()
  expect(again.said).toEqual([])
})

longTest('views that are damaged are made again, and are no problem afterwards', async () => {
  const made = await scrubbedBench()
  await made.run('osv')
  await performTask({ dataDir: made.dir, kind: 'osv', vendors: ['Root'], rebuild: false })
  const { said, verify } = scrubOf(made)
  flipLists(made.dir)
  await verify()
  expect(said).toEqual(['verified: 1 part of what is stored is damaged: made again now'])
  const last = readLastVerification(made.dir)
  expect(last).toMatchObject({ damagedCount: 0, healed: '1 of 1 damaged part' })
  await verify()
  expect(said.at(-1)).toBe('verified: all that is stored is sound')
})
