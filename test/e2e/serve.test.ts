import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { run } from '../support/command.ts'
import { type World, openWorld } from '../support/daemons.ts'

let world: World

beforeEach(async () => {
  world = await openWorld({ records: 80 })
})

afterEach(() => world.close())

describe('patchmirror serve', () => {
  test('syncs at start, serves, and stops cleanly on SIGTERM with exit 0', async () => {
    const daemon = await world.serve()
    await daemon.said(/osv sync: complete/)
    expect((await fetch(`${daemon.url}/external/osv/all.json`)).status).toBe(200)
    daemon.child.kill('SIGTERM')
    const { code, err } = await daemon.finished
    expect(code).toBe(0)
    expect(err).toContain('"msg":"stopped"')
  })

  test('a second daemon on the same folder refuses, names the first, exits 2', async () => {
    const daemon = await world.serve()
    const second = await world.patchmirror('serve')
    expect(second.code).toBe(2)
    expect(second.err).toContain(`process ${daemon.child.pid}`)
    expect((await fetch(`${daemon.url}/-/health`)).status).toBe(200)
  })

  test('notices within moments what a sync from the command line has published', async () => {
    const daemon = await world.serve()
    await daemon.said(/osv sync: complete/)
    const before = await (await fetch(`${daemon.url}/external/osv/all.json`)).text()
    world.sandbox.feed.add(5)
    expect((await world.patchmirror('sync', 'osv')).code).toBe(0)
    await expect
      .poll(async () => (await fetch(`${daemon.url}/external/osv/all.json`)).text(), {
        timeout: 5000,
      })
      .not.toBe(before)
    expect(await (await fetch(`${daemon.url}/external/osv/all.json`)).text()).toBe(
      world.sandbox.feed.index().toString(),
    )
  })

  test('killed at any moment it starts again clean, and the lost run says so', async () => {
    world.sandbox.faults.set('/external/osv/all.zip', { kind: 'slow', bytesPerSecond: 20_000 })
    const daemon = await world.serve()
    await expect.poll(() => world.sandbox.requests.count('/external/osv/all.zip')).toBe(1)
    daemon.child.kill('SIGKILL')
    await daemon.finished
    world.sandbox.faults.clear()
    const again = await world.serve()
    await again.said(/osv sync: complete/)
    const { out } = await world.patchmirror('runs')
    expect(out).toContain('the process ended before the run did')
  })

  test('health asks the daemon and exits 0, and 1 when there is none', async () => {
    const daemon = await world.serve()
    const at = { ...world.env, PATCHMIRROR_SERVER_PORT: new URL(daemon.url).port }
    expect(await run(['health'], at, world.dir)).toMatchObject({ code: 0 })
    daemon.child.kill('SIGTERM')
    await daemon.finished
    expect(await run(['health'], at, world.dir)).toMatchObject({ code: 1 })
  })
})
