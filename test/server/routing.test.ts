import { afterEach, expect, test } from 'vitest'
import { matchRoute } from '../../src/features/match/route.ts'
import { createWeb } from '../../src/features/pages/web.ts'
import { catalogRoutes } from '../../src/server/catalog/routes.ts'
import { deliveryRoutes } from '../../src/server/deliveries.ts'
import { closeAll, jsonOf, serve } from './served.ts'

afterEach(closeAll)

const RECEIVER = {
  paths: ['/-/webhooks'],
  handle: (request: { url?: string | undefined }, response: { end(): unknown }) => {
    if (request.url !== '/-/webhooks') return false
    response.end()
    return true
  },
}

const mirror = () =>
  serve((store) => store.publishOsv({ one: '{}' }), {
    env: { PATCHMIRROR_VIEWS_SERVE: 'bucket,derived,query,vex,findings' },
    plugins: [deliveryRoutes(RECEIVER), matchRoute, catalogRoutes],
    people: (config) => createWeb({ config, version: '1' }),
  })

const OPEN = { authorization: '' }

test.each([
  ['GET', '/%6Fsv/all.zip'],
  ['GET', '/o%73v/npm/x.json'],
  ['HEAD', '/os%76/'],
  ['GET', '/%6f%73%76/%761'],
  ['GET', '/%2D/ui/'],
  ['GET', '/%2D/ui'],
  ['HEAD', '/%2d/ui/packages'],
  ['POST', '/-/webhook%73'],
  ['OPTIONS', '/%2D/webhooks'],
  ['GET', '/-/records/'],
])('%s %s, which its module does not read so, is 404 at once', async (method, path) => {
  const { get } = await mirror()
  expect((await get(path, OPEN, method)).status).toBe(404)
})

test('another spelling of a path has the same answer', async () => {
  const { get } = await mirror()
  for (const [path, other] of [
    ['/external/osv/all.json', '/%65xternal/osv/all.json'],
    ['/-/changes?since=1', '/%2D/changes?since=1'],
    ['/-/records/one', '/%2D/records/%6fne'],
  ] as const) {
    const plain = await get(path, OPEN)
    const spelled = await get(other, OPEN)
    expect([spelled.status, spelled.body]).toEqual([plain.status, plain.body])
  }
})

test('a path that needs a key is refused in the form of its surface in every spelling', async () => {
  const { get, own } = await mirror()
  for (const path of ['/v1/users', '/v1/%75sers', '/%761/users/'])
    expect(jsonOf(await get(path, OPEN))).toMatchObject({ error: 'unauthorized', status_code: 401 })
  for (const path of ['/v1/tags', '/%761/tags/', '/v1/t%61gs']) {
    expect((await get(path, OPEN)).status).toBe(401)
    expect(jsonOf(await get(path, own, 'PUT'))['message']).toContain('at the service itself')
  }
})

test('a parameter that is empty makes no route', async () => {
  const { get } = await mirror()
  for (const path of ['/v1/tags//', '/v1/images//tags', '/packages/ecosystems//packages/c/versions']) {
    expect((await get(path, OPEN, 'POST')).status).toBe(401)
    expect((await get(path)).status).toBe(404)
  }
})
