import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { bench } from '../../../sync/catalog/fixtures.ts'
import { SERVICE, expectWhole, killAndResume, world } from '../../../sync/catalog/killing.ts'
import { countCatalog } from '../../../support/stored-counts.ts'

test('a run resumes a killed crawl and does not fetch stored answers again', async () => {
  const before = await killAndResume(await world(), 30)
  expect(before.length).toBeGreaterThan(25)
})

test('a crawl stopped by a signal is reported as aborted, publishes nothing, and is resumed', async () => {
  let items = 0
  const stopped: { abort(): void } = { abort: () => undefined }
  const made = await bench(SERVICE, {
    dir: mkdtempSync(join(tmpdir(), 'patchmirror-')),
    onProgress: ({ phase }) => {
      if (phase === 'items' && ++items === 20) stopped.abort()
    },
  })
  onTestFinished(() => rmSync(made.dir, { recursive: true, force: true }))
  stopped.abort = () => made.abort()
  const report = await made.run('catalog')
  expect(report).toMatchObject({ state: 'stopped', code: 'aborted' })
  expect(made.store.snapshots.readSnapshot('catalog')).toBeNull()
  const inHand = [...made.store.catalog.eachFetchedPath()].length
  expect(inHand).toBeGreaterThan(8)
  const next = await bench(SERVICE, { dir: made.dir })
  const resumed = await next.run('catalog')
  expect(resumed).toMatchObject({ state: 'complete' })
  const answers = countCatalog(next.dir).answers
  expect(Number(resumed.facts['fetched'])).toBeLessThanOrEqual(
    [...next.store.catalog.eachStoredAnswer()].length - inHand + 2,
  )
  expect(answers).toBeGreaterThan(inHand)
  await expectWhole(made.dir)
})
