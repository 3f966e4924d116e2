import { existsSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { openWorld } from '../support/daemons.ts'
import { feedDifferences } from '../support/feed-differences.ts'

const REAL = new URL('../../../shared/data/osv-real.zip', import.meta.url).pathname

test.skipIf(!existsSync(REAL))('a mirror serves real records byte for byte, singly and in the archive', async () => {
  const feed = { osvZip: REAL, osvIndex: REAL.replace('.zip', '.all.json') }
  const world = await openWorld({ ...feed, service: false })
  onTestFinished(() => world.close())
  const daemon = await world.host()
  await daemon.said(/osv sync: complete/)
  await daemon.said(/feeds sync: complete/)
  expect(world.sandbox.feed.ids().length).toBeGreaterThan(4000)
  expect(await feedDifferences(daemon, world)).toEqual([])
})
