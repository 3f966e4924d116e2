import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { longTest, test } from '../support/tables.ts'
import { verbsOf } from '../../src/cli/verbs.ts'
import { isGroup } from '../../src/cli/verbs/verb.ts'
import { FEATURES } from '../../src/features.ts'
import { openInbox } from '../../src/store/database/open.ts'
import { SANDBOX_KEYS } from '../sandbox/service/credentials.ts'
import { commandHost } from '../support/hosted.ts'
import { openFilledStore } from '../support/filled-store.ts'
import { createBench } from '../support/mirror.ts'

const run = commandHost()
const SERVICE = { images: 1, tags: 1, packages: 0, tickets: 1, avrs: 0, subscriptions: 0 }

const dir = mkdtempSync(join(tmpdir(), 'patchmirror-codes-'))
const full = join(dir, 'full')
const SBOM = join(dir, 'sbom.json')

beforeAll(async () => {
  const bench = await createBench({
    dir: full,
    sandbox: { records: 1, service: SERVICE },
    env: {
      PATCHMIRROR_UPSTREAM_API_KEY: SANDBOX_KEYS.readonly,
      PATCHMIRROR_NETWORK_TRUSTED: '127.0.0.0/8,localhost',
      PATCHMIRROR_CATALOG_SCOPE: 'all',
    },
  })
  await bench.run('catalog')
  await bench.close()
  const store = openFilledStore(full)
  store.publishOsv({ 'GHSA-1': '{"id":"GHSA-1","modified":"2026-06-01T00:00:00Z"}' })
  store.close()
  openInbox(full).close()
  writeFileSync(SBOM, '{"bomFormat":"CycloneDX","specVersion":"1.6"}')
})
afterAll(() => rmSync(dir, { recursive: true, force: true }))

/** What a command is asked: for something that is not there (exit code 1), and in a folder where nothing is known yet (3). */
interface Asked {
  readonly absent?: readonly string[]
  readonly unknown?: readonly string[]
}

/** A service that nothing here connects to: some commands refuse to start without one. */
const SERVICE_URL = { PATCHMIRROR_UPSTREAM_API_ROOT: 'https://service.example' }

/** Of a command that finds nothing in the data folder: it works on settings or files, makes something, or asks the service. */
const FINDS_NOTHING: Asked = {}

const COMMANDS: Readonly<Record<string, Asked>> = {
  serve: FINDS_NOTHING,
  sync: FINDS_NOTHING,
  status: { unknown: [] },
  runs: { absent: ['999'], unknown: [] },
  approve: { absent: ['999'] },
  reject: { absent: ['999'] },
  doctor: { unknown: ['--data'] },
  config: FINDS_NOTHING,
  'export-db': { unknown: ['osv-scanner', join(dir, 'exported')] },
  search: { absent: ['none'], unknown: ['none'] },
  show: { absent: ['none'], unknown: ['none'] },
  'list tags': { absent: ['no/such/image'], unknown: [] },
  'list patches': { unknown: [] },
  'list findings': { unknown: [] },
  'list records': { unknown: [] },
  match: { absent: ['no/such/image:1'], unknown: [SBOM] },
  vex: { absent: ['no/such/image:1'], unknown: ['library/python:3'] },
  changes: { absent: ['--tag', 'no/such/image:1'], unknown: [] },
  images: { unknown: [] },
  'keys create': FINDS_NOTHING,
  'keys list': FINDS_NOTHING,
  'keys revoke': { absent: ['none'] },
  backup: { unknown: [join(dir, 'backup')] },
  restore: FINDS_NOTHING,
  relay: { absent: ['--enable', '9'] },
  'bundle export': { unknown: [join(dir, 'bundle'), '--unsigned'] },
  'bundle import': FINDS_NOTHING,
  'bundle inspect': { unknown: [] },
  'bundle need': { unknown: [join(dir, 'need')] },
  'bundle keygen': FINDS_NOTHING,
  'fleet check': FINDS_NOTHING,
  'fleet status': FINDS_NOTHING,
  'fleet rollback': FINDS_NOTHING,
  whoami: FINDS_NOTHING,
  users: FINDS_NOTHING,
  'api-keys create': FINDS_NOTHING,
  'api-keys list': FINDS_NOTHING,
  'api-keys delete': FINDS_NOTHING,
  'subscriptions add': FINDS_NOTHING,
  'subscriptions list': FINDS_NOTHING,
  'subscriptions remove': FINDS_NOTHING,
  'webhooks register': FINDS_NOTHING,
  'webhooks list': FINDS_NOTHING,
  'webhooks test': FINDS_NOTHING,
  'webhooks rotate': FINDS_NOTHING,
  'webhooks delete': FINDS_NOTHING,
  'webhooks inbox': { absent: ['99'] },
  'webhooks resolve': { absent: ['99', '--dismiss'] },
  'webhooks check': FINDS_NOTHING,
  completion: FINDS_NOTHING,
}

const leaves = verbsOf(FEATURES).filter((verb) => !isGroup(verb))

test('every command is in the table of exit codes', () => {
  expect(Object.keys(COMMANDS).toSorted()).toEqual(leaves.map(({ path }) => path).toSorted())
})

longTest('an option that a command does not have is exit code 2 everywhere, in one voice', async () => {
  for (const { path } of leaves) {
    const { code, out, err } = await run([...path.split(' '), '--no-such-option'], { PATCHMIRROR_DATA_DIR: full }, dir)
    expect([path, code, out]).toEqual([path, 2, ''])
    expect(err).toMatch(new RegExp(`^patchmirror: unknown option '--no-such-option'\n.*patchmirror ${path}\\b`))
  }
})

const asked = (what: keyof Asked): [path: string, args: readonly string[]][] =>
  Object.entries(COMMANDS).flatMap(([path, { [what]: args }]) => (args === undefined ? [] : [[path, args]]))

test.each(asked('absent'))('"%s" of what the mirror does not have is exit code 1', async (path, args) => {
  const { code, err } = await run([...path.split(' '), ...args], { PATCHMIRROR_DATA_DIR: full, ...SERVICE_URL }, dir)
  expect([code, err]).toEqual([1, expect.stringMatching(/^patchmirror: /)])
})

test.each(asked('unknown'))('"%s" where nothing is mirrored yet is exit code 3', async (path, args) => {
  const empty = join(dir, `empty-${path.replaceAll(' ', '-')}`)
  const { code, err } = await run([...path.split(' '), ...args], { PATCHMIRROR_DATA_DIR: empty }, dir)
  expect([code, err]).toEqual([3, expect.stringMatching(/^patchmirror: /)])
})
