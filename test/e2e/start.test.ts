import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../support/free-ports.ts'
import { type Hosted, type World, openWorld } from '../support/daemons.ts'

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
  const more = { PATCHMIRROR_SERVER_PORT: String(port), PATCHMIRROR_SYNC_CATCH_UP: 'false' }
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

test('a daemon serves what is stored while the threads that write are not ready', async () => {
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

test('a daemon whose archive is lost, or whose last run was killed, is not reached before that is repaired', async () => {
  const world = await filled()
  const derived = join(world.data, 'derived')
  for (const name of readdirSync(derived).filter((one) => one.endsWith('.zip')))
    rmSync(join(derived, name))
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
})
