import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Sandbox, createSandbox } from '../../src/sandbox/server.ts'
import { type Started, run, start } from '../support/command.ts'
import { QUICK } from '../support/mirror.ts'

let sandbox: Sandbox
let dir: string
let env: Record<string, string>
const started: Started[] = []

beforeEach(async () => {
  sandbox = await createSandbox({ records: 80 })
  dir = mkdtempSync(join(tmpdir(), 'patchmirror-serve-'))
  env = {
    ...QUICK,
    PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
    PATCHMIRROR_DATA_DIR: join(dir, 'data'),
    PATCHMIRROR_SERVER_PORT: '0',
  }
})

afterEach(async () => {
  for (const { child, finished } of started.splice(0)) {
    child.kill('SIGKILL')
    await finished
  }
  await sandbox.close()
  rmSync(dir, { recursive: true, force: true })
})

async function serve(): Promise<Started & { url: string }> {
  const daemon = start(['serve'], env, dir)
  started.push(daemon)
  const text = await daemon.said(/"msg":"serving http[^"]+"/)
  return { ...daemon, url: /serving (http[^"]+)"/.exec(text)?.[1] ?? '' }
}

describe('patchmirror serve', () => {
  test('syncs at start, serves, and stops cleanly on SIGTERM with exit 0', async () => {
    const daemon = await serve()
    await daemon.said(/osv sync: complete/)
    expect((await fetch(`${daemon.url}/external/osv/all.json`)).status).toBe(200)
    daemon.child.kill('SIGTERM')
    const { code, err } = await daemon.finished
    expect(code).toBe(0)
    expect(err).toContain('"msg":"stopped"')
  })

  test('a second daemon on the same folder refuses, names the first, exits 2', async () => {
    const daemon = await serve()
    const second = await run(['serve'], env, dir)
    expect(second.code).toBe(2)
    expect(second.err).toContain(`process ${daemon.child.pid}`)
    expect((await fetch(`${daemon.url}/-/health`)).status).toBe(200)
  })

  test('notices within moments what a sync from the command line has published', async () => {
    const daemon = await serve()
    await daemon.said(/osv sync: complete/)
    const before = await (await fetch(`${daemon.url}/external/osv/all.json`)).text()
    sandbox.feed.add(5)
    expect((await run(['sync', 'osv'], env, dir)).code).toBe(0)
    await expect
      .poll(async () => (await fetch(`${daemon.url}/external/osv/all.json`)).text(), {
        timeout: 5000,
      })
      .not.toBe(before)
    expect(await (await fetch(`${daemon.url}/external/osv/all.json`)).text()).toBe(
      sandbox.feed.index().toString(),
    )
  })

  test('killed at any moment it starts again clean, and the lost run says so', async () => {
    sandbox.faults.set('/external/osv/all.zip', { kind: 'slow', bytesPerSecond: 20_000 })
    const daemon = await serve()
    await expect.poll(() => sandbox.requests.count('/external/osv/all.zip')).toBe(1)
    daemon.child.kill('SIGKILL')
    await daemon.finished
    sandbox.faults.clear()
    const again = await serve()
    await again.said(/osv sync: complete/)
    const { out } = await run(['runs'], env, dir)
    expect(out).toContain('the process ended before the run did')
  })

  test('health asks the daemon and exits 0, and 1 when there is none', async () => {
    const daemon = await serve()
    const at = { ...env, PATCHMIRROR_SERVER_PORT: new URL(daemon.url).port }
    expect(await run(['health'], at, dir)).toMatchObject({ code: 0 })
    daemon.child.kill('SIGTERM')
    await daemon.finished
    expect(await run(['health'], at, dir)).toMatchObject({ code: 1 })
  })
})
