import { expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { chatBody } from '../../../src/features/relay/chat.ts'
import { snapshotMessage } from '../../../src/features/relay/message.ts'
import { announce } from '../../../src/store/changes/message.ts'
import { below, carry, folder, serveFolder } from '../../features/bundles/air-gap.ts'
import { commandHost } from '../../support/hosted.ts'
import { bench } from '../../sync/fixtures.ts'
import { timeOf } from '../../../src/cli/output.ts'

const run = commandHost()

longTest('records that osv.scope takes out are not called removed, beside those that upstream removed', async () => {
  const env = { PATCHMIRROR_GUARD_LIMIT: 'removed=100% and 40' }
  const made = await bench({ sandbox: { records: 40, large: 0 }, env })
  await made.run('osv')
  const ids = made.sandbox.feed.ids()
  const [gone = ''] = ids.filter((id) => !id.startsWith('ROOT-OS-'))
  const left = ids.filter((id) => id.startsWith('ROOT-OS-'))
  made.sandbox.feed.delete(gone)
  const there = below()
  await there.take((await carry(made.dir, folder())).files)
  await made.runWith({ ...env, PATCHMIRROR_OSV_SCOPE: '!ROOT-OS-*' }, 'osv')

  const row = made.store.changes.readLatestLogged('osv')
  if (row === null) throw new Error('nothing was logged')
  const message = announce(made.store, row)
  expect(message).toMatchObject({ counts: { removed: left.length + 1 }, left: { count: left.length, cause: 'scope' } })
  await there.take((await carry(made.dir, folder())).files)
  const logged = there.store.changes.readLatestLogged('osv')
  expect(logged && announce(there.store, logged).left).toEqual(message.left)
  const { text } = JSON.parse(chatBody(snapshotMessage('a', row, message).body).toString()) as { text: string }
  expect(text).toBe(
    `New snapshot of osv: 0 added, 0 changed, 1 removed, ${left.length} not mirrored any more (other records are mirrored: osv.scope).`,
  )

  const get = await serveFolder(made.dir, made.config)
  const { changes } = JSON.parse((await get('/-/changes?since=1&source=osv')).body.toString()) as {
    changes: { id: string; change: string; cause?: string }[]
  }
  const causeOf = (id: string) => changes.find((one) => one.id === id)
  const at = new Date(row.publishedAt).toISOString()
  expect(causeOf(gone)).toEqual({ source: 'osv', id: gone, change: 'removed', snapshot: row.snapshot, at })
  for (const id of left) expect(causeOf(id)).toMatchObject({ change: 'removed', cause: 'scope' })
  const { out } = await run(['changes', '--since', '1'], { PATCHMIRROR_DATA_DIR: made.dir }, '/')
  expect(out).toContain(`${timeOf(row.publishedAt)}  ${gone}\n`)
  expect(out.match(/record removed$/gm)).toHaveLength(1)
  expect(out.match(/record removed from this mirror: other records are mirrored \(osv.scope\)/g)).toHaveLength(
    left.length,
  )
})

test('a snapshot that lacks some of what upstream lists says so in its message, also once it was replaced', async () => {
  const made = await bench({ sandbox: { records: 12, large: 0 } })
  await made.run('osv')
  const told = () => {
    const row = made.store.changes.readLatestLogged('osv')
    if (row === null) throw new Error('nothing was logged')
    return { row, message: announce(made.store, row) }
  }
  expect(told().message).not.toHaveProperty('partial')
  const [broken = ''] = made.sandbox.feed.change(2)
  made.sandbox.faults.set(`/external/osv/${broken}.json`, { kind: 'status', status: 404 })
  expect(await made.run('osv')).toMatchObject({ state: 'partial' })
  const { row, message } = told()
  expect(message).toMatchObject({ complete: true, partial: true })
  made.sandbox.faults.clear()
  expect(await made.run('osv')).toMatchObject({ state: 'complete' })
  expect(announce(made.store, row)).toMatchObject({ partial: true })
  expect(told().message).not.toHaveProperty('partial')
})
