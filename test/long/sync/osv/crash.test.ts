import { expect, test } from 'vitest'
import { differences } from '../../../support/mirror.ts'
import { telling } from '../../../support/tables.ts'
import { ARCHIVE, bench, expectAgreement, expectSound } from '../../../sync/fixtures.ts'
import { findingsAfterKill, killAt, leftovers, runChild } from '../../../sync/killing.ts'

const PLACES = [
  ['while it opens', 'open', 1, false],
  ['while it downloads', 'archive', 1, false],
  ['while it stores records', 'ingest', 1, false],
  ['while it publishes', 'publish', 1, false],
  ['while it downloads again', 'archive', 1, true],
  ['while it publishes again', 'publish', 1, true],
] as const

test.each(telling(PLACES, 'while it publishes again'))(
  'a process killed -9 %s loses only its own work',
  async (_name, phase, nth, held) => {
    const made = await bench({ sandbox: { records: 400, large: 0 } })
    if (held) expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    const before = made.store.snapshots.readSnapshot('osv')
    made.sandbox.feed.change(300)
    if (phase === 'archive')
      made.sandbox.faults.set(ARCHIVE, { kind: 'stall', at: 'body', bytes: 300_000 }, { times: 1 })
    expect(await killAt(made.sandbox, made.dir, phase, nth)).toBe(true)
    expect(await findingsAfterKill(made.dir)).toEqual([])
    expect(made.store.snapshots.readSnapshot('osv')).toEqual(before)
    const report = await made.run('osv')
    expect(report).toMatchObject({ state: 'complete' })
    if (phase !== 'open')
      expect(made.store.runs.readRun(report.id - 1)).toMatchObject({
        state: 'failed',
        code: 'aborted',
      })
    expect(differences(made)).toEqual([])
    expect(leftovers(made.dir)).toEqual([])
    expectAgreement(made)
    await expectSound(made.dir)
  },
)

test('a process that syncs prevents another from syncing, which reports its id', async () => {
  const made = await bench({ sandbox: { records: 60, large: 0 } })
  const stall = made.sandbox.faults.set(ARCHIVE, { kind: 'stall' })
  const running = made.run('osv')
  await expect.poll(() => stall.hits(), { interval: 2 }).toBe(1)
  const said = (await runChild(made.sandbox, made.dir)).at(-1)
  stall.clear()
  expect(await running).toMatchObject({ state: 'complete' })
  expect(said).toMatch(new RegExp(`^refused locked .*process ${process.pid}`))
  expect(await runChild(made.sandbox, made.dir)).toContain('ended complete ')
})
