import { request } from 'node:http'
import { beforeEach, describe, expect } from 'vitest'
import type { Fault } from '../faults/fault.ts'
import type { Sandbox } from '../server.ts'
import { SANDBOX_TOKEN } from './credentials.ts'
import { exchange } from '../exchange.ts'
import { sandboxes } from '../fixtures.ts'
import { type Json, asAdmin, ask, bearer } from './asking.ts'
import { longTest, test } from '../../support/tables.ts'

const open = sandboxes()
let sandbox: Sandbox
let made: Sandbox | undefined
beforeEach(async () => {
  sandbox = made ??= await open()
  sandbox.faults.clear()
})

const TAGS = '/v1/tags/'

/** The page behind a cursor: its items' ids and the next cursor. */
async function page(after?: string, limit = 10): Promise<{ ids: unknown[]; after: string }> {
  const cursor = after === undefined ? '' : `&after=${after}`
  const { value } = await asAdmin(sandbox, `${TAGS}?limit=${limit}${cursor}`)
  const ids = (value['data'] as Json[]).map(({ id }) => id)
  return { ids, after: (value['cursor'] as { after: string }).after }
}

const sbomUrl = async (): Promise<string> => {
  const [id = ''] = sandbox.service.ids('tags')
  const { value } = await asAdmin(sandbox, `/v1/tags/${id}/sbom`)
  return String(value['sbom_file_url'])
}

describe('a list under a fault', () => {
  test('repeats one page for ever, under one cursor', async () => {
    const first = await page()
    sandbox.faults.set(TAGS, { kind: 'repeatPage' })
    expect(await page()).toEqual(first)
    const second = await page(first.after)
    expect(second.after).toBe(first.after)
    expect(await page(second.after)).toEqual(second)
  })

  test('never ends, with empty pages or the first one again', async () => {
    const { ids } = await page()
    for (const [items, wanted] of [
      ['empty', []],
      ['repeated', ids],
    ] as const) {
      sandbox.faults.clear()
      sandbox.faults.set(TAGS, { kind: 'endlessCursor', items })
      const cursors = new Set<string>()
      let after: string | undefined
      for (let i = 0; i < 5; i++) {
        const got = await page(after)
        expect(got.ids).toEqual(wanted)
        cursors.add(got.after)
        after = got.after
      }
      expect(cursors.size).toBe(5)
    }
  })

  test('loses a page in the middle of a walk, once', async () => {
    const { after } = await page()
    for (const status of [undefined, 400, 404] as const) {
      const fault: Fault = { kind: 'lostPage', ...(status && { status }) }
      sandbox.faults.set(TAGS, fault, { times: 1 })
      expect((await asAdmin(sandbox, TAGS)).status).toBe(200)
      const lost = await asAdmin(sandbox, `${TAGS}?after=${after}`)
      expect([lost.status, Object.keys(lost.value)]).toEqual([status ?? 410, ['message']])
      expect((await asAdmin(sandbox, `${TAGS}?after=${after}`)).status).toBe(200)
    }
  })

  test('refuses the credential in the middle of a walk', async () => {
    sandbox.faults.set(TAGS, { kind: 'status', status: 401 }, { after: 1, times: 1 })
    const seen = []
    for (let i = 0; i < 3; i++) seen.push((await asAdmin(sandbox, TAGS)).status)
    expect(seen).toEqual([200, 401, 200])
  })

  test('does not apply its faults to items', async () => {
    sandbox.faults.set('/v1/tags/*', { kind: 'endlessCursor' })
    const [id = ''] = sandbox.service.ids('tags')
    expect((await asAdmin(sandbox, TAGS + id)).value['id']).toBe(id)
  })
})

describe('an item under a fault', () => {
  test('is listed but missing', async () => {
    const [id = ''] = sandbox.service.ids('tags')
    sandbox.faults.set(TAGS + id, { kind: 'status', status: 404 })
    expect((await asAdmin(sandbox, TAGS + id)).status).toBe(404)
    expect((await page()).ids).toContain(id)
  })
})

describe('a write under a fault', () => {
  test('is not executed when another answer replaces its own', async () => {
    const before = sandbox.service.ids('apiKeys')
    const handle = sandbox.faults.set('/v1/api_keys/', { kind: 'status', status: 500 }, { method: 'POST' })
    const body = { name: 'x' }
    expect((await asAdmin(sandbox, '/v1/api_keys/', { method: 'POST', body })).status).toBe(500)
    expect((await asAdmin(sandbox, '/v1/api_keys/')).status).toBe(200)
    expect([handle.hits(), sandbox.service.ids('apiKeys')]).toEqual([1, before])
  })

  test('is executed once when only its answer is lost', async () => {
    const before = sandbox.service.ids('apiKeys').length
    sandbox.faults.set('/v1/api_keys/', { kind: 'reset' }, { method: 'POST', times: 1 })
    const body = { name: 'lost' }
    await expect(asAdmin(sandbox, '/v1/api_keys/', { method: 'POST', body })).rejects.toThrow()
    expect(sandbox.service.ids('apiKeys')).toHaveLength(before + 1)
  })
})

describe('an artifact under a fault', () => {
  test('has any URL that a test sets', async () => {
    const urls = ['http://169.254.169.254/latest/meta-data', 'file:///etc/passwd', `${sandbox.artifactUrl}/loop`]
    for (const url of urls) {
      sandbox.faults.clear()
      sandbox.faults.set('/v1/*', { kind: 'artifactUrl', url })
      expect(await sbomUrl()).toBe(url)
      const [, , , id = ''] = sandbox.service.ids('packages')
      const { value } = await asAdmin(sandbox, `/v1/packages/${id}/artifacts/patches`)
      expect(value['patch_files_urls']).toEqual([url, url, url])
      expect((await asAdmin(sandbox, '/v1/me')).value).toHaveProperty('role')
    }
  })

  test('redirects in a circle, or to another host', async () => {
    const loop = await ask(`${sandbox.artifactUrl}/loop`)
    expect([loop.status, loop.headers.get('location')]).toEqual([302, '/loop'])
    sandbox.faults.set('/artifacts/*', { kind: 'redirect', location: 'http://127.0.0.1:1/x' })
    const away = await ask(await sbomUrl())
    expect([away.status, away.headers.get('location')]).toEqual([302, 'http://127.0.0.1:1/x'])
  })

  test('is a page of HTML, or has a changed byte', async () => {
    const [id = ''] = sandbox.service.ids('tags')
    const right = sandbox.service.documents('tag', id, 'sbom')[0]
    sandbox.faults.set('/artifacts/sbom*', { kind: 'html' }, { times: 1 })
    expect((await ask(await sbomUrl())).headers.get('content-type')).toMatch(/^text\/html/)
    sandbox.faults.set('/artifacts/sbom*', { kind: 'corrupt' }, { times: 1 })
    const { body } = await exchange(await sbomUrl())
    expect([body.length, right && body.equals(right)]).toEqual([right?.length, false])
  })

  /** Reads an endless document until this many bytes have arrived; its declared length. */
  async function readFrom(declared: boolean, enough: number): Promise<string | undefined> {
    sandbox.faults.set('/artifacts/*', { kind: 'hugeDocument', declared }, { times: 1 })
    const url = await sbomUrl()
    return new Promise((resolve, reject) => {
      const outgoing = request(url, (incoming) => {
        let bytes = 0
        incoming.on('data', (part: Buffer) => {
          bytes += part.length
          if (bytes < enough) return
          outgoing.destroy()
          resolve(incoming.headers['content-length'])
        })
      })
      outgoing.on('error', reject).end()
    })
  }

  test('declares two gigabytes, or nothing', async () => {
    expect(await readFrom(true, 1 << 20)).toBe(String(2 ** 31))
    expect(await readFrom(false, 1 << 20)).toBeUndefined()
  })

  longTest('streams two gigabytes from one small buffer', async () => {
    const before = process.memoryUsage().arrayBuffers
    await readFrom(true, 200 << 20)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(150 << 20)
  })

  test('of a small size is complete', async () => {
    sandbox.faults.set('/artifacts/*', { kind: 'hugeDocument', bytes: 3_000_000 })
    const { body, headers } = await exchange(await sbomUrl())
    expect([body.length, headers['content-length']]).toEqual([3_000_000, '3000000'])
    expect(body.subarray(0, 24).toString()).toBe('{"bomFormat":"CycloneDX"')
  })
})

test('the other addresses have faults too, and the log separates them', async () => {
  sandbox.requests.clear()
  sandbox.faults.set('/v1/users', { kind: 'status', status: 503 })
  sandbox.faults.set('/packages/ecosystems/*', { kind: 'status', status: 502 })
  sandbox.faults.set('/oauth/token', { kind: 'empty' })
  const headers = bearer(SANDBOX_TOKEN)
  expect((await ask(`${sandbox.identityUrl}/users`, { headers })).status).toBe(503)
  expect((await ask(`${sandbox.catalogUrl}/packages/ecosystems/x`)).status).toBe(502)
  const token = await ask(`${sandbox.authUrl}/oauth/token`, { method: 'POST', body: {} })
  expect([token.status, token.bytes.length]).toEqual([200, 0])
  await asAdmin(sandbox, '/v1/me')
  const hosts = sandbox.requests.entries.map(({ host }) => host)
  expect(hosts).toEqual(['identity', 'catalog', 'identity', 'api'])
})
