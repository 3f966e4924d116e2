import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type Server, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { SANDBOX_KEYS } from '../../../sandbox/service/credentials.ts'
import type { Fault } from '../../../sandbox/faults/fault.ts'
import { type Sandbox, createSandbox } from '../../../sandbox/server.ts'
import { openInbox } from '../../../../src/store/database/open.ts'
import { openWrites } from '../../../../src/store/writes.ts'
import { createInbox } from '../../../../src/store/webhooks/inbox.ts'
import { acquireLock } from '../../../../src/store/database/lock.ts'
import type { KeptSecret } from '../../../../src/webhooks/receive/secret-file.ts'
import type { Finished } from '../../../support/command.ts'
import { commandHost } from '../../../support/hosted.ts'
import { QUICK } from '../../../support/mirror.ts'
import { createOrigin } from '../../../support/origin.ts'
import { hasOpenssl, makeTls } from '../../../support/tls.ts'
import { START, quarantine, runEnd } from '../../../store/fixtures.ts'
import { NOW, delivery } from '../../../webhooks/inbox/inboxes.ts'
import { keyPair } from '../../../webhooks/signing.ts'
import { bothTest, LONG, longTest, telling, test } from '../../../support/tables.ts'

/** The path of the subscriptions. */
const LIST = '/v3/settings/webhooks'

interface Heard {
  headers: string[]
  body: string
}

const run = commandHost()
let sandbox: Sandbox
let dir: string
let endpoint: Server
let url: string
let status = 202
const heard: Heard[] = []

beforeEach(async () => {
  sandbox = await createSandbox({ records: 0 })
  dir = mkdtempSync(join(tmpdir(), 'patchmirror-hooks-'))
  status = 202
  heard.length = 0
  endpoint = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      heard.push({ headers: request.rawHeaders, body })
      response.writeHead(status).end('heard')
    })
  })
  await new Promise<void>((resolve) => endpoint.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/-/webhooks`
})

afterEach(async () => {
  endpoint.closeAllConnections()
  endpoint.close()
  await sandbox.close()
  rmSync(dir, { recursive: true, force: true })
})

function patchmirror(args: string[], more: Record<string, string> = {}): Promise<Finished> {
  const own = {
    PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
    PATCHMIRROR_UPSTREAM_API_KEY: SANDBOX_KEYS.admin,
    PATCHMIRROR_DATA_DIR: join(dir, 'data'),
  }
  return run(['webhooks', ...args], { ...QUICK, ...own, ...more }, dir)
}

const file = (): string => join(dir, 'data', 'webhook-secrets.json')
const held = (): KeptSecret[] => (JSON.parse(readFileSync(file(), 'utf8')) as { secrets: KeptSecret[] }).secrets
const aTag = (): string => sandbox.service.ids('tags')[0] ?? ''
const one = (text: string): Record<string, unknown> => JSON.parse(text) as Record<string, unknown>

async function register(...more: string[]): Promise<string> {
  const made = await patchmirror(['register', '--url', url, '--json', ...more])
  expect(made.code, made.err).toBe(0)
  return String(one(made.out)['id'])
}

describe('webhooks register', () => {
  longTest('adds the secret to the file that the receiver reads, and sends a test', async () => {
    const first = await register()
    const made = await patchmirror(['register', '--url', url, '--test-tag', aTag()])
    expect(made.code, made.err).toBe(0)
    expect(made.err).toContain('a test event was delivered')
    expect(made.err).toContain(`another subscription of this URL (${first})`)
    expect(held()).toHaveLength(2)
    expect(held()[0]).toMatchObject({ label: first, subscription: first, notAfter: null })
    expect(statSync(file()).mode & 0o777).toBe(0o600)
    for (const { secret } of held()) expect(made.out + made.err).not.toContain(secret)
    const [delivered] = heard
    const capture = join(dir, 'capture.json')
    writeFileSync(capture, JSON.stringify({ rawHeaders: delivered?.headers, body: delivered?.body }))
    const judged = await patchmirror(['check', capture, '--json'])
    expect(judged.code, judged.out).toBe(0)
    expect(one(judged.out)).toMatchObject({ match: { secret: held()[1]?.label } })
    const listed = await patchmirror(['list', '--json'])
    expect(JSON.parse(listed.out)).toMatchObject([{ held: 'yes' }, { held: 'yes' }])
  })

  test('names at most five of the same URL, and nothing that acts on a terminal', async () => {
    const same = url.replace('http:', 'HTTP:')
    const ids = ['a\u001b[2J', null, 'b', 'c', 'd', 'e', 'f']
    const others = [{ id: 'other', url: `${url}/other` }, { id: 'no-url' }, { id: 'bad', url: 'bad' }]
    const body = JSON.stringify([...ids.map((id) => ({ id, url: same })), ...others])
    sandbox.faults.set(LIST, { kind: 'body', body }, { method: 'GET' })
    const many = await patchmirror(['register', url])
    expect(many.err).toContain('7 other subscriptions of this URL (a [2J, b, c, d, e and 2 more), and')
    sandbox.faults.clear()
    const nameless = JSON.stringify([{ id: null, url }])
    sandbox.faults.set(LIST, { kind: 'body', body: nameless }, { method: 'GET' })
    expect((await patchmirror(['register', url])).err).toContain('another subscription of this URL, and')
  })

  longTest('goes on without the list of subscriptions where it takes long', async () => {
    const faults: Fault[] = [
      { kind: 'stall' },
      { kind: 'status', status: 429, headers: { 'Retry-After': '1200' } }, // for all requests of the command
    ]
    for (const fault of faults) {
      const list = sandbox.faults.set(LIST, fault, { method: 'GET' })
      const { code, err } = await patchmirror(['register', url], {
        LIMIT_UPSTREAM_REQUEST_TIMEOUT_MS: '1200000', // longer than this test may take
      })
      expect([code, err]).toEqual([0, expect.stringContaining('the secret is in')])
      expect(list.hits()).toBe(1)
      list.clear()
    }
  })

  test('fails before it asks the service when the file cannot be written', async () => {
    const folder = join(dir, 'no-such-folder', 'secrets.json')
    const { code, err } = await patchmirror(['register', '--url', url], {
      LIMIT_WEBHOOKS_SECRET_FILE: folder,
    })
    expect([code, err]).toEqual([1, expect.stringContaining('Nothing was asked of the service')])
    mkdirSync(join(dir, 'data'), { recursive: true })
    writeFileSync(file(), 'not JSON')
    const broken = await patchmirror(['register', '--url', url])
    expect([broken.code, broken.err]).toEqual([2, expect.stringContaining('is not JSON')])
    expect(readFileSync(file(), 'utf8')).toBe('not JSON')
    expect(sandbox.requests.count()).toBe(0)
  })

  test('fails when the requested test fails, and keeps the secret', async () => {
    status = 500
    const made = await patchmirror(['register', url, '--test-tag', aTag()])
    expect(made.code).toBe(1)
    expect(made.err).toContain('the endpoint answered 500')
    expect(made.err).toMatch(/no daemon serves .*"patchmirror serve"/)
    expect(held()).toHaveLength(1)
    const lock = acquireLock(join(dir, 'data'), 'serve') // as a daemon has it
    const served = await patchmirror(['register', url, '--test-tag', aTag()], {
      PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:8099',
      PATCHMIRROR_SERVER_PUBLIC_URL: 'https://m.test',
    })
    lock.release()
    const step = `check that the URL leads there from the service, then "patchmirror webhooks test ${held()[1]?.label ?? ''}"`
    expect([served.code, served.err]).toEqual([
      1,
      expect.stringMatching(
        /a daemon serves .* takes webhooks on port 8099, which is https:\/\/m\.test\/-\/webhooks: /,
      ),
    ])
    expect(served.err).toContain(step)
    expect(served.err).toContain(
      `"patchmirror webhooks rotate ${held()[1]?.label ?? ''} --url URL" replaces a wrong URL`,
    )
  })

  const HINTS: [code: number, hint: RegExp][] = [
    [404, /No subscription was made: .* Check upstream\.apiRoot/],
    [403, /upstream\.apiKey is not allowed/],
    [500, /Whether the subscription was made is not known: .*webhooks list/],
    [422, /No subscription was made: check the URL/],
    [429, /No subscription was made, .* try again/],
  ]
  bothTest.each(LONG ? HINTS : HINTS.slice(0, 3))(
    'says after a %i whether a subscription may exist and what to do next',
    async (code, hint) => {
      sandbox.faults.set('/v3/settings/webhooks', { kind: 'status', status: code })
      const { err } = await patchmirror(['register', url])
      expect(err).toMatch(hint)
      expect(held()).toEqual([])
    },
  )

  test('prints its usage without an address or with two uses at once', async () => {
    expect((await patchmirror(['register'])).err).toContain('--url https://')
    expect((await patchmirror(['register', 'hooks'])).code).toBe(2)
    const both = await patchmirror(['register', url, '--out', 'x', '--test-tag', 'y'])
    expect([both.code, both.err]).toEqual([2, expect.stringContaining('receiver elsewhere')])
  })

  test('refuses a host alone, and names the path at which this mirror takes deliveries', async () => {
    const host = new URL(url).origin
    const settings = { PATCHMIRROR_WEBHOOKS_ENDPOINTS: 'hooks=/hooks/in' }
    const bare = await patchmirror(['register', host], settings)
    expect([bare.code, bare.err]).toEqual([2, expect.stringContaining(`give ${host}/hooks/in, or ${host}/ where`)])
    expect((await patchmirror(['rotate', 'any', '--url', host], settings)).err).toContain(`give ${host}/hooks/in, or`)
    expect(sandbox.service.ids('webhooks')).toEqual([])
    const meant = await patchmirror(['register', `${host}/`], settings)
    expect(meant.code, meant.err).toBe(0)
  })
})

describe('webhooks delete and rotate', () => {
  longTest('send a test about a mirrored tag, and say where ids come from when there is none', async () => {
    const id = await register()
    const none = await patchmirror(['test', id])
    expect([none.code, none.err]).toEqual([2, expect.stringContaining('/v1/tags/ lists them')])
    expect((await patchmirror(['test', id, 'nope'])).err).toContain('ids of tags are in /v1/tags/')
    const env = {
      PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
      PATCHMIRROR_DATA_DIR: join(dir, 'data'),
      PATCHMIRROR_UPSTREAM_API_KEY: SANDBOX_KEYS.admin,
      PATCHMIRROR_NETWORK_TRUSTED: '127.0.0.0/8,localhost',
    }
    const synced = await run(['sync', 'catalog'], { ...QUICK, ...env }, dir)
    expect(synced.code, synced.out + synced.err).toBe(0)
    const sent = await patchmirror(['test', id])
    expect(sent.code, sent.err).toBe(0)
    expect(heard).toHaveLength(1)
  })

  test('remove a deleted secret from the file, and keep the others', async () => {
    const gone = await register()
    const stays = await register()
    const { code, out } = await patchmirror(['delete', gone])
    expect([code, out]).toEqual([0, expect.stringContaining('its secret is gone from here')])
    expect(held().map(({ label }) => label)).toEqual([stays])
    sandbox.service.remove('webhooks', stays)
    const again = await patchmirror(['delete', stays])
    expect([again.code, again.out]).toEqual([0, expect.stringContaining('gone from the service')])
    expect(held()).toEqual([])
    expect((await patchmirror(['delete', stays])).err).toContain('no webhook subscription')
  })

  test('rotate to a new secret, and delete the old subscription after a successful test', async () => {
    const old = await register()
    const { code, out, err } = await patchmirror(['rotate', old, '--test-tag', aTag()])
    expect(code, err).toBe(0)
    expect(out).toContain(`${old} is deleted; its secret is accepted until`)
    const [before, after] = held()
    expect(before).toMatchObject({ label: old })
    expect(Date.parse(String(before?.notAfter))).toBeGreaterThan(Date.now() + 75 * 3_600_000)
    expect(after?.notAfter).toBeNull()
    expect(heard).toHaveLength(1)
    const listed = JSON.parse((await patchmirror(['list', '--json'])).out) as { id: string }[]
    expect(listed.map(({ id }) => id)).toEqual([after?.subscription])
  })

  test('keep both secrets valid after a rotation until a test succeeds', async () => {
    const old = await register()
    status = 401
    const begun = await patchmirror(['rotate', old, '--test-tag', aTag()])
    expect([begun.code, begun.out]).toEqual([1, expect.stringContaining(`rotate ${old} --finish`)])
    expect(held().map(({ notAfter }) => notAfter)).toEqual([null, null])
    const done = await patchmirror(['rotate', old, '--finish', '--json'])
    expect([done.code, one(done.out)]).toEqual([0, { deleted: [old], secretRemoved: true }])
    expect(held()).toHaveLength(1)
    const last = held()[0]?.label ?? ''
    const alone = await patchmirror(['rotate', last, '--finish'])
    expect([alone.code, alone.err]).toEqual([2, expect.stringContaining('no other secret')])
  })

  test('finish only a rotation that was begun, and one to another URL only when that is named', async () => {
    const old = await register()
    await register('--url', `${url}-other`)
    const early = await patchmirror(['rotate', old, '--finish'])
    expect([early.code, early.err]).toEqual([2, expect.stringContaining('no other subscription')])
    expect(held()).toHaveLength(2)
    status = 401
    const moved = ['--url', `${url}-new`]
    const begun = await patchmirror(['rotate', old, ...moved, '--test-tag', aTag()])
    expect(begun.out).toContain(`rotate ${old} --url ${url}-new --finish`)
    expect((await patchmirror(['rotate', old, '--finish'])).code).toBe(2)
    expect((await patchmirror(['rotate', old, ...moved, '--finish'])).code).toBe(0)
    expect(held()).toHaveLength(2)
  })

  test('do not say that a secret is gone which is stored without its subscription', async () => {
    await patchmirror(['register', '--url', url, '--description', 'one'])
    await patchmirror(['register', '--url', url, '--description', 'two'])
    const [old = ''] = held().flatMap(({ subscription }) => subscription ?? [])
    const path = join(dir, 'data', 'webhook-secrets.json')
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, text.replace(`"subscription": "${old}"`, '"subscription": null'))
    expect(held().map(({ subscription }) => subscription)).toContain(null)
    const finished = await patchmirror(['rotate', old, '--finish'])
    expect([finished.code, finished.out]).toEqual([0, expect.stringContaining('no secret of it was stored here')])
    expect(finished.err).toContain('stays accepted')
    expect(held()).toHaveLength(2)
  })

  test('report a rotation of an unknown subscription', async () => {
    const { code, err } = await patchmirror(['rotate', 'nope'])
    expect([code, err]).toEqual([1, expect.stringContaining('no webhook subscription nope')])
  })
})

describe('a service whose settings API can only register and test', () => {
  let bare: Sandbox
  beforeEach(async () => (bare = await createSandbox({ records: 0, service: { shape: 'link' } })))
  afterEach(() => bare.close())

  test('is used to register, rotate and delete, with manual steps and without printing a secret', async () => {
    const env = { PATCHMIRROR_UPSTREAM_API_ROOT: bare.url }
    const tag = bare.service.ids('tags')[0] ?? ''
    const made = await patchmirror(['register', url, '--json', '--test-tag', tag], env)
    expect(made.code, made.out + made.err).toBe(0)
    const old = held()[0]?.subscription ?? ''
    const unlisted = await patchmirror(['rotate', old], env)
    expect([unlisted.code, unlisted.err]).toEqual([1, expect.stringContaining('give --url')])
    const rotated = await patchmirror(['rotate', old, '--url', url, '--test-tag', tag], env)
    expect(rotated.code, rotated.err).toBe(1)
    const fresh = held()[1]?.subscription ?? ''
    expect(rotated.err).toContain(`Remove ${old} in the platform`)
    expect(rotated.err).toContain(`${fresh} stays in force`)
    expect(held()[0]?.notAfter).not.toBeNull()
    const secrets = held().map(({ secret }) => secret)
    const deleted = await patchmirror(['delete', old, '--json'], env)
    expect([deleted.code, one(deleted.out)]).toMatchObject([
      1,
      { deleted: [], secretRemoved: true, todo: expect.stringContaining(old) as string },
    ])
    expect(deleted.err).toContain(`${fresh} stays in force`)
    expect(held()).toMatchObject([{ subscription: fresh }])
    const shown = [made, rotated, deleted].map(({ out, err }) => out + err).join('')
    for (const secret of secrets) expect(shown).not.toContain(secret)
  })

  test('reports a failed test, and one with an unknown result', async () => {
    const answers = ['{"data":{"status":"failed","error_reason":"x"}}', '{"data":{"id":"1"}}']
    for (const answer of [...answers, '{"delivery":{"deliveryStatus":"delivered"}}']) {
      const there = await createOrigin((_, response) => response.end(answer))
      const env = { PATCHMIRROR_UPSTREAM_API_ROOT: there.url }
      const { code, err } = await patchmirror(['test', 'sub_1', 'tag_1'], env)
      expect([answer, code, err.includes('has no status')]).toEqual([
        answer,
        answers.includes(answer) ? 1 : 0,
        answer === answers[1],
      ])
    }
  })
})

function fill(): void {
  mkdirSync(join(dir, 'data'), { recursive: true })
  const db = openInbox(join(dir, 'data'))
  const inbox = createInbox(db)
  const digest = `sha256:${'a'.repeat(64)}`
  const target = { repository: 'library/python', tag: '3.12', digest, arch: 'amd64', subject: null }
  inbox.receive(delivery({ target }))
  inbox.receive(delivery({ webhookId: 'evt_2', state: 'dead', type: null, reason: 'not JSON' }))
  inbox.receive(delivery({ webhookId: 'evt_3', state: 'ignored', reason: 'another type' }))
  inbox.receive(delivery({ webhookId: 'evt_4', target }))
  inbox.settle([
    { id: 1, state: 'done', refreshedAt: NOW + 3000, visibleAt: NOW + 3500 },
    { id: 4, state: 'dead', refreshedAt: NOW + 3000, attempts: 2, reason: 'never \u001b[2Jlisted' },
  ])
  db.close()
}

describe('webhooks inbox and resolve', () => {
  test('report an empty inbox', async () => {
    expect(await patchmirror(['inbox'])).toMatchObject({
      code: 0,
      out: 'no delivery is stored; they are kept for 30 days\n',
    })
    expect(await patchmirror(['inbox', '--state', 'dead'])).toMatchObject({ code: 0, out: 'no deliveries are dead\n' })
    expect(await patchmirror(['inbox', '--json'])).toMatchObject({ out: '[]\n' })
    expect(await patchmirror(['inbox', '1'])).toMatchObject({ code: 1 })
    expect(await patchmirror(['resolve', '--replay', '--all'])).toMatchObject({
      code: 0,
      out: 'nothing to replay\n',
    })
    expect(existsSync(join(dir, 'data', 'webhooks.db'))).toBe(false)
  })

  test('list the newest first, of one state or all, with control characters escaped', async () => {
    fill()
    const all = await patchmirror(['inbox'])
    expect(all.out).toMatch(/library\/python:3\.12@sha256:a{12}….*4 s/)
    expect(all.out).not.toContain('\u001b')
    const dead = JSON.parse((await patchmirror(['inbox', '--state', 'dead', '--json'])).out) as object[]
    expect(dead).toMatchObject([
      { id: 4, attempts: 2 },
      { id: 2, type: null },
    ])
    expect(JSON.stringify(dead)).not.toContain('"body"')
    expect(await patchmirror(['inbox', '--limit', '1', '--json'])).toSatisfy(
      ({ out }: Finished) => (JSON.parse(out) as object[]).length === 1,
    )
    expect((await patchmirror(['inbox', '--state', 'lost'])).err).toContain('pending, done, ignored, dead')
    const letters = await patchmirror(['inbox', '--state', 'dead'])
    expect(letters.out).toMatch(/- +- +not JSON/)
    expect(letters.out).toContain('resolve --replay ID, or --all')
  })

  test('show times and the digest of the body, and the body itself only on request', async () => {
    fill()
    const shown = await patchmirror(['inbox', '1'])
    expect(shown.out).toMatch(/visibleAfter +3500 ms/)
    expect(shown.out).toMatch(/bodySha256 +[0-9a-f]{64}/)
    expect(shown.out).not.toContain('{"type"')
    expect((await patchmirror(['inbox', '1', '--body'])).out).toBe(delivery().body.toString())
    expect(one((await patchmirror(['inbox', '1', '--json'])).out)).toMatchObject({
      id: 1,
      state: 'done',
    })
    expect((await patchmirror(['inbox', '99'])).err).toContain('there is no delivery 99')
  })

  longTest('say what was decided since about the run that a note names', async () => {
    fill()
    const store = openWrites(join(dir, 'data'))
    const run = store.runs.startRun(START)
    store.runs.endRun(run, runEnd({ state: 'quarantined' }))
    store.quarantine.keepQuarantine(quarantine(run))
    const inbox = openInbox(join(dir, 'data'))
    const reason = `catalog: quarantined: too few; approve or reject run ${run}`
    createInbox(inbox).settle([{ id: 2, state: 'dead', attempts: 1, reason }])
    inbox.close()
    const notes = async (): Promise<string[]> => {
      const asked = ['inbox', 'inbox --state dead', 'inbox 2'].map((text) => patchmirror(text.split(' ')))
      return (await Promise.all(asked)).map(({ out }) => out.replace(/\s+/g, ' '))
    }
    for (const out of await notes()) expect(out).toContain(`approve or reject run ${run}`)
    store.quarantine.decideQuarantine(run, 'rejected', NOW)
    store.close()
    for (const out of await notes()) {
      expect(out).toContain(`too few; rejected since (run ${run})`)
      expect(out).not.toContain('approve or reject')
    }
  })

  test('make rows pending again by replay, one by one or all that failed', async () => {
    fill()
    expect((await patchmirror(['resolve', '--replay', '1'])).out).toContain(
      '1 delivery is pending again: the next "patchmirror serve"',
    )
    expect(JSON.parse((await patchmirror(['resolve', '--replay', '--all', '--json'])).out)).toEqual({
      replayed: 2,
    })
    const pending = JSON.parse((await patchmirror(['inbox', '--state', 'pending', '--json'])).out) as object[]
    expect(pending).toMatchObject([
      { id: 4, attempts: 0, reason: null, refreshedAt: null },
      { id: 2, type: null, reason: null },
      { id: 1, refreshedAt: null }, // when it became visible stays
    ])
    expect((await patchmirror(['inbox', '1'])).out).toMatch(/replays +1/)
    const again = await patchmirror(['resolve', '--replay', '1', '4'])
    expect([again.code, again.out]).toEqual([0, expect.stringContaining('are pending already')])
    const lost = await patchmirror(['resolve', '--replay', '3', '99'])
    expect([lost.code, lost.err]).toEqual([1, expect.stringContaining('no delivery 99')])
    expect((await patchmirror(['inbox', '3', '--json'])).out).toContain('ignored') // all or nothing
    expect((await patchmirror(['resolve', '--replay'])).code).toBe(2)
    expect((await patchmirror(['resolve', '--replay', '1', '--all'])).code).toBe(2)
  })
})

describe('webhooks resolve --dismiss', () => {
  test('removes dead letters from the list, one by one or all, and nothing else', async () => {
    expect((await patchmirror(['resolve', '--dismiss', '1'])).err).toContain('there is no delivery 1')
    expect((await patchmirror(['resolve', '--dismiss', '--all'])).out).toBe('no dead letters\n')
    fill()
    const alive = await patchmirror(['resolve', '--dismiss', '4', '1'])
    expect([alive.code, alive.err]).toEqual([2, expect.stringContaining('1 is no dead letter')])
    expect((await patchmirror(['resolve', '--dismiss', '4', '99'])).err).toContain('there is no delivery 99')
    expect((await patchmirror(['resolve', '--dismiss', '4', '4'])).out).toBe('1 dismissed\n')
    expect(one((await patchmirror(['inbox', '4', '--json'])).out)).toMatchObject({
      state: 'ignored',
      reason: 'dismissed',
    })
    expect((await patchmirror(['inbox', '--state', 'dead'])).out).toContain('resolve --dismiss ID, or --all')
    expect(one((await patchmirror(['resolve', '--dismiss', '--all', '--json'])).out)).toEqual({ dismissed: 1 })
    expect((await patchmirror(['inbox', '--state', 'dead'])).out).toBe('no deliveries are dead\n')
    expect((await patchmirror(['resolve', '--replay', '4'])).out).toContain('1 delivery is pending again')
    expect((await patchmirror(['resolve', '--dismiss'])).code).toBe(2)
    expect((await patchmirror(['resolve', '--dismiss', '1', '--all'])).code).toBe(2)
    expect((await patchmirror(['resolve', '--dismiss', 'x'])).err).toContain('not a number')
  })
})

describe('webhooks test --url and check', () => {
  bothTest.each(telling(['standard', 'vendor', 'whole-base64', 'decoded-hex'], 'standard', 'vendor'))(
    'send signs in the form %s so that the doctor takes it, and shows no secret',
    async (dialect) => {
      await register()
      const tag = `library/python:3.12@sha256:${'b'.repeat(64)}`
      const sent = await patchmirror(['test', '--url', url, '--dialect', dialect, '--tag', tag, '--json'])
      expect(sent.code, sent.err).toBe(0)
      expect(one(sent.out)).toMatchObject({ status: 202, answer: 'heard', dialect })
      const [got] = heard
      expect(JSON.parse(got?.body ?? '')).toMatchObject({
        type: 'io.service.cr.image.created.v1',
        data: { image_repo: 'library/python', image_tag: '3.12' },
      })
      const lines = (got?.headers ?? []).flatMap((name, i, all) =>
        i % 2 === 0 ? [`${name}: ${all[i + 1] ?? ''}`] : [],
      )
      const capture = join(dir, 'capture.txt')
      writeFileSync(capture, ['POST /-/webhooks HTTP/1.1', ...lines, '', got?.body].join('\r\n'))
      const judged = await patchmirror(['check', capture])
      expect(judged.code, judged.out).toBe(0)
      expect(sent.out + sent.err + judged.out).not.toContain(held()[0]?.secret ?? '')
    },
  )

  test('accept with a public key what was signed with the private one', async () => {
    const { whpk, whsk } = keyPair()
    writeFileSync(join(dir, 'private'), `${whsk}\n`)
    writeFileSync(join(dir, 'public'), `${whpk}\n`)
    const sent = await patchmirror(['test', '--url', url, '--secret-file', 'private', '--json'])
    expect([sent.code, one(sent.out)]).toMatchObject([0, { status: 202, dialect: 'ed25519' }])
    writeFileSync(join(dir, 'got.json'), JSON.stringify({ rawHeaders: heard[0]?.headers, body: heard[0]?.body }))
    const judged = await patchmirror(['check', 'got.json', '--secret-file', 'public'])
    expect([judged.code, judged.out]).toEqual([0, expect.stringContaining('ed25519')])
    const wrong = await patchmirror(['test', '--url', url, '--secret-file', 'public'])
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('cannot sign')])
    const other = await patchmirror(['check', 'got.json', '--secret-file', 'private'])
    expect([other.code, other.err]).toEqual([2, expect.stringContaining('private key')])
    const start = await patchmirror(['list'], { PATCHMIRROR_WEBHOOKS_SECRETS: whsk })
    expect([start.code, start.err]).toEqual([2, expect.stringContaining('private key')])
    expect(sent.out + wrong.err + other.err + start.err).not.toContain(whsk.slice(5))
  })

  test('send the same event again under one id, whenever that is', async () => {
    writeFileSync(join(dir, 'secret'), 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n')
    const args = ['test', '--url', url, '--secret-file', 'secret', '--id', 'evt_8']
    for (const clock of ['0', '-60']) await patchmirror([...args, '--clock', clock])
    expect(heard[1]?.body).toBe(heard[0]?.body)
    expect(heard[0]?.body).toContain('evt_8')
    await patchmirror(args.slice(0, -2))
    expect(heard[2]?.body).toContain('"time":')
    status = 405 // as a path of the mirror that is no endpoint
    expect((await patchmirror(args)).out).toContain('takes deliveries at the paths of its webhooks.endpoints')
  })

  test('recognize a wrong clock, with a secret from a file', async () => {
    const secrets = join(dir, 'secret')
    writeFileSync(secrets, 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n')
    status = 401
    const args = ['--url', url, '--secret-file', secrets, '--clock', '-400', '--id', 'evt_7']
    const sent = await patchmirror(['test', ...args])
    expect([sent.code, sent.out]).toEqual([1, expect.stringMatching(/status +401/)])
    const capture = join(dir, 'capture.json')
    writeFileSync(capture, JSON.stringify({ headers: pairs(heard[0]?.headers ?? []), body: heard[0]?.body }))
    const judged = await patchmirror(['check', capture, '--secret-file', secrets])
    expect([judged.code, judged.out]).toEqual([1, expect.stringContaining('s old, 300 s are allowed')])
    const then = new Date(Date.now() - 400_000).toISOString()
    expect((await patchmirror(['check', capture, '--secret-file', secrets, '--at', then])).code).toBe(0)
  })

  test.skipIf(!hasOpenssl)(
    'trust the authority of upstream.caFile, and name the setting when it is missing',
    async () => {
      const folder = join(dir, 'tls')
      mkdirSync(folder)
      const tls = makeTls(folder)
      const there = await createOrigin((_, response) => response.writeHead(202).end(), tls)
      const secrets = join(dir, 'secret')
      writeFileSync(secrets, 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n')
      const args = ['test', '--url', `${there.url}/-/webhooks`, '--secret-file', secrets]
      const refused = await patchmirror(args)
      expect([refused.code, there.requests.length]).toEqual([1, 0])
      expect(refused.err).toMatch(/localhost.+certificate is not trusted.+upstream\.caFile/)
      const sent = await patchmirror(args, { PATCHMIRROR_UPSTREAM_CA_FILE: tls.caFile })
      expect([sent.code, sent.err]).toEqual([0, ''])
    },
  )

  test('refuse contradicting arguments with their usage', async () => {
    const bad: [string[], string][] = [
      [['test'], 'name a subscription ("patchmirror webhooks list" shows them), or an endpoint with --url'],
      [['inbox', '--body'], '--body is of one delivery: give its id'],
      [['resolve', '1'], 'one of these is needed: --replay, --dismiss'],
      [['test', '--url', ''], "--url <url>' is empty"],
      [['test', '--url', 'ftp://x'], '--url takes'],
      [['test', '--url', url], 'has no webhook secret'],
      [['test', '--url', url, '--dialect', 'hex'], 'standard, vendor'],
      [['test', '--url', url, '--secret-file', 'no-such'], 'there is no such file'],
      [['check', 'no-such'], 'there is no such file'],
    ]
    for (const [args, message] of bad) {
      const { code, err } = await patchmirror(args)
      expect([code, err]).toEqual([2, expect.stringContaining(message)])
    }
    writeFileSync(join(dir, 'weak'), 'whsec_\n')
    const weak = await patchmirror(['test', '--url', url, '--secret-file', 'weak'])
    expect([weak.code, weak.err]).toEqual([2, expect.stringContaining('line 1')])
  })
})

function pairs(raw: readonly string[]): string[][] {
  return raw.flatMap((name, i) => (i % 2 === 0 ? [[name, raw[i + 1] ?? '']] : []))
}
