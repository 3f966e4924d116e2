import { describe, expect } from 'vitest'
import { shaped } from '../../sandbox/service/shapes/shape.ts'
import { longTest, test } from '../../support/tables.ts'
import { type CatalogBench, catalogBench } from '../../support/catalog/mirror.ts'

const SMALL = { images: 2, tags: 3, packages: 2, tickets: 12, avrs: 0, users: 0, subscriptions: 0 }
const ENV = { PATCHMIRROR_CATALOG_SCOPE: 'all' }

async function mirrored(service: object = {}): Promise<CatalogBench> {
  const made = await catalogBench({ ...SMALL, ...service }, { env: ENV })
  expect(await made.run('catalog')).toMatchObject({ state: 'complete' })
  return made
}

async function askJson(made: CatalogBench, path: string) {
  const answer = await made.ask(path)
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

interface Ticket {
  attributes: { cve_id: string; version: string }
}

describe('items whose fields are within an object', () => {
  test('are found by their names, filtered and ordered', async () => {
    const shape = shaped('wire', { records: { within: 'attributes' } })
    const made = await mirrored({ shape })
    const all = (await askJson(made, '/v1/patches')).body['tickets'] as Ticket[]
    const cve = all[0]?.attributes.cve_id ?? ''
    const some = all.filter(({ attributes }) => attributes.cve_id === cve)
    for (const asked of [cve, cve.toLowerCase()]) {
      const found = await askJson(made, `/v1/patches?cve_id=${asked}`)
      expect(found).toMatchObject({ status: 200, body: { tickets: some } })
    }
    const ordered = await askJson(made, '/v1/patches?order=version:asc')
    const versions = (ordered.body['tickets'] as Ticket[]).map((one) => one.attributes.version)
    expect(versions).toEqual([...versions].sort())
    const images = (await askJson(made, '/v1/images/')).body['data'] as {
      attributes: { repository: string }
    }[]
    const repo = images[0]?.attributes.repository ?? ''
    expect((await made.ask(`/v1/images/${repo}/tags`)).status).toBe(200)
    const denied = await askJson(made, '/v1/images/no-such/tags')
    expect(denied.status).toBe(404)
    expect(denied.body['message']).toContain('did not name it')
  })
})

longTest('tags of an image that have no plain id are not told apart by the image that they name', async () => {
  const shape = shaped('wire', { records: { fields: 'prefixed', ids: 'integer' } })
  const made = await mirrored({ shape, images: 1 })
  const images = (await askJson(made, '/v1/images/')).body['data'] as { image_repository: string }[]
  const tags = await askJson(made, `/v1/images/${images[0]?.image_repository ?? ''}/tags`)
  expect((tags.body['data'] as object[]).length).toBe(SMALL.tags)
})

describe('a list whose items have no names', () => {
  longTest('denies nothing, and the run says so', async () => {
    const made = await catalogBench(SMALL, { env: ENV })
    made.sandbox.faults.set('/v1/images/', {
      kind: 'body',
      body: JSON.stringify({ data: [{ id: 1, title: 'Python' }, { id: 2 }] }),
      type: 'application/json',
    })
    const report = await made.run('catalog')
    expect(report.state).toBe('partial')
    expect(report.message).toContain('/v1/images: names were not found in this list')
    const asked = await askJson(made, '/v1/images/python/tags')
    expect(asked).toMatchObject({ status: 501, body: { error: 'not_supported' } })
    expect(asked.body['message']).toContain('names were not found in this list')
    expect((await made.ask('/v1/images/77')).status).toBe(404) // it has ids
  })

  test('denies nothing where only some of them have none', async () => {
    const made = await catalogBench(SMALL, { env: ENV })
    const json = { kind: 'body', type: 'application/json' } as const
    const listOf = (...data: object[]) => ({ ...json, body: JSON.stringify({ data }) })
    const named = { id: 1, repository: 'python' }
    made.sandbox.faults.set('/v1/images/', listOf(named, { id: 2, repository: { name: 'redis' } }))
    await made.run('catalog')
    const asked = await askJson(made, '/v1/images/redis/tags')
    expect(asked).toMatchObject({ status: 501, body: { error: 'not_supported' } })
    expect(asked.body['message']).toContain('not every item')
    made.sandbox.faults.clear()
    made.sandbox.faults.set('/v1/images/', listOf(named, { id: 2, repository: 'nginx' }))
    await made.run('catalog')
    expect((await askJson(made, '/v1/images/redis/tags')).status).toBe(404)
  })

  longTest('denies no id where its items have none', async () => {
    const made = await catalogBench(SMALL, { env: ENV })
    made.sandbox.faults.set('/v1/packages/', {
      kind: 'body',
      body: JSON.stringify({ data: [{ title: 'curl' }] }),
      type: 'application/json',
    })
    await made.run('catalog')
    expect((await made.ask('/v1/packages/7/')).status).toBe(501)
  })

  longTest('that is empty names nothing', async () => {
    const made = await mirrored({ images: 0, tags: 0 })
    expect((await made.ask('/v1/images/python/tags')).status).toBe(404)
  })
})
