import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { fleetCheckCommand } from '../../../src/features/fleet/cli/check.ts'
import { spoken } from '../../features/bundles/error-messages.ts'
import { startS3Server } from '../../support/fleet/s3-server.ts'
import { longTest, test } from '../../support/tables.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'patchmirror-check-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

function signingKey(): Record<string, string> {
  const { privateKey } = generateKeyPairSync('ed25519')
  const file = join(folder(), 'key')
  writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  return { PATCHMIRROR_BUNDLE_SIGNING_KEYS: file }
}

const check = (env: Record<string, string>, json = false) => spoken(env, () => fleetCheckCommand({ json }))

test('fleet check shows each property of a folder, exits with 0 and leaves no object', async () => {
  const path = folder()
  const env = { ...signingKey(), PATCHMIRROR_FLEET_URL: pathToFileURL(path).href }
  const { code, said } = await check(env)
  expect(code).toBe(0)
  const rows = said.trim().split('\n')
  expect(rows[0]).toMatch(/^check +found +result$/)
  expect(rows[1]).toMatch(/^put if absent +1 of 32 won, in 4 rounds of 32 at once +ok$/)
  expect(rows.at(-1)).toMatch(/^lease +free +ok$/)
  expect(readdirSync(join(path, 'probe'))).toEqual([])
})

longTest('fleet check exits with 2 where the store checks before it writes, and says what to do', async () => {
  const server = await startS3Server({ checksThenActs: true })
  onTestFinished(() => server.close())
  const env = {
    ...signingKey(),
    PATCHMIRROR_FLEET_URL: 's3://bucket/fleet',
    PATCHMIRROR_FLEET_ENDPOINT: server.endpoint,
    AWS_ACCESS_KEY_ID: 'AKIATEST',
    AWS_SECRET_ACCESS_KEY: 'secret',
  }
  const { code, said } = await check(env, true)
  expect(code).toBe(2)
  const [json = '', warning] = said.split('patchmirror: warning: ')
  expect(JSON.parse(json)).toMatchObject({ usable: false, store: true, lease: false })
  expect(warning).toMatch(/cannot decide which mirror leads: put if absent.+fleet\.role: sole-writer/)
  const sole = { PATCHMIRROR_FLEET_ROLE: 'sole-writer' }
  const promised = await check({ ...env, ...sole })
  expect(promised.code).toBe(0)
  expect(promised.said).toMatch(/no lease is taken from this store/)
})
