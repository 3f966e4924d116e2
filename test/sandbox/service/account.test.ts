import { beforeAll, describe, expect, test } from 'vitest'
import type { Sandbox } from '../server.ts'
import { SANDBOX_KEYS, SANDBOX_TOKEN } from './credentials.ts'
import { sandboxes } from '../fixtures.ts'
import { asAdmin, ask, basic, bearer } from './asking.ts'

const open = sandboxes()
let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await open()
})

const statusWith = async (headers: Record<string, string>) => (await ask(`${sandbox.url}/v1/me`, { headers })).status

describe('a credential', () => {
  test('is an API key as username with an empty password, or a bearer token', async () => {
    for (const key of Object.values(SANDBOX_KEYS)) expect(await statusWith(basic(key))).toBe(200)
    expect(await statusWith(bearer(SANDBOX_TOKEN))).toBe(200)
    expect(await statusWith(basic(SANDBOX_TOKEN))).toBe(200)
    expect(await statusWith(bearer(SANDBOX_KEYS.admin))).toBe(200)
  })

  test('that is missing, wrong, or has a password is a 401 with a JSON message', async () => {
    const password = Buffer.from(`${SANDBOX_KEYS.admin}:secret`).toString('base64')
    const wrong = [
      {},
      basic('nobody'),
      bearer('nothing'),
      { authorization: `Basic ${password}` },
      { authorization: 'Digest x' },
      { authorization: 'Basic !!!' },
      { authorization: SANDBOX_KEYS.admin },
    ]
    for (const headers of wrong) {
      const { status, value, headers: got } = await ask(`${sandbox.url}/v1/me`, { headers })
      expect([status, Object.keys(value)]).toEqual([401, ['message']])
      expect(got.get('www-authenticate')).toContain('Bearer')
    }
  })

  test('is checked before the path', async () => {
    expect((await ask(`${sandbox.url}/v1/nothing`)).status).toBe(401)
    expect((await asAdmin(sandbox, '/v1/nothing')).status).toBe(404)
  })

  test('is not needed for the public feeds', async () => {
    expect((await ask(`${sandbox.url}/external/osv/all.json`)).status).toBe(200)
  })

  test('can be configured, with a default role', async () => {
    const own = await open({
      service: {
        role: 'readonly',
        apiKeys: [
          { key: 'mine', name: 'my key' },
          { key: 'theirs', role: 'admin' },
        ],
        tokens: [{ token: 'short' }],
      },
    })
    const role = async (headers: Record<string, string>) => (await ask(`${own.url}/v1/me`, { headers })).value['role']
    expect(await role(basic('mine'))).toBe('readonly')
    expect(await role(basic('theirs'))).toBe('admin')
    expect(await role(bearer('short'))).toBe('readonly')
    expect((await ask(`${own.url}/v1/me`, { headers: basic(SANDBOX_KEYS.admin) })).status).toBe(401)
  })

  test('that is revoked no longer works', async () => {
    const own = await open()
    expect(own.service.revoke(SANDBOX_TOKEN)).toBe(true)
    expect(own.service.revoke('nothing')).toBe(false)
    expect((await ask(`${own.url}/v1/me`, { headers: bearer(SANDBOX_TOKEN) })).status).toBe(401)
  })
})

describe('account and organization', () => {
  test('are those of the credential', async () => {
    const { value } = await ask(`${sandbox.url}/v1/me`, { headers: basic(SANDBOX_KEYS.readonly) })
    expect(value).toMatchObject({ role: 'readonly', organization: { kind: 'private' } })
    const orgs = await asAdmin(sandbox, '/v1/orgs/')
    expect(orgs.value).toMatchObject({ kind: 'private', accounts: [{ role: 'admin' }] })
    expect(orgs.value['id']).toBe((value['organization'] as { id: string }).id)
  })
})

describe('an API key', () => {
  test('shows its secret once, and works until it is deleted', async () => {
    const body = { name: 'für später', role: 'readonly' }
    const made = await asAdmin(sandbox, '/v1/api_keys/', { method: 'POST', body })
    expect(made.status).toBe(201)
    expect(made.value).toMatchObject({ ...body, active: true, expires_at: null, type: 'user' })
    const key = String(made.value['key'])
    const path = `/v1/api_keys/${String(made.value['id'])}/`
    expect(await statusWith(basic(key))).toBe(200)

    const one = await asAdmin(sandbox, path)
    const { key: _secret, ...rest } = made.value
    expect(one.value).toEqual(rest)
    const list = await asAdmin(sandbox, '/v1/api_keys/')
    expect(list.bytes.toString()).not.toContain(key)
    expect(list.value['data']).toContainEqual(expect.objectContaining({ id: made.value['id'] }))

    expect((await asAdmin(sandbox, path, { method: 'DELETE' })).status).toBe(204)
    expect(await statusWith(basic(key))).toBe(401)
    expect((await asAdmin(sandbox, path)).status).toBe(404)
    expect((await asAdmin(sandbox, path, { method: 'DELETE' })).status).toBe(404)
  })

  test('stops working when it expires by the clock', async () => {
    let now = Date.UTC(2026, 5, 1)
    const own = await open({ now: () => now })
    const body = { name: 'short', expires_at: '2026-06-01T01:00:00Z' }
    const { value } = await asAdmin(own, '/v1/api_keys/', { method: 'POST', body })
    const status = async () => (await ask(`${own.url}/v1/me`, { headers: basic(String(value['key'])) })).status
    expect(await status()).toBe(200)
    now += 3_600_000
    expect(await status()).toBe(401)
  })

  test('is not created or deleted by a read-only role, nor with a higher role than the creator’s', async () => {
    const post = async (key: string, role: string) =>
      (
        await ask(`${sandbox.url}/v1/api_keys/`, {
          method: 'POST',
          headers: basic(key),
          body: { name: 'x', role },
        })
      ).status
    expect(await post(SANDBOX_KEYS.readonly, 'readonly')).toBe(403)
    expect(await post(SANDBOX_KEYS.member, 'admin')).toBe(403)
    expect(await post(SANDBOX_KEYS.member, 'member')).toBe(201)
    const [id] = sandbox.service.ids('apiKeys')
    const url = `${sandbox.url}/v1/api_keys/${String(id)}/`
    const headers = basic(SANDBOX_KEYS.readonly)
    expect((await ask(url, { method: 'DELETE', headers })).status).toBe(403)
  })

  test('request that is malformed is a 400', async () => {
    const bodies = [{}, { name: '' }, { name: 'x', role: 'king' }, { name: 'x', expires_at: 'soon' }, []]
    for (const body of bodies) {
      const { status, value } = await asAdmin(sandbox, '/v1/api_keys/', { method: 'POST', body })
      expect([status, Object.keys(value)]).toEqual([400, ['message']])
    }
    expect((await asAdmin(sandbox, '/v1/api_keys/', { method: 'POST' })).status).toBe(400)
  })
})
