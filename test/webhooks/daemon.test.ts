import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { request as tlsRequest } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { describe, expect, onTestFinished } from 'vitest'
import { openInbox } from '../../src/store/database/open.ts'
import { createInbox } from '../../src/store/webhooks/inbox.ts'
import { replaceSecretFile } from '../../src/webhooks/receive/secret-file.ts'
import { createSandbox } from '../sandbox/server.ts'
import { openFilledStore } from '../support/filled-store.ts'
import { commandHost } from '../support/hosted.ts'
import { seconds, startDaemon } from './daemons.ts'
import { delivery, scratch } from './inbox/inboxes.ts'
import { type Reply, deliveryOf, send } from './receive/receivers.ts'
import { type Signing, EVENT, RAW_SECRET, SECRET, signed } from './signing.ts'
import { TEST_KEY, localKey } from '../support/keys.ts'
import { longTest, test } from '../support/tables.ts'

const deliver = (port: number, signing: Signing = {}, path = '/-/webhooks'): Promise<Reply> =>
  send(port, { ...deliveryOf({ timestamp: seconds(), ...signing }), path })

async function get(port: number, path: string): Promise<string> {
  return (await send(port, { path, method: 'GET' })).body
}

/** Sends a delivery whose body is complete only once the daemon closes; returns the answer. */
async function answerWhileClosing(port: number, close: () => Promise<void>): Promise<string> {
  const body = JSON.stringify(EVENT)
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const head = Object.entries(signed({ id: 'evt_2', timestamp: seconds() })).map(([name, value]) => `${name}: ${value}`)
  socket.write(
    `POST /-/webhooks HTTP/1.1\r\nHost: x\r\n${head.join('\r\n')}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body.slice(0, 9)}`,
  )
  await expect.poll(() => socket.bytesWritten).toBeGreaterThan(100)
  await get(port, '/-/health') // the server has seen what came before
  const closed = close()
  socket.write(body.slice(9))
  await once(socket, 'close')
  await closed
  return text
}

const run = commandHost()

interface StatusPage {
  webhooks: Record<string, unknown>
}

describe('a daemon that receives webhooks', () => {
  longTest('receives on the main listener, and reports that at start, in status and in metrics', async () => {
    const { port, dir, lines } = await startDaemon()
    expect(lines.join('')).toContain(`webhooks are received at http://127.0.0.1:${port}/-/webhooks`)
    const { webhooks: before } = JSON.parse(await get(port, '/-/status')) as StatusPage
    expect(before).toMatchObject({ lastReceivedAt: null })
    expect((await deliver(port)).status).toBe(202)
    expect((await deliver(port)).status).toBe(200)
    expect((await deliver(port, { id: 'evt.2' })).status).toBe(401)
    const { webhooks } = JSON.parse(await get(port, '/-/status')) as StatusPage
    expect(webhooks).toMatchObject({
      state: 'on',
      endpoints: [{ name: 'default', path: '/-/webhooks' }],
      secrets: 1,
      counts: { pending: 1, dead: 0, done: 0, ignored: 0 },
      lastReceivedAt: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      lastRefusedAt: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      lastRefusedReason: 'header_id',
    })
    const metrics = await get(port, '/-/metrics')
    expect(metrics).toContain('patchmirror_webhook_requests_total{outcome="new",reason=""} 1')
    expect(metrics).toContain('{outcome="unauthorized",reason="header_id"} 1')
    expect(metrics).toContain('patchmirror_webhook_inbox_rows{state="pending"} 1')
    expect(metrics).toContain('patchmirror_source_state{source="osv",state="never"} 1')
    expect(metrics).toContain('patchmirror_source_records{source="osv"} 0')
    expect(await get(port, '/')).toContain('/-/metrics')
    const env = { PATCHMIRROR_DATA_DIR: dir, PATCHMIRROR_SERVER_LISTEN: `127.0.0.1:${port}` }
    expect((await run(['status'], env, dir)).out).toMatch(
      /webhooks: 1 secret, 1 pending, 0 dead, 0 done, 0 ignored, last received 20/,
    )
  })

  longTest('warns of a secret that gives no signature, until a delivery is accepted', async () => {
    const { port, dir } = await startDaemon()
    const env = { PATCHMIRROR_DATA_DIR: dir, PATCHMIRROR_SERVER_LISTEN: `127.0.0.1:${port}` }
    const statusNow = async () => (await run(['status'], env, dir)).out
    const words = 'WARNING: Webhooks: the newest delivery was refused for its signature'
    expect((await deliver(port)).status).toBe(202)
    expect((await deliver(port, { id: 'evt_2', secret: RAW_SECRET, dialect: 'vendor' })).status).toBe(401)
    await expect.poll(statusNow).toContain(words)
    expect(await statusNow()).toMatch(/last refused 20\S+ \S+( UTC)? \(signature\)/)
    expect((await deliver(port, { id: 'evt_3' })).status).toBe(202)
    await expect.poll(statusNow).not.toContain(words)
  })

  longTest(
    'says after a restart that it knows of refusals since the start alone, and of none while it does not run',
    async () => {
      const { port, dir, agent } = await startDaemon()
      const words = async (at: number): Promise<string | undefined> => {
        const env = {
          PATCHMIRROR_DATA_DIR: dir,
          PATCHMIRROR_SERVER_LISTEN: `127.0.0.1:${at}`,
          PATCHMIRROR_WEBHOOKS_SECRETS: SECRET,
        }
        return /last refused.*/.exec((await run(['status'], env, dir)).out)?.[0]
      }
      expect((await deliver(port)).status).toBe(202)
      expect((await deliver(port, { id: 'evt.2' })).status).toBe(401)
      expect(await words(port)).toMatch(/^last refused 20.* \(header_id\)$/)
      await agent.close()
      expect(await words(port)).toBe('last refused: not known')
      const again = await startDaemon({ PATCHMIRROR_SERVER_KEYS: TEST_KEY }, dir)
      const headers = { accept: 'text/html', authorization: `Basic ${btoa(`${TEST_KEY}:`)}` }
      const page = await fetch(`http://127.0.0.1:${again.port}/-/ui/webhooks`, { headers })
      expect(await page.text()).toMatch(/last refused<[^]{0,200}>none since the start</)
      expect(await words(again.port)).toBe('last refused: none since the start')
    },
  )

  longTest(
    'names in its status the file of secrets that was lost or emptied, and says whether secrets stay in force',
    async () => {
      const { port, dir } = await startDaemon({ PATCHMIRROR_WEBHOOKS_SECRETS: '', PATCHMIRROR_SERVER_KEYS: TEST_KEY })
      const file = join(dir, 'webhook-secrets.json')
      const statusNow = async () => {
        const { problems, webhooks } = JSON.parse(await get(port, '/-/status')) as StatusPage & { problems: object[] }
        return { problems, secrets: webhooks['secrets'] }
      }
      const named = (detail: string) =>
        expect.objectContaining({ code: 'secret_file', detail, level: 'warning' }) as object
      const kept = { label: 'first', secret: SECRET, subscription: null }
      replaceSecretFile(file, [{ ...kept, notBefore: null, notAfter: null }])
      await expect.poll(statusNow).toMatchObject({ secrets: 1 })
      writeFileSync(file, '')
      const malformed = named(
        'it is not JSON; the value that was read before stays in force, and the next start would fail',
      )
      await expect.poll(statusNow).toEqual({ secrets: 1, problems: expect.arrayContaining([malformed]) as object[] })
      rmSync(file)
      const gone = named('it is not there any more; what it had is not in force any more')
      await expect.poll(statusNow).toEqual({ secrets: 0, problems: expect.arrayContaining([gone]) as object[] })
      const headers = { accept: 'text/html', authorization: `Basic ${btoa(`${TEST_KEY}:`)}` }
      const page = await (await fetch(`http://127.0.0.1:${port}/-/ui/webhooks`, { headers })).text()
      expect(page).toContain('off: no secret is valid (webhooks.secrets, webhook-secrets.json)')
    },
  )

  longTest('neither logs nor counts the probe of the doctor as refused, which finds the endpoint open', async () => {
    const { port, dir, lines } = await startDaemon()
    const settings = { PATCHMIRROR_DATA_DIR: dir, PATCHMIRROR_SERVER_LISTEN: `127.0.0.1:${port}` }
    const named = { PATCHMIRROR_SERVER_PUBLIC_URL: `http://127.0.0.1:${port}`, PATCHMIRROR_WEBHOOKS_SECRETS: SECRET }
    for (const env of [
      { ...settings, PATCHMIRROR_WEBHOOKS_SECRETS: SECRET },
      { ...settings, ...named },
    ]) {
      const { checks } = JSON.parse((await run(['doctor', '--json'], env, dir)).out) as {
        checks: { name: string; state: string; found: string }[]
      }
      expect(checks.find(({ name }) => name === 'endpoint')).toMatchObject({
        state: 'ok',
        found: `http://127.0.0.1:${port}/-/webhooks is open`,
      })
    }
    expect(lines.filter((line) => line.includes('webhook endpoint was refused'))).toEqual([])
    expect(await get(port, '/-/metrics')).not.toMatch(/webhook_requests_total\{outcome="refused".*[1-9]$/m)
  })

  longTest(
    'answers 503 without a secret and while it shuts down, and uses the first secret without a restart',
    async () => {
      const sandbox = await createSandbox({ records: 3, service: false }) // readers are told once a refresh is done
      onTestFinished(() => sandbox.close())
      const { agent, port, dir, lines } = await startDaemon({
        PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
        PATCHMIRROR_WEBHOOKS_SECRETS: '',
      })
      expect(lines.join('')).toContain('no secret is configured')
      expect((await deliver(port)).status).toBe(503)
      expect(JSON.parse(await get(port, '/-/status'))).toMatchObject({
        webhooks: { state: 'off', secrets: 0, lastRefusedReason: 'no_secret' },
      })
      const stop = new AbortController()
      onTestFinished(() => stop.abort())
      const answer = await fetch(`http://127.0.0.1:${port}/-/events`, {
        headers: localKey(dir),
        signal: stop.signal,
      })
      const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
      const kept = { label: 'first', secret: SECRET, subscription: null }
      replaceSecretFile(join(dir, 'webhook-secrets.json'), [{ ...kept, notBefore: null, notAfter: null }])
      expect((await deliver(port)).status).toBe(202)
      let text = ''
      while (!text.includes('event: webhook')) {
        const { value } = await reader.read()
        text += Buffer.from(value ?? []).toString()
      }
      expect(text).toContain(`"type":"${EVENT.type}"`)
      stop.abort()
      expect(await answerWhileClosing(port, () => agent.close())).toMatch(/^HTTP\/1.1 503 [\s\S]*Retry-After: \d+/)
    },
  )

  test('refuses deliveries where it syncs nothing, for which there would be no refresh', async () => {
    const { port } = await startDaemon({}, undefined, true)
    const { status, body } = await deliver(port)
    expect([status, body]).toEqual([503, expect.stringContaining('this mirror syncs nothing')])
  })

  longTest('accepts a delivery on a connection that read a record, and answers 404 beside an endpoint', async () => {
    const dir = scratch()
    const store = openFilledStore(dir)
    store.publishOsv({ one: '{"id":"one"}' })
    store.close()
    const { port } = await startDaemon(
      { PATCHMIRROR_LOG_LEVEL: 'info', PATCHMIRROR_WEBHOOKS_ENDPOINTS: 'default=/-/webhooks,staging=/hooks/staging' },
      dir,
    )
    const body = JSON.stringify(EVENT)
    const head = Object.entries(signed({ timestamp: seconds() })).map(([name, value]) => `${name}: ${value}`)
    const record = 'GET /external/osv/one.json HTTP/1.1\r\nHost: x\r\n\r\n'
    const post = `POST /-/webhooks HTTP/1.1\r\nHost: x\r\n${head.join('\r\n')}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
    const socket = connect(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    for (const [at, asked] of [record, record, post, post, record, post.slice(0, -9)].entries()) {
      socket.write(asked)
      await expect.poll(() => text.match(/HTTP\/1\.1 \d+/g)?.length ?? 0, { interval: 2 }).toBe(Math.min(at + 1, 5))
    }
    socket.write(post.slice(-9))
    await expect
      .poll(() => text.match(/HTTP\/1\.1 \d+/g))
      .toEqual([200, 200, 202, 200, 200, 200].map((status) => `HTTP/1.1 ${status}`))
    for (const path of ['/-/webhook', '/hooks', '/hooks/staging2'])
      expect((await deliver(port, {}, path)).status).toBe(404)
    expect((await deliver(port, {}, '/hooks/staging')).status).toBe(202)
  })

  longTest('has a separate listener when webhooks.listen is set, with no other path on it', async () => {
    const { port, lines } = await startDaemon({
      PATCHMIRROR_WEBHOOKS_LISTEN: '127.0.0.1:0',
      PATCHMIRROR_WEBHOOKS_ENDPOINTS: 'default=/-/webhooks,staging=/hooks',
    })
    const own = Number(/received at http:\/\/127.0.0.1:(\d+)/.exec(lines.join(''))?.[1])
    expect(own).not.toBe(port)
    expect((await deliver(own)).status).toBe(202)
    expect((await deliver(own, {}, '/hooks')).status).toBe(202)
    expect((await send(own, { path: '/-/status', method: 'GET' })).status).toBe(404)
    expect((await deliver(port)).status).toBe(404)
  })

  const OPENSSL = spawnSync('openssl', ['version']).status === 0

  const tlsTest = OPENSSL ? longTest : test.skip

  tlsTest('speaks TLS on its own listener with the files of the settings', async () => {
    const dir = scratch()
    const certFile = join(dir, 'cert.pem')
    const keyFile = join(dir, 'key.pem')
    const made = [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      '2',
      '-subj',
      '/CN=localhost',
      '-keyout',
      keyFile,
      '-out',
      certFile,
    ]
    expect(spawnSync('openssl', made).status).toBe(0)
    const { lines } = await startDaemon({
      PATCHMIRROR_WEBHOOKS_LISTEN: '127.0.0.1:0',
      PATCHMIRROR_WEBHOOKS_CERT_FILE: certFile,
      PATCHMIRROR_WEBHOOKS_KEY_FILE: keyFile,
    })
    const own = Number(/received at https:\/\/127.0.0.1:(\d+)/.exec(lines.join(''))?.[1])
    const body = JSON.stringify(EVENT)
    const headers = {
      ...signed({ timestamp: seconds() }),
      'content-length': Buffer.byteLength(body),
    }
    const asked = tlsRequest({
      port: own,
      host: '127.0.0.1',
      path: '/-/webhooks',
      method: 'POST',
      headers,
      rejectUnauthorized: false,
      agent: false,
    })
    asked.end(body)
    const [answer] = (await once(asked, 'response')) as [{ statusCode: number; resume(): void }]
    answer.resume()
    expect(answer.statusCode).toBe(202)
  })
})

describe('patchmirror with stored webhooks', () => {
  longTest('exits 2 for a weak secret or a malformed file of secrets', async () => {
    const dir = scratch()
    const env = {
      PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:9',
      PATCHMIRROR_DATA_DIR: dir,
      PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:0',
    }
    const weak = await run(['serve'], { ...env, PATCHMIRROR_WEBHOOKS_SECRETS: 'whsec_' }, dir)
    expect(weak.code).toBe(2)
    expect(weak.err).toContain('contains only the prefix whsec_')
    writeFileSync(join(dir, 'webhook-secrets.json'), '{')
    const malformed = await run(['serve'], env, dir)
    expect(malformed.code).toBe(2)
    expect(malformed.err).toContain('webhook-secrets.json: the file is not JSON. Repair or remove it')
  })

  longTest.each(['from the start', 'under way'])(
    'continues to serve with a webhooks.db that is damaged %s: deliveries are 503, pages are not',
    async (when) => {
      const dir = scratch()
      const store = openFilledStore(dir)
      store.publishOsv({ one: '{"id":"one"}' })
      store.close()
      const file = join(dir, 'webhooks.db')
      const noise = 'this is not a database, whatever its name says'.repeat(5_000)
      if (when === 'from the start') writeFileSync(file, noise)
      const { port, lines } = await startDaemon({}, dir)
      if (when === 'under way') {
        expect((await deliver(port)).status).toBe(202)
        for (const path of [file, `${file}-wal`]) writeFileSync(path, noise, { flag: 'r+' })
      }
      if (when === 'from the start') expect((await deliver(port)).status).toBe(503)
      expect(JSON.parse(await get(port, '/-/health'))).toEqual({ status: 'ok' })
      for (const page of ['status', 'metrics'])
        expect([page, (await send(port, { path: `/-/${page}`, method: 'GET' })).status]).toEqual([page, 200])
      expect(lines.join('')).toMatch(/webhooks\.db is damaged/)
    },
  )

  test('says in status without a daemon that no secret is valid, and that the file of secrets cannot be used', async () => {
    const dir = scratch()
    const store = openFilledStore(dir)
    store.publishOsv({ one: '{"id":"one"}' })
    store.close()
    const db = openInbox(dir)
    createInbox(db).receive(delivery({ state: 'done' }))
    db.close()
    const status = async () =>
      (await run(['status'], { PATCHMIRROR_DATA_DIR: dir, PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:9' }, dir)).out
    const lost = await status()
    expect(lost).toMatch(
      /webhooks: no secret is valid here, so deliveries are refused, 0 pending, .* last received 2026/,
    )
    expect(lost).not.toMatch(/refreshes: 0|not announced/) // no daemon counted them, and without a secret none can come
    writeFileSync(join(dir, 'webhook-secrets.json'), '', { mode: 0o600 })
    expect(await status()).toMatch(
      /PROBLEM: Settings: webhook-secrets\.json cannot be used\n +it is not JSON; the daemon cannot start/,
    )
  })

  test('reports the sources in status when webhooks.db is damaged', async () => {
    const dir = scratch()
    const store = openFilledStore(dir)
    store.publishOsv({ one: '{"id":"one"}' })
    store.close()
    writeFileSync(join(dir, 'webhooks.db'), 'x'.repeat(9000))
    const env = { PATCHMIRROR_DATA_DIR: dir, PATCHMIRROR_WEBHOOKS_SECRETS: SECRET }
    const { code, out, err } = await run(['status'], { ...env, PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:9' }, dir)
    expect([code, err]).toEqual([3, '']) // what is stored is months old
    expect(out).toMatch(/^osv +complete/m)
    expect(out).toContain('webhooks: 1 secret, the inbox is not available')
  })
})

longTest(
  'a daemon that is killed between commit and answer has the delivery once and its time, and recognizes its retry',
  async () => {
    const dir = scratch()
    const file = fileURLToPath(new URL('./killed-child.ts', import.meta.url))
    const child = spawn(process.execPath, [file, dir], { stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = once(child, 'exit')
    onTestFinished(() => void child.kill('SIGKILL'))
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    await expect(deliver(Number(line.toString()))).rejects.toThrow()
    expect(await ended).toEqual([null, 'SIGKILL'])
    const known = { PATCHMIRROR_SERVER_PUBLIC_URL: 'https://m.test/p/' }
    const { port, lines } = await startDaemon(known, dir)
    expect(lines.join('')).toContain('webhooks are received at https://m.test/p/-/webhooks')
    const { webhooks } = JSON.parse(await get(port, '/-/status')) as StatusPage
    expect(webhooks).toMatchObject({
      lastReceivedAt: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      lastRefusedAt: null,
    })
    expect((await send(port, { path: '/-/webhooks', method: 'GET' })).status).toBe(405)
    expect((await deliver(port)).status).toBe(200)
    const db = openInbox(dir)
    expect(createInbox(db).listRows(null, 9)).toHaveLength(1)
    db.close()
  },
)

longTest('no secret, signature or body is in a log, answer, page or dump after many mixed requests', async () => {
  const { agent, port, lines } = await startDaemon({
    PATCHMIRROR_WEBHOOKS_SECRETS: `${SECRET},${RAW_SECRET}`,
  })
  const said: string[] = []
  const hidden = new Set([SECRET, SECRET.slice(6), RAW_SECRET, 'MARKER'])
  const one = async (i: number): Promise<void> => {
    const type = i % 5 === 0 ? 'MARKER-type' : EVENT.type
    const data = { ...EVENT.data, image_tag: `MARKER\n\u001b[2J${i}` }
    const text = JSON.stringify({ ...EVENT, type, subject: `MARKER-${i}`, data })
    const body = i % 7 === 0 ? text.slice(1) : text
    const timestamp = seconds() - (i % 11 === 0 ? 400 : 0)
    const dialect = i % 2 === 0 ? 'standard' : 'vendor'
    const sent = deliveryOf({ id: `evt_${i % 270}`, timestamp, body, dialect })
    const headers = sent.headers as Record<string, string>
    hidden.add(headers['webhook-signature'] ?? '')
    if (i % 3 === 0) headers['webhook-signature'] = `${headers['webhook-signature'] ?? ''}MARKER`
    if (i % 13 === 0) headers['webhook-id'] = 'MARKER.1'
    const reply = await send(port, { ...sent, headers: { ...headers, 'user-agent': 'MARKER' } })
    said.push(inspect(reply, { depth: 9 }))
  }
  for (let i = 0; i < 300; i += 50) await Promise.all(Array.from({ length: 50 }, (_, at) => one(i + at)))
  said.push(...lines, await get(port, '/-/status'), await get(port, '/-/metrics'))
  said.push(inspect(agent, { depth: 20, showHidden: true }))
  const all = said.join('\n')
  expect(all).toContain('"unauthorized"')
  expect([...hidden].filter((text) => all.includes(text))).toEqual([])
  expect(lines.filter((line) => /"level":(?:40|"warn")/.test(line)).length).toBeLessThan(30)
})
