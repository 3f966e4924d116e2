import { once } from 'node:events'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { expect, onTestFinished } from 'vitest'
import { userVersion } from '../../src/store/database/migrate.ts'
import { openInbox, openWriter } from '../../src/store/database/open.ts'
import { MIRROR_SCHEMA } from '../../src/store/database/schema/mirror.ts'
import { WEBHOOKS_SCHEMA } from '../../src/store/database/schema/webhooks.ts'
import { start } from '../support/command.ts'
import { freePort } from '../support/free-ports.ts'
import { type Hosted, type World, openWorld } from '../support/daemons.ts'
import { longTest, test } from '../support/tables.ts'
import { addStep } from '../store/fixtures.ts'

/** A mirror that was filled and stopped. */
async function filled(): Promise<World> {
  const world = await openWorld({ records: 200, service: false })
  onTestFinished(() => world.close())
  const first = await world.host()
  await first.said(/osv sync: complete/)
  await first.said(/feeds sync: complete/)
  await first.close()
  return world
}

/** Keeps the threads that write mirror.db from becoming ready, as a slow disk does. Returns what lets them go on. */
function blockWriters({ data }: World): () => void {
  const other = new Database(join(data, 'mirror.db'))
  other.exec('BEGIN IMMEDIATE')
  let isBlocked = true
  const end = (): void => {
    if (isBlocked) other.close()
    isBlocked = false
  }
  onTestFinished(end)
  return end
}

/** Starts a daemon; `state` says whether it has started completely. */
async function begin(world: World) {
  const port = await freePort()
  const state = { isStarted: false }
  const more = { PATCHMIRROR_SERVER_LISTEN: `127.0.0.1:${port}`, LIMIT_SYNC_CATCH_UP: 'false' }
  const starting = world.host(more).then((daemon: Hosted) => {
    state.isStarted = true
    return daemon
  })
  /** The status of an answer; null while nothing listens. */
  const ask = async (path: string): Promise<number | null> => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => null)
    await answer?.arrayBuffer()
    return answer?.status ?? null
  }
  return { state, starting, ask }
}

longTest('a daemon serves what is stored while the threads that write are not ready', async () => {
  const world = await filled()
  const release = blockWriters(world)
  const { state, starting, ask } = await begin(world)
  await expect.poll(() => ask('/-/ready')).toBe(200)
  expect(state.isStarted).toBe(false)
  for (const path of ['/external/osv/all.json', '/external/osv/all.zip', '/-/status', '/-/ui'])
    expect(await ask(path), path).toBe(200)
  release()
  await starting
  expect(await ask('/-/ready')).toBe(200)
})

/** Makes a data folder of the schema before the newest; returns what says which schemas it has. */
function olderFolder({ data }: World): () => number[] {
  const paths = [join(data, 'mirror.db'), join(data, 'webhooks.db')]
  openWriter(data).close()
  openInbox(data).close()
  addStep(MIRROR_SCHEMA)
  addStep(WEBHOOKS_SCHEMA)
  return () =>
    paths.map((path) => {
      const db = new Database(path, { readonly: true })
      const version = userVersion(db)
      db.close()
      return version
    })
}

/** A file that has the form of a certificate with its key. */
const NO_PAIR = ['CERTIFICATE', 'PRIVATE KEY']
  .map((what) => `-----BEGIN ${what}-----\nbm90aGluZw==\n-----END ${what}-----\n`)
  .join('')

/** Settings with which no daemon starts, made in a world with a port that is taken. */
const FAILING: readonly [name: string, (taken: string, file: string) => Record<string, string>, RegExp][] = [
  [
    'a port that is taken',
    (taken) => ({ PATCHMIRROR_SERVER_LISTEN: `127.0.0.1:${taken}` }),
    /in use by another program/,
  ],
  [
    'an address of another machine',
    () => ({ PATCHMIRROR_SERVER_LISTEN: '192.0.2.1:0' }),
    /not an address of this machine/,
  ],
  [
    'a port of webhooks that is taken',
    (taken) => ({ PATCHMIRROR_WEBHOOKS_LISTEN: `127.0.0.1:${taken}` }),
    /webhooks\.listen/,
  ],
  ['a socket at a file', (_, file) => ({ PATCHMIRROR_SERVER_LISTEN: `unix:${file}` }), /is a file, not a socket/],
  [
    'a certificate that is none',
    (_, file) => ({ PATCHMIRROR_SERVER_CERT_FILE: file, PATCHMIRROR_SERVER_KEY_FILE: file }),
    /server\.certFile and server\.keyFile/,
  ],
  ['a file of webhook secrets that is none', (_, file) => ({ LIMIT_WEBHOOKS_SECRET_FILE: file }), /secret/],
]

test.each(FAILING)('a start that fails for %s leaves the databases to the version before', async (_, settings, why) => {
  const world = await openWorld({ records: 1, service: false })
  onTestFinished(() => world.close())
  const versions = olderFolder(world)
  const before = versions()
  const taken = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void taken.close())
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  const file = join(world.dir, 'file')
  writeFileSync(file, NO_PAIR)
  await expect(world.host(settings(String(port), file))).rejects.toThrow(why)
  expect(versions()).toEqual(before)
  expect(readdirSync(world.data)).not.toContain('backups')
})

longTest(
  'a daemon whose archive is lost, or whose last run was killed, is not reached before that is repaired',
  async () => {
    const world = await filled()
    const derived = join(world.data, 'derived')
    for (const name of readdirSync(derived).filter((one) => one.endsWith('.zip'))) rmSync(join(derived, name))
    const db = new Database(join(world.data, 'mirror.db'))
    db.exec('UPDATE run SET ended_at = NULL WHERE id = (SELECT max(id) FROM run)')
    db.close()
    const release = blockWriters(world)
    const { starting, ask } = await begin(world)
    for (let looks = 0; looks < 50; looks++, await delay(10)) expect(await ask('/-/ready')).toBe(null)
    release()
    const seen = new Set<number | null>()
    await expect.poll(async () => seen.add(await ask('/external/osv/all.zip')).has(200)).toBe(true)
    expect([...seen].filter((status) => status !== null)).toEqual([200])
    const daemon = await starting
    const { sources } = (await (await fetch(`${daemon.url}/-/status`)).json()) as {
      sources: { name: string; state: string }[]
    }
    expect(sources.map(({ state }) => state)).not.toContain('running')
  },
)

longTest(
  'a daemon repeats the run of a command that was killed, though no start of its schedule was missed',
  async () => {
    const world = await filled()
    const seldom = { PATCHMIRROR_OSV_SCHEDULE: '0 0 1 1 *', PATCHMIRROR_OSV_RECONCILE_SCHEDULE: '0 0 1 1 *' }
    const index = '/external/osv/all.json'
    const asked = world.sandbox.requests.count(index)
    const stalled = world.sandbox.faults.set(index, { kind: 'stall' })
    const command = start(['sync', 'osv'], world.env, world.dir)
    await expect.poll(() => world.sandbox.requests.count(index)).toBeGreaterThan(asked)
    command.child.kill('SIGKILL')
    await command.finished
    stalled.clear()
    await world.host(seldom)
    const lastTwo = async () => (JSON.parse((await world.patchmirror('runs', '--json')).out) as object[]).slice(0, 2)
    await expect.poll(lastTwo, { interval: 500 }).toMatchObject([
      { source: 'osv', trigger: 'start', state: 'complete' },
      { source: 'osv', trigger: 'command', state: 'failed', code: 'aborted' },
    ])
  },
)
