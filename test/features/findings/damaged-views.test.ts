import { expect, test } from 'vitest'
import { createFindingsKeeper } from '../../../src/features/findings/keeper.ts'
import { performTask } from '../../../src/features/scanners/views/task.ts'
import { renameInViews } from '../../support/damaged-views.ts'
import { affecting, expectAgreement, openFindingsBench, visibleRows } from './fixtures.ts'

test('by damaged views nothing is judged and no finding is gone, until they are made again', async () => {
  const bench = await openFindingsBench()
  const { dir, config, store, sandbox } = bench
  await bench.crawl()
  await bench.publish({})
  await bench.judge()
  const [, ecosystem = '', name = ''] = /^\S+ (\S+) (\S+)@/.exec(bench.known().rows[0] ?? '') ?? []
  await bench.publish({ 'D-1': affecting(ecosystem, name, null) })
  await bench.judge()
  const before = visibleRows(bench.known())
  expect(before.length).toBeGreaterThan(0)
  const known = bench.known()

  renameInViews(dir, name, `${name.slice(0, -1)}0`)
  sandbox.service.addTag()
  await bench.crawl()
  await expect(bench.judge()).rejects.toMatchObject({ code: 'not_ready' })
  const [tag = ''] = sandbox.service.ids('tags')
  await expect(bench.matched(tag)).rejects.toMatchObject({
    code: 'not_ready',
    message: expect.stringContaining('are damaged') as string,
  })
  const quiet = { info: () => undefined, warn: () => undefined }
  const keeper = createFindingsKeeper({ config, log: quiet, reads: store })
  expect(keeper.report()).toMatchObject({ state: 'behind', failing: false })
  await keeper.close()
  expect(bench.known()).toEqual(known)

  await performTask({ dataDir: dir, kind: 'osv', vendors: ['Root'], rebuild: false })
  await bench.judge()
  await expectAgreement(bench)
  expect(visibleRows(bench.known())).toEqual(expect.arrayContaining(before))
})
