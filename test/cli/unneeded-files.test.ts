import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { exportCommand } from '../../src/features/bundles/cli/export.ts'
import { showIdentity } from '../../src/features/bundles/cli/identity.ts'
import { listKeysCommand } from '../../src/cli/mirror/keys.ts'
import { digestCommand, needCommand } from '../../src/features/bundles/cli/need.ts'
import { relayStatusCommand } from '../../src/features/relay/cli.ts'
import { runsCommand } from '../../src/cli/mirror/runs.ts'
import { statusCommand } from '../../src/cli/mirror/status/status.ts'
import { syncCommand } from '../../src/cli/mirror/sync.ts'
import { verifyCommand } from '../../src/cli/mirror/verify.ts'
import { FEATURES } from '../../src/features.ts'
import { inboxCommand } from '../../src/cli/webhooks/inbox.ts'
import { loadQuick } from '../support/limits.ts'
import { folder } from '../features/bundles/air-gap.ts'
import { spoken } from '../features/bundles/error-messages.ts'
import { type Bench, createBench } from '../support/mirror.ts'

let bench: Promise<Bench> | null = null
afterAll(async () => (await bench)?.close())

const filled = (): Promise<Bench> =>
  (bench ??= createBench({ sandbox: { records: 5 } }).then(async (made) => {
    for (const source of ['feeds', 'osv'] as const) await made.run(source)
    return made
  }))

/** Every setting that names a file, each naming one that is not there. */
const MISSING = {
  PATCHMIRROR_UPSTREAM_CA_FILE: 'none.pem',
  PATCHMIRROR_UPSTREAM_API_KEY_FILE: 'none.key',
  PATCHMIRROR_IDENTITY_API_KEY_FILE: 'none.key',
  PATCHMIRROR_SERVER_KEYS_FILE: 'none.keys',
  PATCHMIRROR_SERVER_CERT_FILE: 'none.pem',
  PATCHMIRROR_SERVER_KEY_FILE: 'none.pem',
  PATCHMIRROR_WEBHOOKS_LISTEN: '127.0.0.1:8443',
  PATCHMIRROR_WEBHOOKS_CERT_FILE: 'none.pem',
  PATCHMIRROR_WEBHOOKS_KEY_FILE: 'none.pem',
  PATCHMIRROR_WEBHOOKS_SECRETS_FILE: 'none.secrets',
  PATCHMIRROR_RELAY_SECRET_FILE: 'none.secret',
  PATCHMIRROR_BUNDLE_SIGNING_KEYS: 'none.key',
  PATCHMIRROR_BUNDLE_TRUSTED_KEYS: 'none.pub',
}
const WITHOUT = (...used: string[]): Record<string, string> =>
  Object.fromEntries(Object.entries(MISSING).filter(([name]) => !used.some((one) => name.includes(one))))

const VERBS: Record<string, [used: string[], run: () => number | Promise<number>]> = {
  sync: [['CA_FILE'], () => syncCommand(['feeds', 'osv'], {}, FEATURES)],
  'sync osv --reconcile': [['CA_FILE'], () => syncCommand(['osv'], { reconcile: true }, FEATURES)],
  'webhooks inbox': [[], () => inboxCommand(undefined, {})],
  relay: [[], () => relayStatusCommand({})],
  export: [[], () => exportCommand(join(folder(), 'all.zip'), { unsigned: true })],
  need: [[], () => needCommand(join(folder(), 'need'), {})],
  digest: [[], () => digestCommand({})],
  verify: [[], () => verifyCommand({}, FEATURES)],
  status: [[], () => statusCommand({}, FEATURES)],
  runs: [[], () => runsCommand(undefined, { limit: '20' })],
  'keys list': [[], () => listKeysCommand({})],
  identity: [[], () => showIdentity({})],
}

test.each(Object.keys(VERBS))('the command %s does not require the files that it does not use', async (verb) => {
  const { sandbox, dir } = await filled()
  const [used, work] = VERBS[verb] ?? [[], () => 1]
  const base = { PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url, PATCHMIRROR_DATA_DIR: dir }
  const { code, said } = await spoken({ ...base, ...WITHOUT(...used) }, work)
  expect([code, said]).toEqual([0, said])
})

test('a missing file is named by a command that uses it, and by serve and config', async () => {
  const { sandbox, dir } = await filled()
  const base = { PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url, PATCHMIRROR_DATA_DIR: dir }
  const env = { ...base, ...MISSING }
  for (const sources of [[], ['osv', 'catalog']])
    expect((await spoken(env, () => syncCommand(sources, {}, FEATURES))).said).toMatch(
      /upstream\.apiKey .*cannot be read/,
    )
  expect((await spoken(env, () => syncCommand(['osv'], {}, FEATURES))).said).toMatch(
    /upstream\.caFile .*cannot be read/,
  )
  expect((await spoken(env, () => exportCommand(join(folder(), 'x.zip'), {}))).said).toMatch(
    /bundle\.signingKeys .*cannot be read/,
  )
  const all = () => loadQuick({ env, cwd: dir })
  for (const name of [
    'upstream.caFile',
    'server.keys',
    'server.certFile',
    'webhooks.certFile',
    'relay.secret',
    'bundle.trustedKeys',
  ])
    expect(all).toThrow(name)
})
