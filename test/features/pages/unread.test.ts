import { truncateSync, writeFileSync } from 'node:fs'
import { expect } from 'vitest'
import { databasePath } from '../../../src/store/database/open.ts'
import { DAMAGES } from '../../support/damage.ts'
import { openFilledStore } from '../../support/filled-store.ts'
import { bothTest, telling } from '../../support/tables.ts'
import { startDaemon } from '../../webhooks/daemons.ts'
import { scratch } from '../../store/fixtures.ts'

/** A data folder with a record. */
function filled(): string {
  const dir = scratch()
  const store = openFilledStore(dir)
  store.publishOsv({ one: '{"id":"one"}' })
  store.close()
  return dir
}

async function pageOf(port: number, path: string): Promise<{ status: number; text: string }> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    headers: { accept: 'text/html' },
  })
  return { status: answer.status, text: await answer.text() }
}

const UNREADABLE = [
  ['damaged', DAMAGES.header],
  ['emptied', (path: string): void => truncateSync(path, 0)],
] as const

bothTest.each(telling(UNREADABLE, 'emptied'))(
  'the overview shows the problem of a mirror.db that was %s, and every page a way on',
  async (_, damage) => {
    const dir = filled()
    const { port } = await startDaemon({}, dir)
    writeFileSync(`${databasePath(dir)}-wal`, '')
    damage(databasePath(dir))
    const overview = await pageOf(port, '/')
    expect(overview.status).toBe(503)
    expect(overview.text).toContain('Data folder: damaged')
    expect(overview.text).toContain('the log says what to do')
    const search = await pageOf(port, '/-/ui/search?q=one')
    expect(search.status).toBe(503)
    expect(search.text).toContain('the log has the reason')
    for (const { text } of [overview, search]) {
      expect(text).not.toContain('starting')
      expect(text).not.toContain('patchmirror doctor') // a client without a key cannot use it
    }
  },
)
