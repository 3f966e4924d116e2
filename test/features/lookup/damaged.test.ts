import { expect } from 'vitest'
import { openFilledStore } from '../../support/filled-store.ts'
import { commandHost } from '../../support/hosted.ts'
import { bothTest, telling } from '../../support/tables.ts'
import { scratch } from '../../store/fixtures.ts'
import { tamper } from '../../sync/fixtures.ts'
import { startDaemon } from '../../webhooks/daemons.ts'

const run = commandHost()
const ROW = "(SELECT body FROM osv_record WHERE id = 'ROOT-1')"
const DAMAGES = [
  ['cut short', `UPDATE osv_body SET bytes = substr(bytes, 1, 30) WHERE rowid = ${ROW}`],
  [
    'those of another one',
    `UPDATE osv_body SET bytes = (SELECT bytes FROM osv_body WHERE rowid <> ${ROW}) WHERE rowid = ${ROW}`,
  ],
  ['lost', `DELETE FROM osv_body WHERE rowid = ${ROW}`],
] as const

bothTest.each(telling(DAMAGES, 'lost'))(
  'a record whose stored bytes are %s is damaged to show and to its page, with what repairs it',
  async (_name, sql) => {
    const dir = scratch()
    const store = openFilledStore(dir)
    store.publishOsv({ 'ROOT-1': '{"id":"ROOT-1"}', 'ROOT-2': '{"id":"ROOT-2","summary":"other"}' })
    store.close()
    tamper(dir, sql)
    const shown = await run(['show', 'ROOT-1'], { PATCHMIRROR_DATA_DIR: dir }, dir)
    expect(shown.code).toBe(1)
    expect(shown.err).toContain('the stored bytes of the record ROOT-1 are damaged')
    expect(shown.err).toContain('Run "patchmirror doctor --data --repair"')
    const { port } = await startDaemon({}, dir)
    const page = await fetch(`http://127.0.0.1:${port}/-/ui/record?id=ROOT-1`, { headers: { accept: 'text/html' } })
    expect(page.status).toBe(503)
  },
)
