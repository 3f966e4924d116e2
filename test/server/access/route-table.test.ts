import { describe, expect, test } from 'vitest'
import { type PrivateRoute, createRouteTable } from '../../../src/server/access/route-table.ts'
import { errorForm, isPrivate, surfaceOf } from '../../../src/server/access/surface.ts'

function table(...paths: string[]) {
  return createRouteTable(paths.map((path): PrivateRoute => ({ path, answer: () => undefined })))
}

describe('a route', () => {
  const { match } = table(
    '/v1/me',
    '/v1/orgs/',
    '/v1/images/{imageID}',
    '/v1/images/{imageRepo+}/tags',
    '/v1/images/tags/{tagID}/sbom',
    '/v1/tags/{tagID}',
    '/v1/tags/{tagID}/sbom',
    '/packages/ecosystems/{ecosystem}/packages/{name}/versions/{version}/provenance/{arch}',
  )

  test.each([
    ['/v1/me', '/v1/me', {}],
    ['/v1/me/', '/v1/me', {}],
    ['/v1/orgs', '/v1/orgs/', {}],
    ['/v1/orgs/', '/v1/orgs/', {}],
    ['/v1/%6de', '/v1/me', {}],
    ['/v1/images/i-1/', '/v1/images/{imageID}', { imageID: 'i-1' }],
    ['/v1/images/a%2Fb', '/v1/images/{imageID}', { imageID: 'a/b' }],
    ['/v1/images/python/tags', '/v1/images/{imageRepo+}/tags', { imageRepo: 'python' }],
    ['/v1/images/lib/a/b/tags/', '/v1/images/{imageRepo+}/tags', { imageRepo: 'lib/a/b' }],
    ['/v1/images/lib%2Fa/tags', '/v1/images/{imageRepo+}/tags', { imageRepo: 'lib/a' }],
    ['/v1/images/tags/tags', '/v1/images/{imageRepo+}/tags', { imageRepo: 'tags' }],
    ['/v1/images/tags/t-1/sbom', '/v1/images/tags/{tagID}/sbom', { tagID: 't-1' }],
    ['/v1/tags/%E2%82%AC%25', '/v1/tags/{tagID}', { tagID: '€%' }],
    ['/v1/tags/__proto__', '/v1/tags/{tagID}', { tagID: '__proto__' }],
    [
      '/packages/ecosystems/npm/packages/@scope%2Fname/versions/1.0.0+x/provenance/amd64',
      '/packages/ecosystems/{ecosystem}/packages/{name}/versions/{version}/provenance/{arch}',
      { ecosystem: 'npm', name: '@scope/name', version: '1.0.0+x', arch: 'amd64' },
    ],
  ])('is found for %s', (path, declared, params) => {
    const found = match(path)
    expect(found?.route.path).toBe(declared)
    expect(found?.params).toEqual(params)
  })

  test.each([
    '/v1',
    '/v1/',
    '/v1/ME',
    '/v1//me',
    '/v1/me//',
    '/v1/tags/',
    '/v1/tags//sbom',
    '/v1/images//tags',
    '/v1/images/a//tags',
    '/v1/tags/t/sbom/x',
    '/v1/images/lib/python',
    '/',
    '',
  ])('is not found for %s', (path) => {
    expect(match(path)?.route.path).toBeUndefined()
  })

  test('is not found for a path that cannot be decoded', () => {
    expect(() => match('/v1/tags/%zz')).toThrow(/percent-encoded/)
  })

  test('that is declared twice or is malformed throws when the table is made', () => {
    expect(() => table('/v1/tags/{a}', '/v1/tags/{b}/')).toThrow(/same path/)
    expect(() => table('/v1/{a+}/x/{b+}')).toThrow(/several segments/)
  })
})

test.each([
  ['/external/osv/all.json', 'public', false, 'message'],
  ['/v1/me', 'remediation', true, 'message'],
  ['/v1', 'remediation', true, 'message'],
  ['/v1/users', 'identity', true, 'identity'],
  ['/v1/users/', 'identity', true, 'identity'],
  ['/v1/users/u-1/roles', 'identity', true, 'identity'],
  ['/v1/users2', 'remediation', true, 'message'],
  ['/oauth/token', 'identity', true, 'identity'],
  ['/v1/roles', 'identity', true, 'identity'],
  ['/v1/permissions/7', 'identity', true, 'identity'],
  ['/v2-beta/anything', 'identity', true, 'identity'],
  ['/v0', 'identity', true, 'identity'],
  ['/v3/settings/webhooks', 'settings', true, 'message'],
  ['/packages/ecosystems/npm/packages/a/versions', 'catalog', true, 'message'],
  ['/packages', null, false, 'message'],
  ['/v10/me', null, false, 'message'],
  ['/-/health', null, false, 'message'],
])('the path %s belongs to the surface %s', (path, name, hidden, form) => {
  const surface = surfaceOf(path)
  expect(surface).toBe(name)
  expect([isPrivate(surface), errorForm(surface)]).toEqual([hidden, form])
})
