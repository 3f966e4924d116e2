import { expect, test } from 'vitest'
import { statusError } from '../../../src/upstream/http/errors.ts'
import { createSeeker } from '../../../src/upstream/lists/next-page.ts'

/** A search in a list whose service answers each probe with a status. */
function seekerOf(status: number): ReturnType<typeof createSeeker> {
  const ask = () => Promise.reject(statusError(status, {}, '/v1/tags', Date.now))
  return createSeeker({ path: '/v1/tags', limit: 100, idOf: () => null }, ask)
}

test('a probe that is refused shows that the parameter is not understood', async () => {
  for (const status of [400, 404, 422]) expect(await seekerOf(status).one(), `${status}`).toBeNull()
})

test('a probe that is throttled, or meets a fault, shows nothing of the list', async () => {
  for (const status of [429, 500, 503])
    await expect(seekerOf(status).one()).rejects.toThrow(`upstream answered ${status}`)
})
