import { expect, onTestFinished, test } from 'vitest'
import { timeOfAges } from '../../src/store/runs/age-limit.ts'
import { createBench } from '../support/mirror.ts'
import { countSuperseded } from '../support/stored-counts.ts'

const DAY = 86_400_000

test('a clock that is years ahead for a run empties neither the log of changes nor what it leads to', async () => {
  let ahead = 0
  const bench = await createBench({ sandbox: { records: 6 }, now: () => Date.now() + ahead })
  onTestFinished(() => bench.close())
  const { store, sandbox } = bench
  await bench.run('osv')
  for (const days of [0, 0, 4000, 0]) {
    ahead = days * DAY
    sandbox.feed.change(1)
    expect(await bench.run('osv')).toMatchObject({ state: 'complete' })
  }
  expect(store.changes.listLogged(0, 10)).toHaveLength(5)
  expect(countSuperseded(bench.dir)).toMatchObject({ versions: 4 })
  expect(timeOfAges(store, Date.now() + 4000 * DAY)).toBeLessThanOrEqual(Date.now())
})

test('a date of upstream’s that is years ahead makes nothing older than this clock says', async () => {
  const bench = await createBench({
    sandbox: { records: 6, now: () => Date.now() + 4000 * DAY },
  })
  onTestFinished(() => bench.close())
  const now = Date.now()
  expect(timeOfAges(bench.store, now)).toBe(now)
  await bench.run('osv')
  expect(timeOfAges(bench.store, now)).toBe(now)
})
