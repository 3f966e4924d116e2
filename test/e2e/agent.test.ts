import AdmZip from 'adm-zip'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { type Agent, createAgent } from '../../src/daemon/agent.ts'
import type { SourceName } from '../../src/domain/sources.ts'
import { type Sandbox, type SandboxOptions, createSandbox } from '../../src/sandbox/server.ts'
import type { RunReport } from '../../src/sync/runner.ts'
import { QUICK } from '../support/mirror.ts'

const REAL = new URL('../../../shared/data/osv-real.zip', import.meta.url).pathname
const REAL_INDEX = REAL.replace('.zip', '.all.json')

interface Running {
  agent: Agent
  sandbox: Sandbox
  url: string
  dir: string
  /** The next run of a source to end, from when this is called. */
  next(source: SourceName): Promise<RunReport>
  /** The first run of each source. */
  first: Promise<unknown>
}

const closers: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function start(options: SandboxOptions, env: Record<string, string> = {}): Promise<Running> {
  const sandbox = await createSandbox(options)
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-agent-'))
  const { config } = loadConfig({
    env: {
      ...QUICK,
      PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
      PATCHMIRROR_DATA_DIR: dir,
      PATCHMIRROR_SERVER_PORT: '0',
      ...env,
    },
    cwd: dir,
    requireUpstream: true,
  })
  const waiting = new Set<(report: RunReport) => void>()
  const onEnded = (report: RunReport): void => {
    for (const listener of waiting) listener(report)
  }
  const agent = createAgent({ config, version: 'test', log: pino({ level: 'silent' }), onEnded })
  const next = (source: SourceName): Promise<RunReport> =>
    new Promise((resolve) => {
      const listener = (report: RunReport): void => {
        if (report.source !== source) return
        waiting.delete(listener)
        resolve(report)
      }
      waiting.add(listener)
    })
  const first = Promise.all([next('feeds'), next('osv')])
  const { url } = await agent.start()
  closers.push(async () => {
    await agent.close()
    await sandbox.close()
    rmSync(dir, { recursive: true, force: true })
  })
  return { agent, sandbox, url, dir, next, first }
}

async function bytes(url: string): Promise<Buffer> {
  const answer = await fetch(url)
  if (answer.status !== 200) throw new Error(`${url}: ${answer.status}`)
  return Buffer.from(await answer.arrayBuffer())
}

/** Every path of the mirror answers what upstream answers, byte for byte; the ids that differ. */
async function compare({ url, sandbox }: Running): Promise<string[]> {
  const wrong: string[] = []
  for (const path of [
    '/external/osv/all.json',
    '/external/patch_feed',
    '/external/globals/sys_matrix',
  ]) {
    if (!(await bytes(url + path)).equals(await bytes(sandbox.url + path))) wrong.push(path)
  }
  const archive = new AdmZip(await bytes(`${url}/external/osv/all.zip`))
  const ids = sandbox.feed.ids()
  if (archive.getEntries().length !== ids.length) wrong.push('all.zip')
  for (const id of ids) {
    const expected = sandbox.feed.record(id)
    const member = archive.getEntry(`${id}.json`)?.getData()
    const served = await bytes(`${url}/external/osv/${encodeURIComponent(id)}.json`)
    if (!served.equals(expected) || member?.equals(expected) !== true) wrong.push(id)
  }
  return wrong
}

describe('the agent', () => {
  test('mirrors a made-up feed at start and serves every byte of it under the same paths', async () => {
    const running = await start({ records: 300 })
    await running.first
    expect(await compare(running)).toEqual([])
    expect((await fetch(`${running.url}/-/ready`)).status).toBe(200)
  })

  test.skipIf(!existsSync(REAL))(
    'mirrors real records byte for byte, each compared with its archive member',
    async () => {
      const running = await start({ osvZip: REAL, osvIndex: REAL_INDEX })
      await running.first
      expect(running.sandbox.feed.ids().length).toBeGreaterThan(4000)
      expect(await compare(running)).toEqual([])
    },
  )

  test('shows a change of upstream after the next run, whole: index, record, archive and headers', async () => {
    const running = await start({ records: 60 })
    await running.first
    const before = await fetch(`${running.url}/external/osv/all.json`)
    const [removed = ''] = running.sandbox.feed.remove(1)
    running.sandbox.feed.change(3)
    const ended = running.next('osv')
    running.agent.requestSync('osv', 'sync')
    expect((await ended).state).toBe('complete')
    const after = await fetch(`${running.url}/external/osv/all.json`)
    expect(after.headers.get('etag')).not.toBe(before.headers.get('etag'))
    expect(after.headers.get('x-mirror-snapshot')).not.toBe(before.headers.get('x-mirror-snapshot'))
    expect(Date.parse(after.headers.get('last-modified') ?? '')).toBeGreaterThan(
      Date.parse(before.headers.get('last-modified') ?? ''),
    )
    expect(
      (await fetch(`${running.url}/external/osv/${encodeURIComponent(removed)}.json`)).status,
    ).toBe(404)
    expect(await compare(running)).toEqual([])
  })

  test('keeps serving what it has while upstream fails, and says so', async () => {
    const running = await start({ records: 60 })
    await running.first
    running.sandbox.feed.change(5)
    running.sandbox.faults.set('*', { kind: 'status', status: 503 })
    const ended = running.next('osv')
    running.agent.requestSync('osv', 'sync')
    expect((await ended).state).toBe('failed')
    expect((await fetch(`${running.url}/external/osv/all.zip`)).status).toBe(200)
    const status = (await (await fetch(`${running.url}/-/status`)).json()) as {
      sources: {
        name: string
        state: string
        nextRunAt: string | null
        lastRun: { message: string }
      }[]
    }
    const osv = status.sources.find(({ name }) => name === 'osv')
    expect(osv?.state).toBe('failed')
    expect(osv?.lastRun.message).toContain('503')
    expect(Date.parse(osv?.nextRunAt ?? '')).toBeGreaterThan(Date.now())
    expect((await fetch(`${running.url}/-/ready`)).status).toBe(200)
  })

  test('coalesces requests for a source that is running into one more run', async () => {
    const running = await start({ records: 60 })
    await running.first
    running.sandbox.faults.set(
      '/external/osv/all.json',
      { kind: 'stall', at: 'headers', ms: 300 },
      { times: 1 },
    )
    const ended = running.next('osv')
    for (let i = 0; i < 6; i++) running.agent.requestSync('osv', 'sync')
    const one = await ended
    const two = await running.next('osv')
    const status = (await (await fetch(`${running.url}/-/status`)).json()) as {
      sources: { name: string; lastRun: { id: number } }[]
    }
    expect(two.id).toBe(one.id + 1)
    expect(status.sources.find(({ name }) => name === 'osv')?.lastRun.id).toBe(two.id)
  })

  test('answers 503 with Retry-After, never an empty list, until the first sync has ended', async () => {
    const running = await start({ records: 60 }, { PATCHMIRROR_SYNC_CATCH_UP: 'false' })
    const answer = await fetch(`${running.url}/external/osv/all.json`)
    expect(answer.status).toBe(503)
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await fetch(`${running.url}/-/ready`)).status).toBe(503)
    expect((await fetch(`${running.url}/-/health`)).status).toBe(200)
  })
})
