import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, expect, test } from 'vitest'
import { catalogRoutes } from '../../../src/server/catalog/routes.ts'
import { createKeyFiles } from '../../../src/features/bundles/format/keys.ts'
import { closeAll, jsonOf, serve } from '../served.ts'

afterEach(closeAll)

const folder = mkdtempSync(join(tmpdir(), 'patchmirror-empty-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const trusted = createKeyFiles(join(folder, 'key')).line

test.each([
  ['that has everything from bundles', {}, 'come in a bundle'],
  [
    'that reads a fleet',
    {
      PATCHMIRROR_FLEET_URL: 'file:///nowhere',
      PATCHMIRROR_FLEET_ROLE: 'reader',
      PATCHMIRROR_BUNDLE_TRUSTED_KEYS: trusted,
    },
    'come from the fleet',
  ],
])('a mirror %s answers the catalog with 503 until anything has come', async (_, env, source) => {
  const options = { env, plugins: [catalogRoutes] }
  const ask = async ({ get }: Awaited<ReturnType<typeof serve>>, path = '/v1/tags') => {
    const reply = await get(path)
    return { status: reply.status, ...jsonOf(reply) }
  }
  const none = await serve(() => undefined, options)
  // Whether personal data is mirrored is decided elsewhere too.
  for (const path of ['/v1/users', '/v1/api_keys/'])
    expect(await ask(none, path)).toMatchObject({ status: 503, error: 'not_ready' })
  const empty = await ask(none)
  expect(empty).toMatchObject({ status: 503, error: 'not_ready' })
  expect(empty).toMatchObject({
    message: expect.stringMatching(/mirror that leads .* "patchmirror bundle import FILE" here$/) as string,
  })
  const filled = await ask(await serve((store) => store.publishOsv({ one: '{}' }), options))
  expect(filled).toMatchObject({ status: 404, error: 'not_in_scope' })
  expect(filled).toMatchObject({ message: expect.stringContaining(source) as string })
})
