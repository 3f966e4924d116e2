import { generateKeyPairSync } from 'node:crypto'
import { cpSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
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
    const copy = join(world.dir, 'copy')
    cpSync(join(world.dir, 'data'), copy, { recursive: true })
    const at = { ...world.env, PATCHMIRROR_SERVER_PORT: new URL(daemon.url).port }
    const own = await run(['status'], at, world.dir)
    expect(own.out).not.toContain('data folder')
    const copied = await run(['status'], { ...at, PATCHMIRROR_DATA_DIR: copy }, world.dir)
    expect(copied.out).toContain('the mirror of another data folder answers')
    expect((await fetch(`${daemon.url}/-/health`)).status).toBe(200)
  })

  test('notices within moments what a sync from the command line has published', async () => {
    const daemon = await world.serve()
    await daemon.said(/osv sync: complete/)
    const before = await (await fetch(`${daemon.url}/external/osv/all.json`)).text()
    world.sandbox.feed.add(5)
    const synced = await world.patchmirror('sync', 'osv', '--json')
    expect([synced.code, synced.err]).toEqual([0, ''])
    const [report] = JSON.parse(synced.out) as { snapshot: string; startedAt: string }[]
    expect(report?.startedAt).toMatch(/^\d{4}-\d\d-\d\dT/)
    // The command returned: the daemon serves what it published.
    const now = await fetch(`${daemon.url}/external/osv/all.json`)
    expect(now.headers.get('x-mirror-snapshot')).toContain(report?.snapshot.slice(0, 12))
    await expect
      .poll(async () => (await fetch(`${daemon.url}/external/osv/all.json`)).text())
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

  test('makes a derived archive that is missing again, the same to the byte', async () => {
    expect((await world.patchmirror('sync')).code).toBe(0)
    const derived = join(world.dir, 'data', 'derived')
    const [file = ''] = readdirSync(derived).filter((name) => name.endsWith('.zip'))
    const bytes = readFileSync(join(derived, file))
    rmSync(join(derived, file))
    // No sync of its own makes it: upstream is not there.
    const daemon = await world.serve({ PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:9' })
    const ask = () => fetch(`${daemon.url}/external/osv/all.zip`)
    await expect.poll(async () => (await ask()).status).toBe(200)
    expect(Buffer.from(await (await ask()).arrayBuffer()).equals(bytes)).toBe(true)
  })

  test('SIGHUP never ends it: files are read again, and the log says which and what needs a restart', async () => {
    const keyFile = join(world.dir, 'keys')
    writeFileSync(keyFile, 'Xq7-first-of-the-keys-92\n')
    const bundleKey = join(world.dir, 'bundle.pub')
    const publicPem = (): string =>
      generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString()
    writeFileSync(bundleKey, publicPem())
    const settingsFile = join(world.dir, 'settings.yaml')
    writeFileSync(settingsFile, 'osv: { maxAgeHours: 30 }\n')
    const more = {
      PATCHMIRROR_SERVER_KEYS_FILE: keyFile,
      PATCHMIRROR_CONFIG: settingsFile,
      PATCHMIRROR_BUNDLE_TRUSTED_KEYS: bundleKey,
    }
    const daemon = await world.serve(more)
    const status = async (key: string) =>
      (await fetch(`${daemon.url}/v1/tags/`, { headers: { authorization: `Bearer ${key}` } }))
        .status
    expect(await status('Xq7-second-of-the-keys-93')).toBe(401)
    writeFileSync(keyFile, 'Xq7-second-of-the-keys-93\n')
    writeFileSync(settingsFile, 'osv: { maxAgeHours: 40 }\n')
    writeFileSync(bundleKey, publicPem())
    daemon.child.kill('SIGHUP')
    const said = await daemon.said(/SIGHUP: /)
    expect(said).toMatch(
      /in force: server\.keys.*after a restart: osv\.maxAgeHours, bundle\.trustedKeys/,
    )
    expect(said).not.toContain('Xq7-')
    expect(await status('Xq7-second-of-the-keys-93')).not.toBe(401)
    expect(await status('Xq7-first-of-the-keys-92')).toBe(401)
    writeFileSync(settingsFile, 'osv: { maxAgeHours: many }\n')
    daemon.child.kill('SIGHUP')
    await daemon.said(/SIGHUP: the settings cannot be read[^"]*osv\.maxAgeHours/)
    expect((await fetch(`${daemon.url}/-/health`)).status).toBe(200)
    daemon.child.kill('SIGTERM')
    expect((await daemon.finished).code).toBe(0)
  })

  test('goes on serving when the reader of its output is gone', async () => {
    const daemon = await world.serve({ PATCHMIRROR_LOG_LEVEL: 'debug' })
    daemon.child.stderr?.destroy()
    daemon.child.stdout?.destroy()
    for (let n = 0; n < 3; n++) {
      daemon.child.kill('SIGHUP') // each writes lines that nobody can read
      expect((await fetch(`${daemon.url}/-/status`)).status).toBe(200)
    }
    daemon.child.kill('SIGTERM')
    expect((await daemon.finished).code).toBe(0)
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
