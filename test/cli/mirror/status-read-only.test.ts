import { afterAll, expect, test } from 'vitest'
import { statusExitCode } from '../../../src/cli/mirror/status/code.ts'
import { gatherStatus } from '../../../src/cli/mirror/status/gather.ts'
import { describeProblems } from '../../../src/cli/mirror/status/lines.ts'
import { openFilledStore } from '../../support/filled-store.ts'
import { loadQuick } from '../../support/limits.ts'
import { makeReadOnly, mountDisk, unmountDisk } from '../../support/small-disk.ts'

const dir = mountDisk('16m')
afterAll(() => dir !== null && unmountDisk(dir))

test('the status without a daemon names a data folder that is mounted read-only', async (context) => {
  if (dir === null) return context.skip('no file system can be mounted')
  const store = openFilledStore(dir)
  store.publishOsv({ one: '{"id":"one"}' })
  store.close()
  const { config } = loadQuick({
    env: { PATCHMIRROR_DATA_DIR: dir, PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:1' },
    cwd: dir,
  })
  const before = (await gatherStatus(config)).status ?? expect.fail('nothing is stored')
  expect(before.storage.state).toBe('ok')
  makeReadOnly(dir)
  const { status, from } = await gatherStatus(config)
  if (status === null) return expect.fail('nothing is stored')
  expect(from).toBe('folder')
  expect(status.storage).toMatchObject({ state: 'failing', reason: expect.stringContaining('EROFS') as string })
  expect(statusExitCode(status, config)).toBe(1)
  const [title, ...more] = describeProblems(status, config)
  expect(title).toContain('PROBLEM: Data folder: failing')
  expect(more.join('\n')).toContain('the daemon cannot start')
})
