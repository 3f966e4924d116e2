import { expect, test } from 'vitest'
import { plainBench } from '../../support/catalog/plain-service.ts'

test('users are mirrored and served at the version that the base of the identity surface names', async () => {
  const users = { data: [{ id: 'u-1' }], cursor: { after: null } }
  const made = await plainBench(
    {
      '/v2-beta/users': () => ({ body: users }),
      '/v0/users': () => ({ body: { data: [{ id: 'u-0' }] } }),
    },
    (origin) => ({
      PATCHMIRROR_IDENTITY_API_URL: `${origin}/v2-beta`,
      PATCHMIRROR_IDENTITY_API_KEY: 'key-of-the-identity-surface',
      PATCHMIRROR_CATALOG_PERSONAL_DATA: 'users',
    }),
  )
  expect((await made.ask('/v2-beta/users')).status).toBe(503)
  expect(await made.run('identity')).toMatchObject({ state: 'complete', code: null })
  expect(await (await made.ask('/v2-beta/users')).json()).toEqual(users)
  for (const other of ['/v1/users', '/v0/users']) {
    const answer = await made.ask(other)
    expect([other, answer.status]).toEqual([other, 404])
    expect(await answer.json()).toMatchObject({
      status_code: 404,
      error_description: expect.stringContaining('/v2-beta/users') as string,
    })
  }
  for (const [path, status, error] of [
    ['/v2-beta/users?limit=x', 400, 'invalid_request'],
    ['/v2-beta/roles', 404, 'not_found'],
    ['/v0/no/such', 404, 'not_found'],
  ] as const) {
    const answer = await made.ask(path)
    const body = (await answer.json()) as object
    expect(Object.keys(body)).toEqual(['error', 'error_description', 'status_code'])
    expect([path, answer.status, body]).toMatchObject([path, status, { error, status_code: status }])
  }
  expect(made.asked('/v1/users')).toEqual([])
})
