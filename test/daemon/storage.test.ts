import { copyFileSync, linkSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { createLog } from '../../src/base/log.ts'
import { watchStorage } from '../../src/daemon/storage.ts'
import { damagedContent } from '../../src/store/database/faults.ts'
import { databasePath, openReader } from '../../src/store/database/open.ts'
import { DAMAGES, dropTable, settle } from '../support/damage.ts'
import { type World, openWorld } from '../support/daemons.ts'
import { copyFilledFolder } from '../support/filled-folder.ts'
import { emptyDisk, fillDisk, mayMount, smallDisks } from '../support/small-disk.ts'
import { longTest, test } from '../support/tables.ts'

const disk = smallDisks()

/** A mirror that was filled and stopped, and all of whose data lies in mirror.db. */
async function filled(): Promise<World> {
  const world = await openWorld({ records: 60, service: false })
  onTestFinished(() => world.close())
  const first = await world.host()
  await first.said(/osv sync: complete/)
  await first.said(/feeds sync: complete/)
  await first.close()
  settle(databasePath(world.data))
  return world
}

const ready = async (url: string) => {
  const answer = await fetch(`${url}/-/ready`)
  return { code: answer.status, body: (await answer.json()) as { storage: object } }
}

longTest('a daemon whose database is overwritten lives on, says that it is damaged, and logs it once', async () => {
  const world = await filled()
  const daemon = await world.host({ LIMIT_SYNC_CATCH_UP: 'false' })
  expect((await ready(daemon.url)).code).toBe(200)
  DAMAGES.pages(databasePath(world.data))
  const ids = world.sandbox.feed.ids()
  const codes = new Set<number>()
  for (const id of ids.slice(0, 20)) codes.add((await fetch(`${daemon.url}/external/osv/${id}.json`)).status)
  expect([...codes]).toEqual([503])
  await expect.poll(async () => (await ready(daemon.url)).code).toBe(503)
  expect((await ready(daemon.url)).body.storage).toMatchObject({
    ready: false,
    state: 'damaged',
    reason: expect.stringMatching(/^mirror\.db is damaged \(.*malformed\)/) as string,
    since: expect.any(String) as string,
  })
  const metrics = await (await fetch(`${daemon.url}/-/metrics`)).text()
  expect(metrics).toContain('patchmirror_ready 0\n')
  expect(metrics).toContain('patchmirror_storage_state{state="damaged"} 1\n')
  expect((await fetch(`${daemon.url}/-/status`)).status).toBe(200)
  const log = await daemon.said(/is damaged/)
  const errors = log.split('\n').filter((line) => line.includes('"level":50'))
  expect(errors).toHaveLength(1)
  expect(errors[0]).toMatch(/mirror\.db is damaged .*patchmirror doctor --data --repair/)
  expect(errors[0]).not.toContain('stack')
})

interface Line {
  storage?: string
  msg: string
}

/** A watch of a folder that looks when it is asked, and what it logs. */
function watch(dataDir: string, intervalMs = 3_600_000) {
  const lines: Line[] = []
  const add = (line: string): void => void lines.push(JSON.parse(line) as Line)
  const log = createLog({ level: 'info', format: 'json' }, add)
  let room = 0
  const watched = watchStorage({
    dataDir,
    log,
    intervalMs,
    now: () => 1_700_000_000_000,
    onRoom: () => {
      room++
    },
  })
  onTestFinished(watched.stop)
  return { watched, lines, rooms: () => room }
}

const OSV = { sandbox: { records: 40 } }

test.each(['pages', 'header', 'schema', 'cut', 'unreadable'] as const)(
  'a database that is damaged (%s) is found without a request, and its end too',
  async (damage) => {
    const dir = await copyFilledFolder(OSV, ['osv'])
    const path = databasePath(dir)
    settle(path)
    copyFileSync(path, join(dir, 'sound'))
    linkSync(path, join(dir, 'same'))
    const { watched, lines } = watch(dir)
    expect(watched.state().state).toBe('ok')
    DAMAGES[damage](path)
    watched.look()
    watched.look()
    expect(watched.state()).toMatchObject({ state: 'damaged', since: '2023-11-14T22:13:20.000Z' })
    expect(lines.map(({ storage }) => storage)).toEqual(['damaged'])
    if (damage === 'unreadable') renameSync(join(dir, 'same'), path)
    copyFileSync(join(dir, 'sound'), path)
    watched.look()
    expect(watched.state().state).toBe('ok')
    expect(lines.at(-1)?.msg).toContain('can be read again')
    expect(lines).toHaveLength(2)
  },
)

test('damage that a request met stays until a repair is complete', async () => {
  const dir = await copyFilledFolder(OSV, ['osv'])
  const { watched } = watch(dir)
  const corrupt = Object.assign(new Error('database disk image is malformed'), {
    code: 'SQLITE_CORRUPT',
    database: databasePath(dir),
  })
  expect(watched.note(corrupt)).toBe(true)
  watched.look()
  expect(watched.state().state).toBe('damaged')
})

test('a record whose bytes are damaged is noted, with what fetches it again', async () => {
  const dir = await copyFilledFolder(OSV, ['osv'])
  const { watched, lines } = watch(dir)
  expect(watched.note(damagedContent('the stored bytes of a record are damaged'))).toBe(true)
  expect(watched.state()).toMatchObject({ state: 'damaged' })
  expect(lines[0]?.msg).toMatch(/^the stored bytes .* "patchmirror doctor --data --repair"/)
})

test('errors that are not about stored data are not noted', async () => {
  const dir = await copyFilledFolder(OSV, ['osv'])
  const { watched, lines } = watch(dir)
  const elsewhere = { code: 'SQLITE_CORRUPT', database: join(dir, 'derived/views/x/views.db') }
  expect(watched.note(Object.assign(new Error('malformed'), elsewhere))).toBe(false)
  expect(watched.note(new TypeError('a defect'))).toBe(false)
  expect(lines).toEqual([])
})

test('a database without a table that this program needs is damaged', async () => {
  const dir = await copyFilledFolder(OSV, ['osv'])
  dropTable(databasePath(dir), 'document')
  const { watched, lines } = watch(dir)
  expect(watched.state()).toMatchObject({ state: 'damaged' })
  expect(lines[0]?.msg).toContain('it has no table document')
  expect(() => openReader(dir)).toThrow('mirror.db is damaged')
})

test('a disk that fills while the daemon runs is in its log at once, and when it is over', async (context) => {
  if (!mayMount()) return context.skip('no file system can be mounted')
  const dir = disk('8m')
  const { lines, rooms } = watch(dir, 10)
  await expect.poll(() => lines).toEqual([])
  fillDisk(dir)
  await expect.poll(() => lines.length).toBe(1)
  expect(lines[0]).toMatchObject({
    storage: 'full',
    msg: expect.stringContaining('is full') as string,
  })
  emptyDisk(dir)
  await expect.poll(rooms).toBe(1)
  expect(lines.map(({ msg }) => msg).slice(1)).toEqual(['the data folder (data.dir) can be written to again'])
})
