import { afterEach, expect, test } from 'vitest'
import { createCatalogRoutes } from '../../src/api/catalog/routes.ts'
import { createWeb } from '../../src/web/web.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createMatchRoute } from '../../src/match/route.ts'
import { type ServedContract, violations } from '../support/openapi.ts'
import { closeAll, jsonOf, serve } from './served.ts'

afterEach(closeAll)

const ALL = {
  PATCHMIRROR_VIEWS_BUCKET: 'true',
  PATCHMIRROR_VIEWS_QUERY: 'true',
  PATCHMIRROR_UPSTREAM_API_ROOT: 'https://service.example',
  PATCHMIRROR_UPSTREAM_API_KEY: 'a-key-of-the-service',
}

test('the answers of an empty mirror have the headers that the API document requires, Retry-After on each 503', async () => {
  const { config } = loadConfig({ env: ALL, cwd: '/' })
  const { get, port, own } = await serve(() => undefined, {
    env: ALL,
    routes: createCatalogRoutes(config),
    match: (settings) => createMatchRoute({ config: settings }),
    people: (settings) => createWeb({ config: settings, version: '9.9.9' }),
  })
  const contract = jsonOf(await get('/-/openapi.json')) as unknown as ServedContract
  const asked = Object.entries(contract.paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((name) => ({ path, method: name.toUpperCase() })),
  )
  const faults: string[] = []
  const unready = new Set<string>()
  for (const { path, method } of [...asked, { path: '/-/ui/record?id=x', method: 'GET' }]) {
    if (path === '/-/events') continue // it does not end
    const body = method === 'POST' ? '{"package":{"name":"x","ecosystem":"npm"},"version":"1"}' : null // prettier-ignore
    const url = `http://127.0.0.1:${port}${path.replaceAll(/\{\w+\}/g, '1')}`
    const answer = await fetch(url, { method, body, headers: own })
    await answer.arrayBuffer()
    const { status, headers } = answer
    if (status === 503) unready.add(path)
    faults.push(...violations(contract, { method, path: url.slice(url.indexOf('/', 8)), status, headers })) // prettier-ignore
  }
  expect(faults).toEqual([])
  for (const path of [
    '/-/ready',
    '/v1/tags/',
    '/osv/v1/query',
    '/-/ui/record?id=x',
    '/external/patch_feed',
  ])
    // prettier-ignore
    expect(unready).toContain(path)
})
