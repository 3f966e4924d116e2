import { createHmac } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Sandbox, createSandbox } from '../../src/sandbox/server.ts'
import { type Target, target } from '../relay/relays.ts'
import { type Started, run, start } from '../support/command.ts'
import { QUICK } from '../support/mirror.ts'

let sandbox: Sandbox
let to: Target
let dir: string
let env: Record<string, string>
const started: Started[] = []

beforeEach(async () => {
  sandbox = await createSandbox({ records: 40 })
  dir = mkdtempSync(join(tmpdir(), 'patchmirror-relay-'))
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

interface Told {
  data: { source: string; snapshot: string; previous: string; changes: { id: string }[] }
}

const told = (): Told['data'][] =>
  to.got
    .map(({ body }) => (JSON.parse(body.toString()) as Told).data)
    .filter(({ source }) => source === 'osv')

test('a daemon tells its targets of each snapshot that it publishes, signed with the secret that it tells', async () => {
  to = await target()
  env['PATCHMIRROR_RELAY_TARGETS'] = to.url
  const daemon = await serve()
  await daemon.said(/osv sync: complete/)
  await expect.poll(() => told().length, { timeout: 10_000 }).toBe(1)
  sandbox.feed.add(2)
  expect((await run(['sync', 'osv'], env, dir)).code).toBe(0)
  await expect.poll(() => told().length, { timeout: 10_000 }).toBe(2)
  const [first, second] = told()
  expect(second?.previous).toBe(first?.snapshot)
  expect(second?.changes).toHaveLength(2)
  const changes = await fetch(`${daemon.url}/-/changes?since=${first?.snapshot ?? ''}`)
  expect(await changes.json()).toMatchObject({ to: second?.snapshot, changes: second?.changes })

  const secret = (await run(['relay', 'secret'], env, dir)).out.trim()
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  for (const { id, timestamp, body, headers } of to.got) {
    const mac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body)
    expect(headers['webhook-signature']).toBe(`v1,${mac.digest('base64')}`)
  }
  daemon.child.kill('SIGTERM')
  expect((await daemon.finished).code).toBe(0)
}, 60_000)

test('a disabled target is told in the status, without its address to strangers, and enabled by hand', async () => {
  to = await target(410)
  env['PATCHMIRROR_RELAY_TARGETS'] = to.url
  const daemon = await serve()
  const relay = async () =>
    ((await (await fetch(`${daemon.url}/-/status`)).json()) as { relay: object[] }).relay
  const disabled = { id: 1, state: 'disabled', target: null, reason: null }
  await expect.poll(relay, { timeout: 10_000 }).toMatchObject([disabled])
  const status = await run(['relay', 'status'], env, dir)
  expect([status.code, status.out]).toEqual([1, expect.stringMatching(/disabled.*it answered 410/)])
  expect(status.out).not.toContain('private')
  expect((await run(['status'], env, dir)).out).toContain('relay target 1 is disabled')
  expect((await run(['relay', 'enable', '9'], env, dir)).code).toBe(2)
  to.manner = 204
  expect((await run(['relay', 'enable', '1'], env, dir)).code).toBe(0)
  await daemon.said(/osv sync: complete/)
  sandbox.feed.add(1)
  await run(['sync', 'osv'], env, dir)
  await expect.poll(relay, { timeout: 10_000 }).toMatchObject([{ id: 1, state: 'ok', pending: 0 }])
  expect((await run(['relay', 'status'], env, dir)).code).toBe(0)
}, 60_000)

test('without targets nothing is passed on, and the commands say so', async () => {
  const none = await run(['relay', 'status'], env, dir)
  expect([none.code, none.out]).toEqual([0, expect.stringContaining('relay.targets')])
  expect((await run(['relay', 'secret'], env, dir)).code).toBe(1)
  expect((await run(['relay', 'enable', '1'], env, dir)).code).toBe(2)
})
