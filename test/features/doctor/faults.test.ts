import { randomUUID } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, onTestFinished } from 'vitest'
import { doctorWorld } from '../../../src/features/doctor/cli/world.ts'
import { loadQuick } from '../../support/limits.ts'
import type { SourceName } from '../../../src/base/domain/sources.ts'
import { MirrorError } from '../../../src/base/errors.ts'
import { type CheckResult, checksExitCode } from '../../../src/features/doctor/check.ts'
import { examineMirror } from '../../../src/features/doctor/doctor.ts'
import type { DoctorWorld } from '../../../src/features/doctor/world.ts'
import { generationKey } from '../../../src/features/fleet/generations/format/object-names.ts'
import { createKeyFiles } from '../../../src/features/bundles/format/keys.ts'
import { type Sandbox, createSandbox } from '../../sandbox/server.ts'
import { SANDBOX_KEYS } from '../../sandbox/service/credentials.ts'
import { acquireLock, announceAddress, announceInstance } from '../../../src/store/database/lock.ts'
import { databasePath, openInbox, openWriter } from '../../../src/store/database/open.ts'
import { generationDir, replaceCurrentViews, viewsPath } from '../../../src/features/scanners/store/generations.ts'
import { createInbox } from '../../../src/store/webhooks/inbox.ts'
import { openWrites } from '../../../src/store/writes.ts'
import { makeVexRepository } from '../../../src/features/scanners/views/vex/repository.ts'
import { addStep } from '../../store/fixtures.ts'
import { copyFilledFolder } from '../../support/filled-folder.ts'
import { createOrigin } from '../../support/origin.ts'
import { createProxy } from '../../support/proxy.ts'
import { hasOpenssl, makeTls } from '../../support/tls.ts'
import { bothTest, longTest, telling, test } from '../../support/tables.ts'

/** A mirror to examine: its settings by variable, its folder, and what of the doctor's means is replaced. */
interface Mirror {
  env: Record<string, string>
  dir: string
  more: Partial<DoctorWorld>
}

const REVOKED = 'sk_revoked_4f9b1c7d2e'
let sandbox: Sandbox
beforeAll(async () => {
  const small = { images: 2, tags: 3, packages: 2, tickets: 3, subscriptions: 1 }
  const apiKeys = [{ key: SANDBOX_KEYS.admin }, { key: REVOKED }]
  sandbox = await createSandbox({ records: 3, service: { ...small, apiKeys } })
  sandbox.service.revoke(REVOKED)
})
afterAll(() => sandbox.close())

/** Stores a delivery that was taken. */
function keepDelivery({ dir }: Mirror, state: 'dead' | 'done', secret = 'a'): void {
  const db = openInbox(dir)
  const about = { endpoint: 'webhooks', webhookId: 'msg_1', type: 'tag.published', dialect: 'standard', secret }
  const row = { ...about, target: null, state, receivedAt: 1, storedAt: 1, reason: 'never listed' }
  createInbox(db).receive({ ...row, body: Buffer.from('{}') }, 10)
  db.close()
}

async function mirror(): Promise<Mirror> {
  const dir = await copyFilledFolder({ sandbox: { records: 3 } }, ['feeds'])
  storeSnapshots(dir, ['osv', 'catalog'])
  return {
    dir,
    env: {
      PATCHMIRROR_DATA_DIR: dir,
      PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
      PATCHMIRROR_UPSTREAM_API_KEY: SANDBOX_KEYS.admin,
      PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:0',
    },
    more: {},
  }
}

async function examine({ env, dir, more }: Mirror): Promise<CheckResult[]> {
  const load = (needsFile: () => boolean) => loadQuick({ env, cwd: dir, needsFile })
  let settings: Pick<DoctorWorld, 'loaded' | 'problem'>
  try {
    settings = { loaded: load(() => true), problem: null }
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    settings = { loaded: load(() => false), problem: error.message }
  }
  return examineMirror({
    ...doctorWorld({}),
    timeoutMs: 100_000,
    fileSystemType: () => 0xef53,
    probeStorage: () => ({ state: 'ok', reason: null, freeBytes: 1e12 }),
    env,
    ...settings,
    ...more,
  })
}

const withSetting = (name: string, value: string) => (made: Mirror) => {
  made.env[name] = value
}
const fault = (path: string, given: Parameters<Sandbox['faults']['set']>[1]) => () => {
  const set = sandbox.faults.set(path, given)
  onTestFinished(() => set.clear())
}
const upstreamAt = (made: Mirror, url: string): void => {
  made.env['PATCHMIRROR_UPSTREAM_API_ROOT'] = url
  withoutCredential(made)
}
/** A port on which nothing listens. */
const CLOSED = 'http://127.0.0.1:1'
const SECRET = `whsec_${Buffer.from('0123456789abcdefghijklmn').toString('base64')}`

/** A daemon of this folder, as far as the doctor sees it: its lock, its instance, and a server. */
async function daemon({ dir, env }: Mirror, webhookStatus: number): Promise<void> {
  const lock = acquireLock(dir, 'serve')
  const instance = announceInstance(dir)
  const { port } = await createOrigin((request, response) => {
    response
      .writeHead(request.url === '/-/health' ? 200 : webhookStatus, {
        'X-Mirror-Instance': instance,
        ...(request.method === 'OPTIONS' && webhookStatus === 200 && { Allow: 'POST, OPTIONS' }),
      })
      .end()
  })
  announceAddress(dir, instance, { port })
  env['PATCHMIRROR_SERVER_LISTEN'] = `127.0.0.1:${port}`
  onTestFinished(() => lock.release())
}

/** Makes a mirror a reader of a fleet on an empty folder, and returns the folder. */
function joinFleet(made: Mirror): string {
  const store = join(made.dir, 'fleet')
  mkdirSync(store)
  upstreamAt(made, '')
  delete made.env['PATCHMIRROR_UPSTREAM_API_ROOT']
  made.env['PATCHMIRROR_FLEET_URL'] = pathToFileURL(store).href
  made.env['PATCHMIRROR_FLEET_ROLE'] = 'reader'
  made.env['PATCHMIRROR_BUNDLE_TRUSTED_KEYS'] = newKey(made).public
  return store
}

const keepSecret = ({ dir }: Mirror, subscription: string | null, ...more: readonly object[]): void => {
  const secrets = [{ label: 'one', secret: SECRET, subscription }, ...more]
  writeFileSync(join(dir, 'webhook-secrets.json'), JSON.stringify({ secrets }), { mode: 0o600 })
}

function storeSnapshots(dir: string, sources: readonly SourceName[]): void {
  const store = openWrites(dir)
  const stamps = { publishedAt: Date.now(), asOf: Date.now() }
  for (const source of sources)
    store.snapshots.replaceSnapshot({ source, id: 'c1', runId: 1, ...stamps, records: 1, whole: true })
  store.close()
}

/** Takes the credential from a mirror, and what it mirrored by it. */
function withoutCredential({ dir, env }: Mirror): void {
  delete env['PATCHMIRROR_UPSTREAM_API_KEY']
  const db = openWriter(dir)
  db.exec("DELETE FROM snapshot WHERE source = 'catalog'")
  db.close()
}

/** Keeps what a run refused, for somebody to decide. */
function keepRefused(dir: string, runId: number, decision: 'rejected' | null): void {
  const store = openWrites(dir)
  const none = Buffer.alloc(0)
  const dates = { etag: null, lastModified: null, asOf: 1 }
  const refused = {
    source: 'catalog',
    path: 'catalog',
    reason: 'too much',
    sha256: none,
    body: none,
    ...dates,
  } as const
  store.quarantine.keepQuarantine({ ...refused, runId })
  if (decision !== null) store.quarantine.decideQuarantine(runId, decision, 1)
  store.close()
}

type Case = [
  what: string,
  check: string,
  state: 'warn' | 'fail',
  says: string,
  arrange: (made: Mirror) => void | Promise<void>,
]

const CASES: Case[] = [
  [
    'an authority file that is not PEM',
    'settings',
    'fail',
    'upstream.caFile',
    withSetting('PATCHMIRROR_UPSTREAM_CA_FILE', '/dev/null'),
  ],
  [
    'a key file that is missing',
    'settings',
    'fail',
    'no-such.key',
    (made) => {
      delete made.env['PATCHMIRROR_UPSTREAM_API_KEY']
      made.env['PATCHMIRROR_UPSTREAM_API_KEY_FILE'] = join(made.dir, 'no-such.key')
    },
  ],
  [
    'a log file in a folder that is missing',
    'settings',
    'fail',
    'log.file',
    withSetting('PATCHMIRROR_LOG_FILE', '/nowhere/a.log'),
  ],
  [
    'an empty folder and no way to fill it',
    'settings',
    'warn',
    '--config FILE',
    (made) => {
      made.env = { PATCHMIRROR_DATA_DIR: join(made.dir, 'empty'), PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:0' }
    },
  ],
  [
    'a folder that cannot be looked up',
    'folder',
    'fail',
    'ELOOP',
    (made) => {
      symlinkSync('loop', join(made.dir, 'loop'))
      made.env['PATCHMIRROR_DATA_DIR'] = join(made.dir, 'loop')
    },
  ],
  [
    'an old Node.js',
    'node',
    'fail',
    '20.1.0',
    (made) => void (made.more = { node: { version: '20.1.0', oldest: '22.19' } }),
  ],
  [
    'a read-only folder',
    'folder',
    'fail',
    'EROFS',
    (made) => {
      made.more = {
        probeStorage: () => ({ state: 'failing', reason: 'cannot be written to (EROFS)', freeBytes: 1e12 }),
      }
    },
  ],
  [
    'a folder that cannot be made',
    'folder',
    'fail',
    'cannot be made',
    (made) => {
      writeFileSync(join(made.dir, 'file'), '')
      made.env['PATCHMIRROR_DATA_DIR'] = join(made.dir, 'file', 'data')
    },
  ],
  [
    'a folder below a link to nothing',
    'folder',
    'fail',
    'cannot be made',
    (made) => {
      symlinkSync(join(made.dir, 'gone'), join(made.dir, 'link'))
      made.env['PATCHMIRROR_DATA_DIR'] = join(made.dir, 'link', 'data')
    },
  ],
  [
    'a link to nothing in place of the folder',
    'folder',
    'fail',
    'a symbolic link to a place that does not exist',
    (made) => {
      symlinkSync(join(made.dir, 'gone'), join(made.dir, 'link'))
      made.env['PATCHMIRROR_DATA_DIR'] = join(made.dir, 'link')
    },
  ],
  ['a database that others may read', 'folder', 'warn', 'mirror.db', ({ dir }) => chmodSync(databasePath(dir), 0o644)],
  ['a folder on NFS', 'file-system', 'warn', 'NFS', (made) => void (made.more = { fileSystemType: () => 0x6969 })],
  [
    'a folder in memory',
    'file-system',
    'warn',
    'lost',
    (made) => void (made.more = { fileSystemType: () => 0x01021994 }),
  ],
  [
    'a full disk',
    'disk',
    'fail',
    'full',
    (made) => {
      made.more = { probeStorage: () => ({ state: 'full', reason: 'the disk is full', freeBytes: 0 }) }
    },
  ],
  [
    'little free space',
    'disk',
    'warn',
    'free',
    (made) => {
      made.more = { probeStorage: () => ({ state: 'ok', reason: null, freeBytes: 20_000_000 }) }
    },
  ],
  [
    'a damaged database',
    'database',
    'fail',
    'mirror.db',
    ({ dir }) => writeFileSync(databasePath(dir), 'x'.repeat(20_000)),
  ],
  [
    'a damaged inbox',
    'database',
    'fail',
    'webhooks.db',
    ({ dir }) => writeFileSync(join(dir, 'webhooks.db'), 'x'.repeat(20_000), { mode: 0o600 }),
  ],
  ['a database of a newer program', 'schema', 'fail', 'schema 999', ({ dir }) => setVersion(dir, 999)],
  ['a database that is not migrated', 'schema', 'warn', 'not migrated', () => addStep()],
  [
    'a database of a build from before the first release',
    'schema',
    'fail',
    'written by no release',
    ({ dir }) => setVersion(dir, 3),
  ],
  [
    'a lock without a daemon that answers',
    'lock',
    'fail',
    String(process.pid),
    ({ dir }) => {
      const lock = acquireLock(dir, 'serve')
      onTestFinished(() => lock.release())
    },
  ],
  [
    'a daemon that ended',
    'lock',
    'warn',
    'any more: nothing is synced on schedule or served',
    ({ dir }) => {
      const lock = acquireLock(dir, 'serve')
      announceInstance(dir)
      lock.release()
    },
  ],
  [
    'the address in use by another program',
    'lock',
    'warn',
    'another program',
    async (made) => {
      const { port } = await createOrigin((_request, response) => response.end('ok'))
      made.env['PATCHMIRROR_SERVER_LISTEN'] = `127.0.0.1:${port}`
    },
  ],
  [
    'a proxy that is down',
    'proxy',
    'fail',
    'upstream.proxy',
    (made) => {
      upstreamAt(made, 'http://service.test')
      made.env['PATCHMIRROR_UPSTREAM_PROXY'] = CLOSED
    },
  ],
  [
    'a proxy that asks for a password',
    'proxy',
    'fail',
    '407',
    async (made) => {
      upstreamAt(made, 'http://service.test')
      made.env['PATCHMIRROR_UPSTREAM_PROXY'] = (await createProxy({ credentials: 'a:b' })).url
    },
  ],
  [
    'a proxy variable that is no URL',
    'proxy',
    'fail',
    'HTTP_PROXY',
    (made) => {
      upstreamAt(made, 'http://service.test')
      made.env['HTTP_PROXY'] = 'proxy'
    },
  ],
  [
    'a host that the proxy does not reach',
    'tcp',
    'fail',
    'service.test',
    async (made) => {
      upstreamAt(made, 'https://service.test:1')
      made.env['PATCHMIRROR_UPSTREAM_PROXY'] = (await createProxy()).url
    },
  ],
  [
    'a host without an address',
    'dns',
    'fail',
    'nowhere.invalid',
    (made) => upstreamAt(made, 'https://nowhere.invalid'),
  ],
  ['a closed port', 'tcp', 'fail', 'ECONNREFUSED', (made) => upstreamAt(made, CLOSED)],
  [
    'plain http where https is expected',
    'tls',
    'fail',
    'upstream.apiRoot',
    (made) => upstreamAt(made, sandbox.url.replace('http:', 'https:')),
  ],
  ['an HTML page in the middle', 'service', 'fail', 'HTML', fault('/external/osv/all.json', { kind: 'html' })],
  [
    'a service that is down',
    'service',
    'fail',
    '503',
    fault('/external/osv/all.json', { kind: 'status', status: 503 }),
  ],
  [
    'a service that never answers',
    'service',
    'fail',
    '/external/osv/all.json',
    (made) => {
      fault('/external/osv/all.json', { kind: 'stall' })()
      made.env['LIMIT_UPSTREAM_REQUEST_TIMEOUT_MS'] = '100'
    },
  ],
  [
    'a clock that is behind',
    'clock',
    'fail',
    'behind',
    (made) => void (made.more = { now: () => Date.now() - 1_000_000 }),
  ],
  [
    'a clock that is ahead',
    'clock',
    'fail',
    'ahead',
    (made) => void (made.more = { now: () => Date.now() + 1_000_000 }),
  ],
  ['a wrong key', 'credential', 'fail', '401', withSetting('PATCHMIRROR_UPSTREAM_API_KEY', 'sk_wrong_0123456789')],
  [
    'a revoked key',
    'credential',
    'fail',
    'Replace the credential',
    withSetting('PATCHMIRROR_UPSTREAM_API_KEY', REVOKED),
  ],
  [
    'a role that may not read everything',
    'credential',
    'fail',
    '/v1/patches',
    fault('/v1/patches', { kind: 'status', status: 403 }),
  ],
  [
    'an HTML page in place of a private list',
    'credential',
    'fail',
    'an HTML page instead of JSON',
    fault('/v1/me', { kind: 'html' }),
  ],
  [
    'a used up rate limit',
    'rate',
    'fail',
    '429',
    fault('/v1/me', { kind: 'status', status: 429, headers: { 'Retry-After': '900' } }),
  ],
  [
    'a limit for wrong keys',
    'credential',
    'fail',
    'too many wrong keys) Replace the credential',
    fault('/v1/me', {
      kind: 'status',
      status: 429,
      headers: { 'Retry-After': '900', 'X-RateLimit-Limit': '10', 'X-RateLimit-Remaining': '0' },
      body: '{"message":"too many wrong keys"}',
    }),
  ],
  [
    'a limit after a run whose credential was refused',
    'credential',
    'fail',
    'run 2 of the catalog failed: failed Replace the credential',
    ({ dir }) => {
      logRun(dir, {}, 'failed', 2, 'upstream_auth')
      fault('/v1/me', { kind: 'status', status: 429, headers: { 'Retry-After': '900' } })()
    },
  ],
  [
    'little left of the rate limit',
    'rate',
    'warn',
    '2 of 100',
    async (made) => {
      const headers = { 'X-RateLimit-Limit': '100', 'X-RateLimit-Remaining': '2' }
      const origin = await createOrigin((_request, response) => response.writeHead(200, headers).end('[]'))
      upstreamAt(made, origin.url)
    },
  ],
  [
    'a subscription that names nothing',
    'subscriptions',
    'warn',
    '1 of 2',
    ({ dir }) =>
      logRun(dir, {
        subscriptionsUnderstood: '1 of 2',
        subscriptionsNotUnderstood: ['sub-2: it names nothing that is listed'],
      }),
  ],
  [
    'a run that could not fetch everything',
    'sources',
    'warn',
    'such as /v1/tags/1/sbom: name the host in network.trusted; /v1/tags/2/vex: 404',
    ({ dir }) =>
      logRun(dir, {
        lackingIds: [
          '/v1/tags/1/sbom: name the host in network.trusted',
          '/v1/tags/1/vex: name the host in network.trusted',
          '/v1/tags/2/vex: 404',
        ],
      }),
  ],
  [
    'paths that the service refuses',
    'sources',
    'warn',
    'refuses 2 paths to the credential (403): /v1/me, /v1/tags/1/sbom',
    ({ dir }) => {
      const refused = { reason: 'no', status: 403 }
      const store = openWrites(dir)
      store.catalog.replaceMissingPaths(
        () => true,
        [
          { path: '/v1/me', resource: 'account', ...refused },
          { path: '/v1/tags/1/sbom', resource: 'tags', ...refused },
          { path: '/v1/tags/1/vex', resource: 'tags', reason: '503' },
        ],
      )
      store.close()
    },
  ],
  [
    'a mirror in which nothing is',
    'sources',
    'fail',
    ': nothing is mirrored yet A daemon brings it by its schedule',
    ({ dir }) => {
      const db = openWriter(dir)
      db.exec('DELETE FROM snapshot; DELETE FROM run')
      db.close()
    },
  ],
  ['a run that failed', 'sources', 'fail', 'patchmirror sync catalog', ({ dir }) => logRun(dir, {}, 'failed')],
  [
    'a package catalog that wants a credential',
    'sources',
    'fail',
    'wants a credential, and none is sent: set catalog.sendCredential',
    ({ dir }) => {
      logRun(dir, { needsCredential: 1 }, 'failed', 2, 'upstream_auth')
    },
  ],
  [
    'a published change that should not be believed',
    'sources',
    'warn',
    'what changed in them',
    ({ dir }) => logRun(dir, { doubts: '57' }, 'complete', Date.now()),
  ],
  [
    'such a change before a complete run',
    'sources',
    'warn',
    'what changed in them',
    ({ dir }) => {
      logRun(dir, { doubts: '57' }, 'complete', Date.now())
      logRun(dir, {}, 'complete')
    },
  ],
  [
    'a quarantined run',
    'sources',
    'fail',
    'catalog: a change waits for your decision, since 1970-01-01T00:00:00.001Z (too much) Commands: "patchmirror runs 2", "patchmirror approve',
    ({ dir }) => keepRefused(dir, logRun(dir, {}, 'quarantined'), null),
  ],
  [
    'a refused change that a later run met again',
    'sources',
    'fail',
    'Commands: "patchmirror runs 2", "patchmirror approve 2"',
    ({ dir }) => {
      const first = logRun(dir, {}, 'quarantined')
      keepRefused(dir, first, null)
      logRun(dir, { quarantine: first }, 'quarantined')
    },
  ],
  [
    'a rejected change that is still offered',
    'sources',
    'warn',
    'a rejected change is still offered; nothing newer is published until upstream corrects it, or the settings of its scope change To approve it undoes that. Commands: "patchmirror approve',
    ({ dir }) => keepRefused(dir, logRun(dir, {}, 'quarantined'), 'rejected'),
  ],
  [
    'a stored catalog without a credential',
    'sources',
    'fail',
    'PATCHMIRROR_UPSTREAM_API_KEY_FILE',
    (made) => {
      withoutCredential(made)
      storeSnapshots(made.dir, ['catalog'])
    },
  ],
  [
    'data that is older than its setting allows',
    'sources',
    'fail',
    'sync.maxAgeHours',
    ({ dir }) => {
      const db = openWriter(dir)
      db.exec('UPDATE snapshot SET as_of = 1; UPDATE run SET as_of = 1')
      db.close()
    },
  ],
  [
    'data that is dated later than the clock',
    'sources',
    'fail',
    'Set the clock of this machine',
    ({ dir }) => {
      const db = openWriter(dir)
      db.prepare('UPDATE snapshot SET as_of = ?').run(Date.now() + 3_600_000)
      db.close()
    },
  ],
  [
    'a snapshot that was stored by a clock that was ahead',
    'dates',
    'warn',
    'the newest snapshot lies in the future',
    ({ dir }) => {
      const db = openWriter(dir)
      db.prepare('UPDATE change_log SET published_at = ?').run(Date.now() + 3_600_000)
      db.close()
    },
  ],
  [
    'an endpoint that a reverse proxy does not pass on',
    'endpoint',
    'fail',
    '404',
    async (made) => {
      keepSecret(made, null)
      await daemon(made, 404)
      // A subscription of the service's, so that its list is not the fault.
      await subscribe()
    },
  ],
  [
    'a webhook subscription that the service no longer has',
    'webhook',
    'fail',
    'gone-1',
    async (made) => {
      keepSecret(made, 'gone-1')
      await daemon(made, 200)
      await subscribe()
    },
  ],
  [
    'a webhook subscription beside that of the mirror, whose secret never came here',
    'webhook',
    'warn',
    'is stored here, so these deliveries are refused',
    async (made) => {
      keepSecret(made, await subscribe('lost'))
      await subscribe('lost')
      await daemon(made, 200)
    },
  ],
  [
    'a rotation that was killed before it deleted the old subscription',
    'webhook',
    'warn',
    'so each event comes more than once',
    async (made) => {
      keepSecret(made, await subscribe('two'), { label: 'two', secret: SECRET, subscription: await subscribe('two') })
      await daemon(made, 200)
    },
  ],
  [
    'a mirror that received deliveries and lost its secret',
    'webhook',
    'warn',
    'no webhook secret is valid here, so deliveries are refused; one was taken 1970-01-01',
    async (made) => {
      keepDelivery(made, 'done')
      await subscribe()
    },
  ],
  [
    'a mirror whose only secret has expired',
    'webhook',
    'warn',
    'no webhook secret is valid here, so deliveries are refused',
    async (made) => {
      const expired = { label: 'one', secret: SECRET, notAfter: '2020-01-01T00:00:00Z' }
      writeFileSync(join(made.dir, 'webhook-secrets.json'), JSON.stringify({ secrets: [expired] }), { mode: 0o600 })
      keepDelivery(made, 'done')
      await subscribe()
    },
  ],
  [
    'a mirror that lost one of its secrets',
    'webhook',
    'warn',
    'is valid here, so its deliveries are refused; one was taken 1970-01-01',
    async (made) => {
      keepDelivery(made, 'done', await subscribe())
      keepSecret(made, await subscribe())
      await daemon(made, 200)
    },
  ],
  [
    'a file of secrets that is empty',
    'keys',
    'fail',
    'webhook-secrets.json cannot be used (it is not JSON; the daemon cannot start)',
    ({ dir }) => writeFileSync(join(dir, 'webhook-secrets.json'), '', { mode: 0o600 }),
  ],
  [
    'a relay target that is down',
    'relay',
    'warn',
    CLOSED,
    withSetting('PATCHMIRROR_RELAY_TARGETS', `${CLOSED}/hook?token=abc`),
  ],
  [
    'a disabled relay target',
    'relay',
    'warn',
    'relay --enable 7',
    (made) => {
      made.env['PATCHMIRROR_RELAY_TARGETS'] = `${sandbox.url}/hook`
      const db = openInbox(made.dir)
      db.prepare(
        "INSERT INTO relay_target (id, url, state, since, failures, due_at, reason, given_up) VALUES (7, ?, 'disabled', 1, 9, 0, 'answered 410', 0)",
      ).run(`${sandbox.url}/hook`)
      db.close()
    },
  ],
  [
    'a disabled relay target beside another on its host',
    'relay',
    'warn',
    'relay --enable 8',
    (made) => {
      made.env['PATCHMIRROR_RELAY_TARGETS'] = `${sandbox.url}/hook,chat+${sandbox.url}/chat`
      const db = openInbox(made.dir)
      const add = db.prepare(
        "INSERT INTO relay_target (id, url, state, since, failures, due_at, reason, given_up) VALUES (?, ?, ?, 1, 9, 0, 'answered 410', 0)",
      )
      add.run(7, `${sandbox.url}/hook`, 'ok')
      add.run(8, `${sandbox.url}/chat`, 'disabled')
      db.close()
    },
  ],
  [
    'events that were given up',
    'dead-letters',
    'warn',
    '1 delivery was given up',
    async (made) => {
      keepSecret(made, null)
      await subscribe()
      keepDelivery(made, 'dead')
    },
  ],
  ['a fleet without a generation', 'fleet-store', 'warn', 'has no generation', (made) => void joinFleet(made)],
  [
    'a fleet that no mirror leads',
    'fleet-store',
    'warn',
    'the lease of former ended',
    (made) => {
      const former = {
        owner: 'a',
        token: 'b',
        name: 'former',
        epoch: 3,
        seconds: 30,
        expiresAt: '2026-01-01T00:00:00.000Z',
      }
      const lease = join(joinFleet(made), 'lease.json')
      writeFileSync(lease, JSON.stringify(former))
      utimesSync(lease, 0, 0) // its date by the store
    },
  ],
  [
    'a generation that is none',
    'fleet-store',
    'fail',
    'fleet check',
    (made) => {
      const store = joinFleet(made)
      mkdirSync(dirname(join(store, generationKey(1))), { recursive: true })
      writeFileSync(join(store, generationKey(1)), '{}')
    },
  ],
  [
    'an inbox folder that is missing',
    'boxes',
    'fail',
    'does not exist',
    (made) => {
      made.env['PATCHMIRROR_BUNDLE_INBOX'] = `${made.dir}-inbox`
      made.env['PATCHMIRROR_BUNDLE_TRUSTED_KEYS'] = newKey(made).public
    },
  ],
  [
    'a revoked key that signs',
    'keys',
    'fail',
    'revoked',
    (made) => {
      const { id, private: path } = newKey(made)
      made.env['PATCHMIRROR_BUNDLE_SIGNING_KEYS'] = path
      made.env['PATCHMIRROR_BUNDLE_TRUSTED_KEYS'] = `!${id}`
    },
  ],
  [
    'keys that go over plain http',
    'keys',
    'warn',
    'can be read on the network',
    (made) => {
      made.env['PATCHMIRROR_SERVER_LISTEN'] = '0.0.0.0:0'
    },
  ],
  [
    'a key that others may replace',
    'keys',
    'warn',
    'sign.key',
    (made) => {
      const { private: path } = newKey(made)
      chmodSync(path, 0o666)
      made.env['PATCHMIRROR_BUNDLE_SIGNING_KEYS'] = path
    },
  ],
  [
    'damaged views',
    'views',
    'fail',
    'osv',
    ({ dir }) => {
      const name = `osv-${'0'.repeat(32)}`
      const folder = generationDir(dir, name)
      mkdirSync(folder, { recursive: true })
      writeFileSync(viewsPath(folder), 'x'.repeat(5000))
      replaceCurrentViews(dir, 'osv', { name, snapshot: 'a', asOf: 1 })
    },
  ],
  [
    'VEX documents that are damaged and missing',
    'views',
    'warn',
    '1 document is damaged and missing',
    async ({ dir }) => {
      const reads = { listVexDocuments: () => [{ digest: 'ab', size: 1, changed: 1 }], readVexContent: () => null }
      const snapshot = { id: 'c1', asOf: 1 }
      await makeVexRepository({ dataDir: dir, reads, snapshot, pause: () => Promise.resolve() })
    },
  ],
]

/** For each check what it finds first of all. */
const FEW = [
  ...['a key file that is missing', 'an empty folder and no way to fill it', 'an old Node.js'],
  ...['a folder below a link to nothing', 'a link to nothing in place of the folder'],
  ...['a read-only folder', 'a database that others may read', 'a folder on NFS', 'a full disk'],
  ...['little free space', 'a damaged database', 'a database of a newer program'],
  ...['a lock without a daemon that answers', 'a proxy that is down', 'a closed port'],
  ...['a proxy that asks for a password', 'a host without an address', 'a clock that is behind'],
  ...['plain http where https is expected', 'an HTML page in the middle', 'a service that is down'],
  ...['a wrong key', 'a role that may not read everything', 'a used up rate limit', 'a limit for wrong keys'],
  ...['a limit after a run whose credential was refused', 'a package catalog that wants a credential'],
  ...[
    'a run that could not fetch everything',
    'such a change before a complete run',
    'a rejected change that is still offered',
    'a subscription that names nothing',
    'an endpoint that a reverse proxy does not pass on',
  ],
  ...['a webhook subscription that the service no longer has', 'a disabled relay target'],
  'a webhook subscription beside that of the mirror, whose secret never came here',
  ...['a generation that is none', 'an inbox folder that is missing', 'a revoked key that signs'],
  ...['damaged views', 'VEX documents that are damaged and missing'],
]

/** Checks that do not say `ok` or `skipped`, with their states. */
const troubled = (results: readonly CheckResult[]): string[] =>
  results
    .filter(({ state }) => state === 'warn' || state === 'fail')
    .map(({ name, state, found }) => `${name} ${state}: ${found}`)

describe('the doctor', () => {
  longTest('fails no check on a healthy mirror', async () => {
    const results = await examine(await mirror())
    expect(troubled(results)).toEqual([])
    expect(checksExitCode(results)).toBe(0)
    const checked = results.filter(({ state }) => state === 'ok').map(({ name }) => name)
    expect(checked).toEqual(expect.arrayContaining(['settings', 'database', 'service', 'credential', 'clock']))
  })

  test('says what a mirror without a credential does not mirror, and which settings give it one', async () => {
    const made = await mirror()
    withoutCredential(made)
    const results = await examine(made)
    expect(troubled(results)).toEqual([])
    const found = results.find(({ name }) => name === 'credential')
    expect(found?.state).toBe('skipped')
    for (const text of ['only the public feeds', 'SBOMs', 'upstream.apiKey', 'upstream.token', 'oauth.clientId'])
      expect(found?.found).toContain(text)
  })

  test('leaves nothing behind where the data folder is not there yet', async () => {
    const made = await mirror()
    const parent = join(made.dir, 'new')
    made.env['PATCHMIRROR_DATA_DIR'] = join(parent, 'data')
    const found = (await examine(made)).find(({ name }) => name === 'folder')
    expect([found?.state, existsSync(parent)]).toEqual(['ok', false])
  })

  test('names a doubtful change once where the last run published it', async () => {
    const made = await mirror()
    logRun(made.dir, { doubts: '57' }, 'complete', Date.now())
    const found = (await examine(made)).find(({ name }) => name === 'sources')?.found ?? ''
    expect(found.split('changes were published that should not be believed')).toHaveLength(2)
  })

  test('warns of no doubtful change that is acknowledged', async () => {
    const made = await mirror()
    logRun(made.dir, { doubts: '57', decision: 'acknowledged' }, 'complete', Date.now())
    expect(troubled(await examine(made))).toEqual([])
  })

  test('says of no subscription that it is understood after a run that failed', async () => {
    const made = await mirror()
    logRun(made.dir, {}, 'failed')
    const found = (await examine(made)).find(({ name }) => name === 'subscriptions')
    expect([found?.state, found?.found]).toEqual(['skipped', expect.stringContaining('not known')])
  })

  longTest(
    'of a database in which nothing is stored names that nothing can fill it, and that no source is there',
    async () => {
      const made = await mirror()
      openWriter(join(made.dir, 'empty')).close()
      made.env = { PATCHMIRROR_DATA_DIR: join(made.dir, 'empty'), PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:0' }
      expect(troubled(await examine(made))).toEqual([
        expect.stringMatching(/^settings warn: .*this mirror can sync nothing/),
        expect.stringContaining('sources fail: feeds, osv: nothing is mirrored yet'),
      ])
    },
  )

  longTest('names what may keep a daemon from saying which settings it uses, the demo too', async () => {
    const made = await mirror()
    await daemon(made, 200)
    const results = await examine(made)
    const found = results.find(({ name }) => name === 'settings-in-use')?.found
    expect(found).toMatch(/: it is starting, its disk is full, or it is the demo$/)
  })

  bothTest.each(telling(CASES, ...FEW))(
    'names %s by the check %s alone',
    async (_what, check, state, says, arrange) => {
      const made = await mirror()
      await arrange(made)
      const results = await examine(made)
      expect(troubled(results)).toEqual([expect.stringContaining(`${check} ${state}: `)])
      const named = results.find(({ name }) => name === check)
      expect(`${named?.found} ${named?.action}`).toContain(says)
      expect(named?.action).toMatch(/\S/)
      expect(checksExitCode(results)).toBe(state === 'fail' ? 1 : 3)
    },
  )

  const secured = hasOpenssl ? test : test.skip
  secured('names an authority that is not trusted by the check tls alone, with and without a proxy', async () => {
    const tls = makeTls((await mirror()).dir)
    for (const [host, proxy] of [
      ['localhost', ''],
      ['service.test', (await createProxy()).url],
    ] as const) {
      const made = await mirror()
      const { port } = await createOrigin((_request, response) => response.end('[]'), tls)
      upstreamAt(made, `https://${host}:${port}`)
      if (proxy !== '') made.env['PATCHMIRROR_UPSTREAM_PROXY'] = proxy
      const results = await examine(made)
      expect(troubled(results)).toEqual([expect.stringMatching(/^tls fail: .*upstream\.caFile/)])
      made.env['PATCHMIRROR_UPSTREAM_CA_FILE'] = tls.caFile
      expect(troubled(await examine(made))).toEqual([])
    }
  })
})

test('the doctor names the skipped network checks of a target mirror without a service', async () => {
  const made = await mirror()
  delete made.env['PATCHMIRROR_UPSTREAM_API_ROOT']
  withoutCredential(made)
  const results = await examine(made)
  expect(troubled(results)).toEqual([])
  const network = ['proxy', 'dns', 'tcp', 'tls', 'service', 'clock', 'credential', 'rate']
  for (const name of network) expect(results.find((one) => one.name === name)).toMatchObject({ state: 'skipped' })
  expect(results.find(({ name }) => name === 'dns')?.found).toContain('upstream.apiRoot')
})

test('the doctor takes a file of webhook secrets that cannot be read for no evidence that none is valid', async () => {
  const made = await mirror()
  writeFileSync(join(made.dir, 'webhook-secrets.json'), '', { mode: 0o600 })
  keepDelivery(made, 'done')
  await subscribe()
  const results = await examine(made)
  expect(troubled(results)).toEqual([expect.stringMatching(/^keys fail: /)])
  for (const name of ['endpoint', 'webhook'])
    expect(results.find((one) => one.name === name)?.found).toBe(
      'the webhook secrets are not known: their file is not JSON',
    )
})

describe('the doctor, of a subscription whose secret ends in a day', () => {
  const notAfter = new Date(Date.now() + 86_400_000).toISOString()
  const replaced = { label: 'old', secret: SECRET, subscription: 'replaced-1', notAfter }

  test('finds nothing wrong where a rotation has replaced it', async () => {
    const made = await mirror()
    await daemon(made, 200)
    keepSecret(made, await subscribe(), replaced)
    const results = await examine(made)
    expect(troubled(results)).toEqual([])
    expect(results.find(({ name }) => name === 'webhook')?.state).toBe('ok')
  })

  longTest('still names one beside it that the service no longer has, and only that one', async () => {
    const made = await mirror()
    await daemon(made, 200)
    await subscribe()
    keepSecret(made, 'gone-1', replaced)
    const found = (await examine(made)).find(({ name }) => name === 'webhook')
    expect(found).toMatchObject({ state: 'fail', found: 'the service no longer has subscription gone-1' })
  })

  longTest('says how to end what is stored of one that the service no longer has', async () => {
    const made = await mirror()
    await daemon(made, 200)
    keepSecret(made, 'gone-1')
    const none = (await examine(made)).find(({ name }) => name === 'webhook')
    keepSecret(made, await subscribe(), { label: 'two', secret: SECRET, subscription: 'gone-1' })
    const again = (await examine(made)).find(({ name }) => name === 'webhook')
    for (const found of [none, again])
      expect(found).toMatchObject({ state: 'fail', action: expect.stringContaining('webhooks delete ID') as string })
  })
})

test('the doctor names a running daemon and a writing sync, and does not disturb them', async () => {
  const made = await mirror()
  await daemon(made, 200)
  const sync = acquireLock(made.dir, 'sync')
  onTestFinished(() => sync.release())
  const results = await examine(made)
  expect(troubled(results)).toEqual([])
  expect(results.find(({ name }) => name === 'lock')?.found).toMatch(/the daemon \(process \d+\).*is writing/s)
  expect(() => acquireLock(made.dir, 'sync')).toThrow(/is writing to this data folder/)
})

test('every check of the doctor is in the guide, with what it examines', async () => {
  const results = await examine(await mirror())
  const guide = readFileSync('docs/guides/doctor.md', 'utf8')
  expect(results.map(({ name }) => name).filter((name) => !guide.includes(`| \`${name}\` `))).toEqual([])
})

function newKey({ dir }: Mirror): { id: string; private: string; public: string } {
  const path = join(dir, 'sign.key')
  return { id: createKeyFiles(path).id, private: path, public: `${path}.pub` }
}

function setVersion(dir: string, version: number): void {
  const db = openWriter(dir)
  db.pragma(`user_version = ${version}`)
  db.close()
}

function logRun(
  dir: string,
  facts: Record<string, string | number | string[]>,
  state: 'complete' | 'partial' | 'failed' | 'quarantined' = 'partial',
  endedAt = 2,
  code: string | null = null,
): number {
  const store = openWrites(dir)
  const id = store.runs.startRun({
    source: 'catalog',
    kind: 'sync',
    trigger: 'command',
    startedAt: 1,
  })
  const end = { asOf: Date.now(), snapshot: null, code, message: state, state }
  store.runs.endRun(id, { ...end, endedAt, facts })
  store.close()
  return id
}

/** Subscribes the mirror to events at the service, at a path of its own where none is given, and returns the id of the subscription. */
async function subscribe(path: string = randomUUID()): Promise<string> {
  const url = `${sandbox.url}/v3/settings/webhooks`
  const authorization = `Basic ${Buffer.from(`${SANDBOX_KEYS.admin}:`).toString('base64')}`
  const body = { url: `https://mirror.example.com/${path}`, description: '', event_types: [] }
  const headers = { authorization, 'content-type': 'application/json' }
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  const { id } = (await response.json()) as { id: string }
  return id
}
