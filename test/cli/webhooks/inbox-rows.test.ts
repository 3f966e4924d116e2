import { rmSync, truncateSync } from 'node:fs'
import { expect } from 'vitest'
import { withInbox } from '../../../src/cli/webhooks/inbox-rows.ts'
import { createInboxReports } from '../../../src/store/webhooks/inbox-reports.ts'
import { inboxPath, openInbox, openWriter } from '../../../src/store/database/open.ts'
import { noteNumbers } from '../../../src/store/given-numbers.ts'
import { refusal, scratch } from '../../store/fixtures.ts'
import { loadQuick } from '../../support/limits.ts'
import { test } from '../../support/tables.ts'

/** Reads whether a folder has deliveries, as reports do. */
function readIn(dir: string): boolean | null {
  const { config } = loadQuick({ env: { PATCHMIRROR_DATA_DIR: dir }, cwd: dir })
  return withInbox(config, null, (db) => createInboxReports(db).isEmpty())
}

test.each([
  ['is not there any more', (path: string) => rmSync(path), 'the file is not there any more'],
  ['is empty', (path: string) => truncateSync(path), 'the file is empty'],
])('a webhooks.db that %s is lost, and not one without deliveries', (_, lose, why) => {
  const dir = scratch()
  openWriter(dir).close()
  expect(readIn(dir)).toBe(null)
  openInbox(dir).close()
  expect(readIn(dir)).toBe(true)
  noteNumbers(dir)
  lose(inboxPath(dir))
  for (let i = 0; i < 2; i++) {
    const { code, message } = refusal(() => readIn(dir))
    expect([code, message]).toEqual(['corrupt', expect.stringContaining(`webhooks.db is damaged (${why})`)])
  }
})
