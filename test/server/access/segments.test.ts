import { describe, expect, test } from 'vitest'
import { createSegmentJoiner } from '../../../src/server/access/segments.ts'
import { errorForm, isPrivate, surfaceOf } from '../../../src/server/access/surface.ts'

function joiner(...paths: string[]) {
  const made = createSegmentJoiner()
  for (const path of paths) made.add(path)
  return made
}

describe('a name of several segments', () => {
  const { join } = joiner(
    '/v1/images/{imageRepo+}/tags',
    '/packages/ecosystems/{ecosystem}/packages/{name+}/versions',
    '/packages/ecosystems/{ecosystem}/packages/{name+}/versions/{version}/provenance/{arch}',
  )

  test.each([
    ['/v1/images/lib/a/b/tags/', '/v1/images/lib%2Fa%2Fb/tags/'],
    ['/v1/images/lib/a/tags?limit=1&x=/a/', '/v1/images/lib%2Fa/tags?limit=1&x=/a/'],
    ['/v1/images/a%2Fb/c/t%61gs', '/v1/images/a%2Fb%2Fc/t%61gs'],
    ['/packages/ecosystems/npm/packages/@s/n/versions', '/packages/ecosystems/npm/packages/@s%2Fn/versions'],
    [
      '/packages/ecosystems/npm/packages/@s/n/versions/1.0.0+x/provenance/amd64',
      '/packages/ecosystems/npm/packages/@s%2Fn/versions/1.0.0+x/provenance/amd64',
    ],
    [
      '/packages/ecosystems/npm/packages/a/b/versions/c/versions/1/provenance/x',
      '/packages/ecosystems/npm/packages/a%2Fb%2Fversions%2Fc/versions/1/provenance/x',
    ],
  ])('is one in %s', (target, joined) => {
    expect(join(target)).toBe(joined)
  })

  test.each([
    '/v1/images/python/tags',
    '/v1/images/lib%2Fa/tags',
    '/v1/images/tags/tags',
    '/v1/images/tags/t-1/sbom',
    '/v1/images//tags',
    '/v1/images/a//tags',
    '/v1/images/lib/python',
    '/v1/images/a/b/tags//',
    '/v1/images/a/b/tags%zz',
    '/packages/ecosystems/npm/packages/a/versions/1/provenance/versions',
    '/',
    '',
  ])('is not made of %s', (target) => {
    expect(join(target)).toBe(target)
  })

  test('cannot stand twice in a path', () => {
    expect(() => joiner('/v1/{a+}/x/{b+}')).toThrow(/not one parameter/)
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
