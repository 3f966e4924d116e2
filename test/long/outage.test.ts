import { expect, test } from 'vitest'
import { SOURCES } from '../../src/base/domain/sources.ts'
import { createOrigin } from '../support/origin.ts'
import { bench } from '../sync/catalog/fixtures.ts'

/** All surfaces of the service at one address, with a credential for each. */
function everythingAt(url: string): Record<string, string> {
  return {
    LIMIT_UPSTREAM_RETRIES: '0',
    PATCHMIRROR_UPSTREAM_API_ROOT: url,
    PATCHMIRROR_UPSTREAM_CATALOG_URL: url,
    PATCHMIRROR_IDENTITY_API_URL: `${url}/v1`,
    PATCHMIRROR_CATALOG_PERSONAL_DATA: 'users',
  }
}

test('one outage has one code, whatever source meets it, with and without a snapshot', async () => {
  const made = await bench()
  const down = await createOrigin((_request, response) => response.writeHead(503).end())
  const users = { PATCHMIRROR_CATALOG_PERSONAL_DATA: 'users' }
  const outages = [
    ['upstream_unreachable', everythingAt('http://127.0.0.1:9')],
    ['upstream_status', everythingAt(down.url)],
  ] as const
  for (const held of [false, true]) {
    for (const [code, env] of outages)
      for (const source of SOURCES) {
        const { state, code: found, message } = await made.runWith(env, source)
        expect({ source, held, state, found, message }).toMatchObject({ state: 'failed', found: code })
      }
    if (!held)
      for (const source of SOURCES) expect(await made.runWith(users, source)).toMatchObject({ state: 'complete' })
  }
})
