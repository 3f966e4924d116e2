import { expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { createLog } from '../../src/log.ts'
import { startPassing } from '../../src/passing.ts'
import { openInbox } from '../../src/store/database.ts'
import { createOutbox } from '../../src/store/outbox.ts'
import { openWrites } from '../../src/store/writes.ts'
import { scratch } from '../store/stores.ts'

test('a daemon without targets forgets those that it had, with what waits for them', async () => {
  const dir = scratch()
  openWrites(dir).close()
  const db = openInbox(dir)
  onTestFinished(() => void db.close())
  const outbox = createOutbox(db)
  outbox.replaceTargets(['http://127.0.0.1:9/hook'])
  const { config } = loadConfig({ env: { PATCHMIRROR_DATA_DIR: dir }, cwd: dir })
  const log = createLog({ level: 'error', format: 'json' })
  const passing = await startPassing({ config, version: 'test', log })
  await expect.poll(() => outbox.listTargets()).toEqual([])
  await passing.close()
})
