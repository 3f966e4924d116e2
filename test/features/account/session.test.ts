import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { SANDBOX_CLIENT, SANDBOX_KEYS, SANDBOX_TOKEN } from '../../sandbox/service/credentials.ts'
import { type Sandbox, createSandbox } from '../../sandbox/server.ts'
import { COMPILED, type Finished } from '../../support/command.ts'
import { commandHost } from '../../support/hosted.ts'
import { QUICK } from '../../support/mirror.ts'
import { longTest, test } from '../../support/tables.ts'

const run = commandHost()
let sandbox: Sandbox
let dir: string

beforeEach(async () => {
  sandbox = await createSandbox({ records: 0 })
  dir = mkdtempSync(join(tmpdir(), 'patchmirror-service-'))
})

afterEach(async () => {
  await sandbox.close()
  rmSync(dir, { recursive: true, force: true })
})

function patchmirror(args: string[], more: Record<string, string> = {}): Promise<Finished> {
  const credential = { PATCHMIRROR_UPSTREAM_API_KEY: SANDBOX_KEYS.admin }
  const env = { ...QUICK, PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url, ...credential, ...more }
  return run(args, env, dir)
}

async function json(...args: string[]): Promise<unknown> {
  const { out, err, code } = await patchmirror([...args, '--json'])
  expect(code, err).toBe(0)
  return JSON.parse(out) as unknown
}

type Items = Record<string, unknown>[]

describe('the command api-keys', () => {
  longTest('shows a created key once, lists it without its secret, and deletes it', async () => {
    const args = ['api-keys', 'create', 'mirror', '--role', 'readonly', '--expires', '2030-01-31']
    const made = await patchmirror(args)
    expect(made.code, made.err).toBe(0)
    expect(made.err).toContain('shown only once')
    const key = /^secret {2}(\S+)$/m.exec(made.out)?.[1] ?? ''
    expect(made.out.split(key)).toHaveLength(2)
    const me = await patchmirror(['whoami'], { PATCHMIRROR_UPSTREAM_API_KEY: key })
    expect(me.out).toMatch(/role +readonly/)
    const [held] = ((await json('api-keys', 'list')) as Items).filter(({ name }) => name === 'mirror')
    expect(held).toMatchObject({ role: 'readonly', expires_at: '2030-01-31T00:00:00Z' })
    const id = String(held?.['id'])
    const shown = await patchmirror(['api-keys', 'list', id])
    expect(shown.out).toMatch(/name +mirror/)
    expect(shown.out + (await patchmirror(['api-keys', 'list'])).out).not.toContain(key)
    expect(await patchmirror(['api-keys', 'delete', id])).toMatchObject({
      code: 0,
      out: `API key ${id} is deleted\n`,
    })
    const gone = await patchmirror(['whoami'], { PATCHMIRROR_UPSTREAM_API_KEY: key })
    expect(gone.code).toBe(1)
    expect(gone.err).toContain('upstream.apiKey was refused')
    expect(gone.err).not.toContain(key)
  })

  longTest('writes with --out the key into a private new file, and does not print it', async () => {
    const path = join(dir, 'key')
    const { code, out, err } = await patchmirror(['api-keys', 'create', 'x', '--out', path])
    expect(code, err).toBe(0)
    const key = readFileSync(path, 'utf8').trim()
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(out + err).not.toContain(key)
    const me = await patchmirror(['whoami', '--json'], {
      PATCHMIRROR_UPSTREAM_API_KEY: '',
      PATCHMIRROR_UPSTREAM_API_KEY_FILE: path,
    })
    expect(JSON.parse(me.out)).toMatchObject({ account: { role: 'member' } })
  })

  test('never overwrites a file with --out, and creates no key then', async () => {
    const path = join(dir, 'key')
    writeFileSync(path, 'precious')
    for (const taken of [path, join(dir, 'no', 'such', 'folder')]) {
      const { code, err } = await patchmirror(['api-keys', 'create', 'x', '--out', taken])
      expect(code).toBe(2)
      expect(err).toContain('Nothing was created')
    }
    expect(readFileSync(path, 'utf8')).toBe('precious')
    expect(sandbox.requests.count()).toBe(0)
  })

  test('leaves no file behind when the service refuses', async () => {
    const path = join(dir, 'key')
    const { code, err } = await patchmirror(['api-keys', 'create', 'x', '--role', 'king', '--out', path])
    expect(code).toBe(1)
    expect(err).toContain('role must be one of')
    expect(existsSync(path)).toBe(false)
  })

  longTest('prints a secret that could not be written, and leaves no half of it', async () => {
    const path = join(dir, 'key')
    // The new file may hold nothing, as on a full disk; the pipe to the terminal is no file.
    const shell = 'ulimit -f 0; exec "$0" src/main.ts api-keys create x --out "$1"'
    const child = spawn('bash', ['-c', shell, process.execPath, path], {
      env: {
        PATH: process.env['PATH'],
        NODE_COMPILE_CACHE: COMPILED,
        PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
        PATCHMIRROR_UPSTREAM_API_KEY: SANDBOX_KEYS.admin,
      },
    })
    const [out, err, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'exit') as Promise<[number]>,
    ])
    expect(code, err).toBe(1)
    expect(out).toMatch(/^secret {2}key_\S+$/m)
    expect(err).toContain('could not be written (EFBIG')
    expect(existsSync(path)).toBe(false)
  })

  test('reports an unknown key and a malformed time', async () => {
    const { code, err } = await patchmirror(['api-keys', 'list', 'nope'])
    expect(code).toBe(1)
    expect(err).toContain('the service has no API key nope; "patchmirror api-keys list" shows')
    expect((await patchmirror(['api-keys', 'create', 'x', '--expires', 'soon'])).code).toBe(2)
  })
})

describe('the command subscriptions', () => {
  test('adds, lists, shows and removes subscriptions, several at once', async () => {
    const before = (await json('subscriptions', 'list')) as Items
    const [removed, kept] = before.map(({ id }) => String(id)) as [string, string]
    expect(await json('subscriptions', 'list', kept)).toMatchObject({ id: kept })
    const gone = await patchmirror(['subscriptions', 'remove', removed])
    expect(gone).toMatchObject({ code: 0, out: `subscription ${removed} is removed\n` })
    const tag = String(before[0]?.['service_registry_tag_id'])
    const made = (await json('subscriptions', 'add', '--tag', tag)) as Items
    expect(made).toHaveLength(1)
    expect(made[0]).toMatchObject({ service_registry_tag_id: tag })
    expect((await patchmirror(['subscriptions', 'list'])).out).toMatch(/^id +service_registry_tag_id/)
  })

  test('reports unknown and missing ids', async () => {
    const unknown = await patchmirror(['subscriptions', 'add', '--package', 'nope'])
    expect(unknown.code).toBe(1)
    expect(unknown.err).toContain('no tag, image or package of one of these ids')
    const none = await patchmirror(['subscriptions', 'add'])
    expect(none.code).toBe(2)
    expect(none.err).toContain('--tag ID, --image ID or --package ID')
    expect((await patchmirror(['subscriptions', 'remove', 'nope'])).err).toContain('no subscription nope')
  })
})

describe('the command webhooks', () => {
  test('registers an endpoint with a secret, lists it without, tests and deletes it', async () => {
    const path = join(dir, 'secret')
    const url = 'http://127.0.0.1:9/hook'
    const made = await patchmirror(['webhooks', 'register', url, '--out', path, '--json'])
    expect(made.code, made.err).toBe(0)
    const { id } = JSON.parse(made.out) as { id: string }
    expect(readFileSync(path, 'utf8')).toMatch(/^whsec_\S+\n$/)
    const listed = (await json('webhooks', 'list')) as Items
    expect(listed[0]).toMatchObject({ id, url, event_types: ['io.service.cr.image.created.v1'] })
    const [subscription] = (await json('subscriptions', 'list')) as Items
    const tag = String(subscription?.['service_registry_tag_id'])
    const tried = await patchmirror(['webhooks', 'test', id, tag])
    expect(tried.code, tried.err).toBe(1) // nobody listens there
    expect(tried.out).toMatch(/status +failed/)
    expect((await patchmirror(['webhooks', 'test', id, 'nope'])).err).toContain('or no tag nope')
    expect((await patchmirror(['webhooks', 'delete', id])).out).toContain('is deleted')
    expect(await json('webhooks', 'list')).toEqual([])
  })

  test('reports a test of an endpoint for another event', async () => {
    const args = ['webhooks', 'register', 'https://hooks.example.com/x', '--event', 'io.service.other.v1']
    const { id } = (await json(...args)) as { id: string }
    const [subscription] = (await json('subscriptions', 'list')) as Items
    const tag = String(subscription?.['service_registry_tag_id'])
    const { code, err } = await patchmirror(['webhooks', 'test', id, tag])
    expect(code).toBe(1)
    expect(err).toMatch(/422 \(.*does not subscribe to io\.service\.cr\.image\.created\.v1/)
  })
})

describe('the commands of the identity surface', () => {
  test('list users by the credential of the identity surface', async () => {
    const identity = {
      PATCHMIRROR_IDENTITY_API_URL: sandbox.identityUrl,
      PATCHMIRROR_OAUTH_CLIENT_ID: SANDBOX_CLIENT.id,
      PATCHMIRROR_OAUTH_CLIENT_SECRET: SANDBOX_CLIENT.secret,
      PATCHMIRROR_OAUTH_AUTH_URL: sandbox.authUrl,
    }
    const { code, out, err } = await patchmirror(['users'], identity)
    expect(code, err).toBe(0)
    expect(out).toMatch(/^user_id +email/)
    const without = await patchmirror(['users'])
    expect(without.code).toBe(2)
    expect(without.err).toContain('identity.apiUrl is not set (PATCHMIRROR_IDENTITY_API_URL)')
  })

  test('accept every kind of credential, and name the setting of a missing one', async () => {
    const byToken = { PATCHMIRROR_UPSTREAM_API_KEY: '', PATCHMIRROR_UPSTREAM_TOKEN: SANDBOX_TOKEN }
    expect((await patchmirror(['whoami'], byToken)).out).toMatch(/organization/)
    const none = await patchmirror(['whoami'], { PATCHMIRROR_UPSTREAM_API_KEY: '' })
    expect(none.code).toBe(2)
    expect(none.err).toContain('PATCHMIRROR_UPSTREAM_API_KEY_FILE')
  })

  test('read lists of any shape', async () => {
    const other = await createSandbox({ records: 0, service: { shape: 'other' } })
    try {
      const env = { PATCHMIRROR_UPSTREAM_API_ROOT: other.url }
      const { out, code } = await patchmirror(['subscriptions', 'list', '--json'], env)
      expect(code).toBe(0)
      expect((JSON.parse(out) as Items).length).toBeGreaterThan(0)
    } finally {
      await other.close()
    }
  })
})
