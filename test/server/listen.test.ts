import { once } from 'node:events'
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, statSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import {
  Agent as HttpAgent,
  type IncomingMessage,
  type RequestOptions,
  createServer as createHttpServer,
  request,
} from 'node:http'
import { Agent as HttpsAgent, request as requestTls } from 'node:https'
import { type Server, connect as connectTo, createServer, isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { dirname, join } from 'node:path'
import { TLSSocket, connect } from 'node:tls'
import { afterEach, describe, expect, onTestFinished } from 'vitest'
import { createListening, openSocket, withAddress } from '../../src/server/listen.ts'
import { goOffline } from '../../src/base/offline.ts'
import { loadQuick } from '../support/limits.ts'
import { scratch } from '../webhooks/inbox/inboxes.ts'
import { faultsOfCertificates } from '../../src/base/certificate.ts'
import { longTest, test } from '../support/tables.ts'
import { hasOpenssl, makeTls } from '../support/tls.ts'
import { type Served, closeAll, jsonOf, serve } from './served.ts'

afterEach(closeAll)

const fill = (env: Record<string, string>): Promise<Served> =>
  serve((store) => store.publishOsv({ one: '{"id":"one"}' }), { env })

async function answerOf(sent: ReturnType<typeof request>) {
  const [response] = (await once(sent.end(), 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
  const { statusCode: status = 0, headers } = response
  return { status, headers, body: Buffer.concat(chunks) }
}

/** A socket that a killed process left. */
function leftBy(): string {
  const left = join(scratch(), 'left.sock')
  const code = `require('net').createServer().listen(${JSON.stringify(left)}, () => process.kill(process.pid, 'SIGKILL'))`
  spawnSync(process.execPath, ['-e', code])
  expect(statSync(left).isSocket()).toBe(true)
  return left
}

test.each(['[fe80::1]:0', '[fe80::1%no-such]:0'])(
  'an address without a usable interface names the setting: %s',
  async (listen) => {
    const { config } = loadQuick({ env: { PATCHMIRROR_SERVER_LISTEN: listen }, cwd: scratch() })
    const started = withAddress(config.server, () => Promise.resolve())
    await expect(started).rejects.toThrow(/is not an address of this machine.*set server\.listen/)
  },
)

describe('on a unix socket', () => {
  const onSocket = async (more: Record<string, string> = {}) => {
    const path = join(scratch(), 'mirror.sock')
    const served = await fill({ PATCHMIRROR_SERVER_LISTEN: `unix:${path}`, ...more })
    const agent = new HttpAgent({ keepAlive: true })
    onTestFinished(() => agent.destroy())
    const get = (path_: string, headers: RequestOptions['headers'] = {}) =>
      answerOf(request({ socketPath: path, path: path_, agent, headers }))
    return { ...served, path, get }
  }

  test('records, the health page and private paths are answered, and its connections are bounded together only', async () => {
    const { get, path, server, own, told } = await onSocket({
      PATCHMIRROR_SERVER_MAX_CONNECTIONS_PER_ADDRESS: '1',
      PATCHMIRROR_SERVER_OPEN_LOOPBACK: 'true',
    })
    expect(statSync(path).mode & 0o777).toBe(0o660)
    expect(server.address()).toEqual({ url: `unix:${path}`, port: 0 })
    const asked = Array.from({ length: 5 }, () => get('/external/osv/one.json'))
    for (const { status, body } of await Promise.all(asked))
      expect([status, body.toString()]).toEqual([200, '{"id":"one"}'])
    expect((await get('/-/health')).status).toBe(200)
    expect((await get('/v1/patches')).status).toBe(401)
    expect((await get('/v1/patches', own)).status).not.toBe(401)
    expect(told.join()).toContain('server.openLoopback has no effect, because server.listen is a socket')
  })

  test('the headers of a proxy count where server.trustProxy has unix', async () => {
    const forwarded = { 'X-Forwarded-Host': 'mirror.test', 'X-Forwarded-Prefix': '/p' }
    for (const [more, url] of [
      [{}, '/'],
      [{ PATCHMIRROR_SERVER_TRUST_PROXY: 'unix' }, '/p/'],
    ] as const) {
      const { get } = await onSocket(more)
      const { servers } = jsonOf(await get('/-/openapi.json', forwarded)) as {
        servers: { url: string }[]
      }
      expect(servers).toEqual([{ url: url.replace(/(.)\/$/, '$1') }])
    }
  })

  longTest('a socket that a killed daemon left is replaced; one in use and a file are not', async () => {
    const path = join(scratch(), 'mirror.sock')
    const other = createServer().listen(path)
    await once(other, 'listening')
    const env = { PATCHMIRROR_SERVER_LISTEN: `unix:${path}?mode=0600` }
    await expect(fill(env)).rejects.toThrow('in use by another program: set server.listen')
    expect(existsSync(path)).toBe(true)
    const left = leftBy()
    await fill({ ...env, PATCHMIRROR_SERVER_LISTEN: `unix:${left}?mode=0600` })
    expect(statSync(left).mode & 0o777).toBe(0o600)
    const file = join(scratch(), 'file')
    writeFileSync(file, 'kept', { mode: 0o640 })
    const before = statSync(file).mode & 0o777
    await expect(fill({ ...env, PATCHMIRROR_SERVER_LISTEN: `unix:${file}` })).rejects.toThrow('a file, not a')
    expect(existsSync(file)).toBe(true)
    for (const target of [file, left, join(scratch(), 'nothing')]) {
      const link = join(scratch(), 'link.sock')
      symlinkSync(target, link)
      await expect(fill({ ...env, PATCHMIRROR_SERVER_LISTEN: `unix:${link}` })).rejects.toThrow(
        'a symbolic link, not a socket',
      )
      expect(readdirSync(dirname(link))).toEqual(['link.sock'])
    }
    expect(statSync(file).mode & 0o777).toBe(before)
    other.close()
  })

  test('a daemon that is offline gets a path that a killed one left, and sees that one is in use', async () => {
    const path = leftBy()
    onTestFinished(goOffline())
    const server = createServer((connection) => connection.destroy())
    onTestFinished(() => void server.close())
    const open = (at: string): Promise<unknown> => once(server.listen(at), 'listening')
    onTestFinished(await openSocket(path, 0o600, open))
    await expect(openSocket(path, 0o600, open)).rejects.toThrow('is in use by another program')
  })

  test('of daemons that start at the same time on a path that a killed one left, one gets it and the others are refused', async () => {
    const path = leftBy()
    const servers = Array.from({ length: 8 }, () => createServer())
    onTestFinished(() => servers.forEach((server) => server.close()))
    const open = (server: Server) => async (at: string) => once(server.listen(at), 'listening')
    const ended = await Promise.allSettled(servers.map((one) => openSocket(path, 0o660, open(one))))
    const won = ended.filter(({ status }) => status === 'fulfilled')
    expect(won).toHaveLength(1)
    for (const one of ended) if (one.status === 'rejected') expect(String(one.reason)).toContain('is in use by another')
    const index = ended.findIndex(({ status }) => status === 'fulfilled')
    const answered = once(servers[index] ?? createServer(), 'connection')
    const client = connectTo(path)
    await answered
    client.destroy()
    expect(readdirSync(dirname(path))).toEqual(['left.sock', 'left.sock.lock'])
    expect(statSync(path).mode & 0o777).toBe(0o660)
  })

  test('the socket is removed at the end, but not what another program has at its path by then', async () => {
    const { path, server } = await onSocket()
    await server.close()
    expect(existsSync(path)).toBe(false)
    const second = await onSocket()
    unlinkSync(second.path)
    writeFileSync(second.path, 'of another')
    await second.server.close()
    expect(existsSync(second.path)).toBe(true)
  })
})

describe.skipIf(!hasOpenssl)('with TLS of its own (needs openssl)', () => {
  longTest('records are answered over kept connections, and a renewed certificate is used', async () => {
    const dir = scratch()
    const first = makeTls(dir)
    const certFile = join(dir, 'used.pem')
    const keyFile = join(dir, 'used.key')
    writeFileSync(certFile, first.cert)
    writeFileSync(keyFile, first.key)
    const { port, server, told, errors } = await fill({
      PATCHMIRROR_SERVER_CERT_FILE: certFile,
      PATCHMIRROR_SERVER_KEY_FILE: keyFile,
      PATCHMIRROR_SERVER_MAX_CONNECTIONS: '2',
    })
    expect(server.address()?.url).toBe(`https://127.0.0.1:${port}`)
    const agent = new HttpsAgent({ keepAlive: true, maxSockets: 1, ca: first.ca })
    onTestFinished(() => agent.destroy())
    const get = (path: string) =>
      answerOf(requestTls({ host: '127.0.0.1', servername: 'localhost', port, path, agent }))
    for (const path of ['/external/osv/one.json', '/external/osv/one.json', '/-/health'])
      expect((await get(path)).status).toBe(200)
    const { headers } = await get('/external/osv/one.json')
    expect(headers['keep-alive']).toBeDefined()
    const nameNow = async (): Promise<unknown> => {
      const unchecked = { host: '127.0.0.1', port, agent: false, rejectUnauthorized: false }
      const sent = requestTls({ ...unchecked, path: '/-/health' }).end()
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      const { socket } = response
      if (!(socket instanceof TLSSocket)) throw new Error('the connection is not encrypted')
      const { fingerprint256 } = socket.getPeerCertificate()
      await once(response.resume(), 'close')
      return fingerprint256
    }
    const before = await nameNow()
    const next = makeTls(scratch())
    const faults = () =>
      faultsOfCertificates({ server: { certFile, keyFile }, webhooks: { certFile: null, keyFile: null } })
    expect(faults()).toEqual([])
    writeFileSync(certFile, next.cert) // the key is still the old one
    const mismatch = 'cannot be used with server.keyFile (ERR_OSSL_X509_KEY_VALUES_MISMATCH)'
    expect(faults()).toEqual([{ key: 'server.certFile', fault: mismatch }])
    server.reload()
    server.reload()
    expect(errors).toHaveLength(1)
    expect(await nameNow()).toBe(before)
    writeFileSync(keyFile, next.key)
    expect(faults()).toEqual([])
    server.reload()
    expect(await nameNow()).not.toBe(before)
    expect(told.join()).toContain('took the renewed certificate of server.certFile')
  })

  test('all places taken by silent connections leave the health page answered', async () => {
    const dir = scratch()
    const tls = makeTls(dir)
    copyFileSync(join(dir, 'cert.pem'), join(dir, 'used.pem'))
    const { port } = await fill({
      PATCHMIRROR_SERVER_CERT_FILE: join(dir, 'cert.pem'),
      PATCHMIRROR_SERVER_KEY_FILE: join(dir, 'key.pem'),
      PATCHMIRROR_SERVER_MAX_CONNECTIONS: '2',
    })
    for (let count = 0; count < 6; count++) {
      const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
      onTestFinished(() => void socket.destroy())
      socket.on('error', () => undefined)
      await once(socket, 'secureConnect')
    }
    const options = { host: '127.0.0.1', servername: 'localhost', port, ca: tls.ca, agent: false }
    expect((await answerOf(requestTls({ ...options, path: '/-/health' }))).status).toBe(200)
  })

  longTest('connections that were never used do not delay the end', async () => {
    const dir = scratch()
    makeTls(dir)
    const env = {
      PATCHMIRROR_SERVER_CERT_FILE: join(dir, 'cert.pem'),
      PATCHMIRROR_SERVER_KEY_FILE: join(dir, 'key.pem'),
    }
    const { port, server } = await serve(() => undefined, { env, closeGraceMs: 3_600_000 })
    const plain = connectTo(port, '127.0.0.1')
    const secure = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
    const ended = [plain, secure].map(async (socket) => {
      onTestFinished(() => void socket.destroy())
      socket.on('error', () => undefined).resume()
      await once(socket, 'close')
    })
    await Promise.all([once(plain, 'connect'), once(secure, 'secureConnect')])
    await server.close()
    await Promise.all(ended)
  })
})

test('a name is listened on at one address only, so that every connection is limited', async () => {
  const opened: number[] = []
  const env = { PATCHMIRROR_SERVER_LISTEN: 'localhost:0' }
  const { server: settings } = loadQuick({ env, cwd: '/' }).config
  const app = {
    server: createHttpServer(),
    listen: (at: object) => Promise.resolve(void opened.push('host' in at ? isIP(String(at.host)) : 0)),
    ready: () => Promise.resolve(),
    inject: () => Promise.resolve({ statusCode: 200 }),
  }
  await createListening(app, settings).listen()
  expect(opened).toEqual([expect.toBeOneOf([4, 6])])
  const { server, port } = await fill(env)
  expect(server.address()?.url).toBe(`http://localhost:${port}`)
  const reply = await answerOf(request({ host: 'localhost', port, path: '/-/health', agent: false }))
  expect(reply.status).toBe(200)
})

const hasIpv6 = Object.values(networkInterfaces())
  .flat()
  .some((one) => one?.address === '::1')

describe.skipIf(!hasIpv6)('on IPv6 (needs ::1)', () => {
  test.each([
    ['::1', '[::1]'],
    ['::', 'localhost'],
  ])('%s is listened on and shown as %s', async (host, shown) => {
    const { server, port } = await fill({ PATCHMIRROR_SERVER_LISTEN: `[${host}]:0` })
    expect(server.address()?.url).toBe(`http://${shown}:${port}`)
    const reply = await answerOf(request({ host: '::1', port, path: '/-/health', agent: false }))
    expect(reply.status).toBe(200)
  })
})
