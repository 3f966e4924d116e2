import { statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openWorld } from '../../support/daemons.ts'

const ROUNDS = 12

test('the write-ahead log of a daemon does not grow with the runs of another process', async () => {
  const world = await openWorld({ records: 300, service: false })
  onTestFinished(() => world.close())
  Object.assign(world.env, {
    LIMIT_SYNC_CATCH_UP: 'false',
    PATCHMIRROR_OSV_SCHEDULE: '0 0 1 1 *',
    PATCHMIRROR_GUARD_LIMIT: 'removed=100% and 20',
  })
  const { url } = await world.host()
  /** Whether all views are made of what is served: until then a build reads an earlier state of the log. */
  const isAtRest = async (): Promise<boolean> => {
    const { views = [] } = (await (await fetch(`${url}/-/status`)).json()) as {
      views?: { state: string; making: boolean }[]
    }
    return views.every(({ state, making }) => state === 'current' && !making)
  }
  const sizes: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    world.sandbox.feed.change(250)
    expect((await world.patchmirror('sync', 'osv')).code).toBe(0) // it waits until the daemon serves it
    await expect.poll(isAtRest).toBe(true)
    sizes.push(statSync(join(world.data, 'mirror.db-wal')).size)
  }
  expect(sizes.at(-1)).toBeLessThan(3 * (sizes[0] ?? 0))
})
