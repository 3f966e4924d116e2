import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { serveCommand } from '../../../src/cli/mirror/serve.ts'
import { loadQuick } from '../../support/limits.ts'
import { maySync } from '../../../src/base/domain/sources.ts'
import { firstStep } from '../../../src/cli/context.ts'
import { start } from '../../support/command.ts'
import { longTest, test } from '../../support/tables.ts'
import { FEATURES } from '../../../src/features.ts'

/** Environment of a reader with an empty data folder, and no upstream. */
function readerEnv(): Record<string, string> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-reader-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  const { publicKey } = generateKeyPairSync('ed25519')
  writeFileSync(join(dir, 'key.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
  mkdirSync(join(dir, 'store'))
  return {
    PATCHMIRROR_DATA_DIR: join(dir, 'data'),
    PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:0',
    PATCHMIRROR_FLEET_URL: pathToFileURL(join(dir, 'store')).href,
    PATCHMIRROR_FLEET_ROLE: 'reader',
    PATCHMIRROR_BUNDLE_TRUSTED_KEYS: join(dir, 'key.pub'),
  }
}

longTest('a reader of a fleet serves without any upstream', async () => {
  const env = readerEnv()
  const daemon = start(['serve'], env, tmpdir())
  onTestFinished(() => void daemon.child.kill('SIGKILL'))
  await daemon.said(/reader of a fleet: what it publishes is served/)
  daemon.child.kill('SIGTERM')
  const { code, err } = await daemon.finished
  expect([code, err.includes('webhooks.secrets')]).toEqual([0, false]) // a reader needs no events
  const { config } = loadQuick({ env, cwd: tmpdir() })
  expect(firstStep(config)).toMatch(/fetches what the fleet published/)
})

test('a mirror that syncs nothing needs no events: a reader of a fleet, and one without an upstream', () => {
  const upstream = { PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:1' }
  const { PATCHMIRROR_DATA_DIR = '', ...reader } = readerEnv()
  const may = (env: Record<string, string>): boolean =>
    maySync(loadQuick({ env: { PATCHMIRROR_DATA_DIR, ...env }, cwd: tmpdir() }).config)
  expect([may(reader), may({}), may(upstream)]).toEqual([false, false, true])
})

test('a mirror of a fleet that may lead needs an upstream, and --offline allows no bucket', async () => {
  const env = readerEnv()
  const before = { ...process.env }
  onTestFinished(() => {
    for (const name of Object.keys(env)) Reflect.deleteProperty(process.env, name)
    Object.assign(process.env, before)
  })
  Object.assign(process.env, env, { PATCHMIRROR_FLEET_URL: 's3://bucket' })
  await expect(serveCommand({ offline: true }, FEATURES)).rejects.toThrow(/--offline .+names a bucket/)
  Object.assign(process.env, {
    PATCHMIRROR_FLEET_ROLE: 'standby',
    PATCHMIRROR_BUNDLE_SIGNING_KEYS: signingKey(),
  })
  await expect(serveCommand({}, FEATURES)).rejects.toThrow(/upstream\.apiRoot: not set[^]*set fleet\.role: reader/)
})

function signingKey(): string {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-key-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  const file = join(dir, 'key')
  const { privateKey } = generateKeyPairSync('ed25519')
  writeFileSync(file, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  return file
}
