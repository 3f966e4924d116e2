import { beforeEach, describe, expect, test } from 'vitest'
import type { Sandbox } from '../server.ts'
import { SANDBOX_KEYS } from './credentials.ts'
import { sandboxes } from '../fixtures.ts'
import { type Json, asAdmin, ask, basic } from './asking.ts'

const open = sandboxes()
const PATH = '/v1/subscriptions/'
let sandbox: Sandbox
beforeEach(async () => {
  sandbox = await open({ service: { subscriptions: 4 } })
})

const post = (body: unknown) => asAdmin(sandbox, PATH, { method: 'POST', body })
const remove = (body: unknown) => asAdmin(sandbox, PATH, { method: 'DELETE', body })
const idOf = (kind: 'tags' | 'packages', n: number) => sandbox.service.ids(kind)[n] ?? ''

describe('subscribing', () => {
  test('accepts many tags at once', async () => {
    const wanted = [idOf('tags', 7), idOf('tags', 8)]
    const { status, value } = await post({ service_registry_tag_ids: wanted })
    expect(status).toBe(201)
    const made = value['data'] as Json[]
    expect(made.map((one) => one['service_registry_tag_id'])).toEqual(wanted)
    expect(made[0]).toHaveProperty('tag.image.repository')
    for (const one of made) {
      expect((await asAdmin(sandbox, `${PATH}${String(one['id'])}/`)).value).toEqual(one)
    }
    expect(sandbox.service.ids('subscriptions')).toHaveLength(6)
  })

  test('accepts packages and images, also where an id is that of a tag too', async () => {
    const shared = idOf('packages', 2)
    expect(shared).toBe(idOf('tags', 2))
    const { value } = await post({ package_ids: [shared], image_ids: [1003] })
    expect(value['data']).toMatchObject([{ package_id: shared }, { image: { id: 1003 } }])
  })

  test('twice to the same item gives the same subscription', async () => {
    const body = { service_registry_tag_ids: [idOf('tags', 9)] }
    const once = await post(body)
    expect((await post(body)).value).toEqual(once.value)
  })

  test('to an unknown item changes nothing', async () => {
    const before = sandbox.service.ids('subscriptions')
    expect((await post({ tag_ids: [idOf('tags', 9), 'none'] })).status).toBe(404)
    expect((await post({ package_ids: ['none'] })).status).toBe(404)
    expect((await post({ image_ids: [1] })).status).toBe(404)
    for (const body of [{}, [], { tag_ids: 'x' }]) expect((await post(body)).status).toBe(400)
    expect(sandbox.service.ids('subscriptions')).toEqual(before)
  })
})

describe('unsubscribing', () => {
  test('takes the ids from the body, and deletes all or none', async () => {
    const [one = '', two = '', ...rest] = sandbox.service.ids('subscriptions')
    expect((await remove({ ids: [one, 'none'] })).status).toBe(404)
    expect(sandbox.service.ids('subscriptions')).toContain(one)
    expect((await remove({ ids: [one, two] })).status).toBe(204)
    expect(sandbox.service.ids('subscriptions')).toEqual(rest)
    expect((await asAdmin(sandbox, `${PATH}${one}/`)).status).toBe(404)
    expect((await remove({})).status).toBe(400)
  })

  test('is not possible by a path with an id', async () => {
    const [one = ''] = sandbox.service.ids('subscriptions')
    expect((await asAdmin(sandbox, `${PATH}${one}/`, { method: 'DELETE' })).status).toBe(405)
  })
})

test('a read-only role can neither subscribe nor unsubscribe', async () => {
  for (const method of ['POST', 'DELETE']) {
    const headers = basic(SANDBOX_KEYS.readonly)
    const { status } = await ask(sandbox.url + PATH, { method, headers, body: { ids: ['x'] } })
    expect(status).toBe(403)
  }
})
