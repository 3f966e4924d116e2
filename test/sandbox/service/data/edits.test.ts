import { describe, expect } from 'vitest'
import type { Sandbox } from '../../server.ts'
import { sandboxes } from '../../fixtures.ts'
import { type Json, asAdmin, ask, expectDistinctIds } from '../asking.ts'
import { longTest, test } from '../../../support/tables.ts'

const open = sandboxes()
const LISTS = ['/v1/tags/', '/v1/images/', '/v1/packages/', '/v1/patches', '/v1/subscriptions/']

const bodies = (sandbox: Sandbox): Promise<string[]> =>
  Promise.all(LISTS.map(async (path) => (await asAdmin(sandbox, path)).bytes.toString()))

const document = async (sandbox: Sandbox, tag: string, artifact = 'sbom'): Promise<Buffer> => {
  const { value } = await asAdmin(sandbox, `/v1/tags/${tag}/${artifact}`)
  return (await ask(String(value[`${artifact}_file_url`]))).bytes
}

describe('the generated catalog', () => {
  longTest('depends on the seed and not on the clock', async () => {
    const one = await open({ seed: 5 })
    const same = await open({ seed: 5, now: () => Date.UTC(2027, 0, 1) })
    const other = await open({ seed: 6 })
    expect(await bodies(one)).toEqual(await bodies(same))
    expect(await bodies(one)).not.toEqual(await bodies(other))
    const [tag = ''] = one.service.ids('tags')
    for (const artifact of ['sbom', 'vex', 'provenance']) {
      const bytes = await document(one, tag, artifact)
      expect(bytes.equals(await document(same, tag, artifact)), artifact).toBe(true)
    }
  })

  test('has the same items in any size', async () => {
    const few = await open({ service: { packages: 5, tickets: 5, users: 2 } })
    const many = await open({ service: { packages: 50, tickets: 500, users: 20 } })
    for (const kind of ['packages', 'tickets', 'users'] as const) {
      const ids = few.service.ids(kind)
      expect(many.service.ids(kind).slice(0, ids.length)).toEqual(ids)
      for (const id of ids) expect(many.service.read(kind, id)).toEqual(few.service.read(kind, id))
    }
  })

  test('has no two items of a kind with one id', async () => {
    const sandbox = await open({ service: { images: 20, tags: 500, packages: 200 } })
    expectDistinctIds(sandbox)
    expect(sandbox.service.ids('tags')).toHaveLength(500)
  })

  test('may be empty', async () => {
    const counts = {
      images: 0,
      tags: 0,
      packages: 0,
      tickets: 0,
      avrs: 0,
      users: 0,
      subscriptions: 3,
    }
    const empty = await open({ service: counts })
    for (const path of LISTS) {
      const { value } = await asAdmin(empty, path)
      expect(value['cursor']).toMatchObject({ total_count: 0 })
    }
    expect(() => empty.service.addTag()).toThrow('no images')
  })
})

describe('an edit of the catalog', () => {
  test('changes the item, its list, their validators, and `updated_at`', async () => {
    const sandbox = await open()
    for (const [kind, list, slash] of [
      ['tags', '/v1/tags/', ''],
      ['packages', '/v1/packages/', '/'],
    ] as const) {
      const id = sandbox.service.ids(kind)[3] ?? ''
      const paths = [list, `${list}${id}${slash}`]
      const before = await Promise.all(paths.map((path) => asAdmin(sandbox, path)))
      sandbox.service.change(kind, id, { name: 'neu' })
      const after = await Promise.all(paths.map((path) => asAdmin(sandbox, path)))
      for (const [i, { headers, value }] of after.entries()) {
        expect(headers.get('etag')).not.toBe(before[i]?.headers.get('etag'))
        const modified = (of: Headers | undefined) => Date.parse(of?.get('last-modified') ?? '')
        expect(modified(headers)).toBeGreaterThan(modified(before[i]?.headers))
        if (i === 1) expect(value['name']).toBe('neu')
      }
      expect(String(after[1]?.value['updated_at']) > String(before[1]?.value['updated_at'])).toBe(
        true,
      )
    }
  })

  test('of a ticket moves it from one filter to another', async () => {
    const { service, ...sandbox } = await open()
    const [id = ''] = service.ids('tickets')
    const found = async (status: string) => {
      const path = `/v1/patches?limit=1000&ticket_statuses=${status}`
      const { value } = await asAdmin({ ...sandbox, service }, path)
      return (value['tickets'] as Json[]).some((ticket) => ticket['ticket_id'] === id)
    }
    for (const status of ['open', 'done', 'deferred']) {
      service.change('tickets', id, { ticket_status: status })
      expect([await found('open'), await found('done'), await found('deferred')]).toEqual(
        ['open', 'done', 'deferred'].map((one) => one === status),
      )
    }
  })

  test('adds a tag to an image, with documents and a higher count', async () => {
    const sandbox = await open()
    const { tags_count: count } = sandbox.service.read('images', '1003')
    const id = sandbox.service.addTag('1003')
    expect((await asAdmin(sandbox, `/v1/tags/${id}`)).value).toMatchObject({ image: { id: 1003 } })
    expect(sandbox.service.read('images', '1003')['tags_count']).toBe(Number(count) + 1)
    const { repository } = sandbox.service.read('images', '1003')
    const { value } = await asAdmin(sandbox, `/v1/images/${String(repository)}/tags`)
    expect((value['data'] as Json[]).at(-1)).toMatchObject({ id })
    expect(await document(sandbox, id)).toEqual(sandbox.service.documents('tag', id, 'sbom')[0])
  })

  test('adds packages, tickets and subscriptions, each new', async () => {
    const { service } = await open()
    const kinds = ['packages', 'tickets', 'subscriptions'] as const
    const before = kinds.map((kind) => service.ids(kind))
    const tag = service.ids('tags')[30] ?? ''
    const added = [service.addPackage(), service.addTicket(), service.addSubscription({ tag })]
    for (const [i, kind] of kinds.entries()) {
      expect(service.ids(kind)).toEqual([...(before[i] ?? []), added[i]])
    }
    expect(service.documents('package', added[0] ?? '', 'provenance')).toHaveLength(1)
  })

  test('removes an item, which is then a 404 and not listed', async () => {
    const sandbox = await open()
    const [id = '', next] = sandbox.service.ids('tags')
    sandbox.service.remove('tags', id)
    expect((await asAdmin(sandbox, `/v1/tags/${id}`)).status).toBe(404)
    expect((await asAdmin(sandbox, `/v1/tags/${id}/sbom`)).status).toBe(404)
    expect((await asAdmin(sandbox, '/v1/tags/')).value['data']).toMatchObject(
      sandbox.service.ids('tags').map((one) => ({ id: one })),
    )
    expect(sandbox.service.ids('tags')[0]).toBe(next)
    expect(() => sandbox.service.remove('tags', id)).toThrow(id)
  })

  test('gives a tag another document, and those that shared the old one keep it', async () => {
    const sandbox = await open()
    const [, , sharer = '', rotated = ''] = sandbox.service.ids('tags')
    const shared = await document(sandbox, rotated)
    const { updated_at: before } = sandbox.service.read('tags', rotated)
    sandbox.service.rotateArtifact('tag', rotated, 'sbom')
    expect((await document(sandbox, rotated)).equals(shared)).toBe(false)
    expect((await document(sandbox, sharer)).equals(shared)).toBe(true)
    const { updated_at: after } = sandbox.service.read('tags', rotated)
    expect(after).not.toBe(before)
    sandbox.service.rotateArtifact('tag', rotated, 'vex', { silent: true })
    expect(sandbox.service.read('tags', rotated)['updated_at']).toBe(after)
  })
})
