import { spawnSync } from 'node:child_process'
import { copyFileSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { type Socket, connect as connectTcp, createServer } from 'node:net'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type ListenerOptions, startListener } from '../../../src/webhooks/receive/listener.ts'
import { scratch } from '../inbox/inboxes.ts'

const OPTIONS: ListenerOptions = {
  host: '127.0.0.1',
  port: 0,
  tls: null,
  maxConnections: 100,
  maxConnectionsPerAddress: 0,
  handler: (_, response) => void response.end('here'),
  log: null,
}

test('a webhook listener whose address is in use fails with an error that names the setting', async () => {
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void other.close())
  const { port } = other.address() as { port: number }
  await expect(startListener({ ...OPTIONS, port })).rejects.toMatchObject({
    code: 'config',
    message: expect.stringContaining('set webhooks.listen') as string,
  })
})

test('closing a webhook listener ends idle connections', async () => {
  const listener = await startListener(OPTIONS)
  expect(await (await fetch(listener.url)).text()).toBe('here')
  await listener.close(60_000)
  await expect(fetch(listener.url)).rejects.toThrow()
})

/** All that comes until the listener ends the connection, after a client sent this and closed its half. */
async function answerTo(socket: Socket, text: string): Promise<string> {
  onTestFinished(() => void socket.destroy())
  let got = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => (got += chunk))
  socket.end(text)
  await once(socket, 'end')
  return got
}

/** Answers with the body that it was sent, when that has ended and some turns have passed. */
const ECHO: ListenerOptions['handler'] = (request, response) => {
  let body = ''
  request.setEncoding('latin1').on('data', (chunk: string) => (body += chunk))
  request.on('end', () => setTimeout(() => response.end(`got ${body}`), 10))
}
const DELIVERY = 'POST / HTTP/1.1\r\nHost: m\r\nConnection: close\r\nContent-Length: 5\r\n\r\nevent'

test('a sender that closes its half when it has sent its delivery still gets the answer', async () => {
  const listener = await startListener({ ...OPTIONS, handler: ECHO })
  onTestFinished(() => listener.close(0))
  const socket = connectTcp({
    port: Number(new URL(listener.url).port),
    host: '127.0.0.1',
    allowHalfOpen: true,
  })
  expect(await answerTo(socket, DELIVERY)).toMatch(/^HTTP\/1\.1 200 [^]*got event/)
})

test('a sender of many deliveries at once has the next one looked at when the one before is answered', async () => {
  let came = 0
  const answers: (() => void)[] = []
  const handler: ListenerOptions['handler'] = (request, response) => {
    came++
    request.resume()
    answers.push(() => void response.end('here'))
  }
  const listener = await startListener({ ...OPTIONS, handler })
  onTestFinished(() => listener.close(0))
  const socket = connectTcp(Number(new URL(listener.url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.write(DELIVERY.replace('Connection: close\r\n', '').repeat(3))
  for (const place of [1, 2, 3]) {
    await expect.poll(() => came).toBe(place)
    answers.shift()?.()
    await once(socket, 'data')
  }
  expect(answers).toEqual([])
})

test('a delivery with two Host headers is refused before it is read', async () => {
  let handled = 0
  const handler = (): void => {
    handled++
  }
  const listener = await startListener({ ...OPTIONS, handler })
  onTestFinished(() => listener.close(0))
  const port = Number(new URL(listener.url).port)
  for (const hosts of ['Host: a\r\nHost: b', 'Host: a\r\nhost: a']) {
    const socket = connectTcp({ port, host: '127.0.0.1', allowHalfOpen: true })
    const got = await answerTo(socket, DELIVERY.replace('Host: m', hosts))
    expect(got).toMatch(/^HTTP\/1\.1 400 [^]*Connection: close/i)
  }
  expect(handled).toBe(0)
})

const OPENSSL = spawnSync('openssl', ['version']).status === 0

function makeCertificate(dir: string, name: string): void {
  const files = ['-keyout', join(dir, `${name}.key`), '-out', join(dir, `${name}.pem`)]
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const options = ['-x509', ...key, '-days', '2', '-subj', `/CN=${name}`]
  expect(spawnSync('openssl', ['req', ...options, ...files]).status).toBe(0)
}

/** The name in the certificate that a port shows. */
function nameAt(port: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().subject.CN)
      socket.destroy()
    })
    socket.once('error', reject)
  })
}

describe.skipIf(!OPENSSL)('the certificate of a webhook listener', () => {
  test('is replaced by a renewed one without a restart, and a damaged one is logged and not used', async () => {
    const dir = scratch()
    for (const name of ['first', 'second']) makeCertificate(dir, name)
    const tls = { certFile: join(dir, 'cert.pem'), keyFile: join(dir, 'cert.key') }
    const use = (name: string): void => {
      copyFileSync(join(dir, `${name}.pem`), tls.certFile)
      copyFileSync(join(dir, `${name}.key`), tls.keyFile)
    }
    use('first')
    const told: string[] = []
    const say = (_: object, message: string): void => void told.push(message)
    const log = { info: say, error: say } as never
    const listener = await startListener({ ...OPTIONS, tls, log, renewalMs: 20 })
    onTestFinished(() => listener.close(0))
    const port = Number(new URL(listener.url).port)
    expect(await nameAt(port)).toBe('first')
    writeFileSync(tls.certFile, 'no certificate')
    await expect.poll(() => told.at(-1)).toContain('cannot be used, the one in use stays')
    expect(await nameAt(port)).toBe('first')
    use('second')
    await expect.poll(() => nameAt(port)).toBe('second')
  })

  test('serves senders that close their half, also when silent connections use all places', async () => {
    const dir = scratch()
    makeCertificate(dir, 'only')
    const tls = { certFile: join(dir, 'only.pem'), keyFile: join(dir, 'only.key') }
    const told: string[] = []
    const log = { warn: (_: object, message: string) => void told.push(message) } as never
    const closed: string[] = []
    const onClosed = (why: string): void => void closed.push(why)
    const limits = { maxConnections: 4, handler: ECHO, onClosed, log }
    const listener = await startListener({ ...OPTIONS, tls, ...limits })
    onTestFinished(() => listener.close(0))
    const to = { port: Number(new URL(listener.url).port), host: '127.0.0.1' }
    const secure = { ...to, rejectUnauthorized: false, allowHalfOpen: true }
    const silent: Socket[] = [] // without a handshake
    for (let i = 0; i < 3; i++) {
      const socket = connectTcp(to).on('error', () => undefined)
      onTestFinished(() => void socket.destroy())
      await once(socket, 'connect')
      silent.push(socket.resume())
    }
    for (let i = 0; i < 6; i++)
      expect(await answerTo(connect(secure), DELIVERY)).toMatch(/^HTTP\/1\.1 200 [^]*got event/)
    const idle = connect(secure).on('error', () => undefined) // with a handshake, and nothing after it
    onTestFinished(() => void idle.destroy())
    await once(idle, 'secureConnect')
    for (let i = 0; i < 4; i++) {
      const socket = connectTcp(to).on('error', () => undefined)
      onTestFinished(() => void socket.destroy())
      await once(socket, 'connect')
      silent.push(socket.resume())
    }
    expect(await answerTo(connect(secure), DELIVERY)).toMatch(/got event/)
    await expect.poll(() => silent.filter((socket) => socket.closed).length).toBeGreaterThan(2)
    expect(new Set(closed)).toContain('silent')
    expect(told.filter((line) => /no complete request/.test(line))).toHaveLength(1)
  })

  test('with the key of another is a clear configuration error', async () => {
    const dir = scratch()
    for (const name of ['first', 'second']) makeCertificate(dir, name)
    const tls = { certFile: join(dir, 'first.pem'), keyFile: join(dir, 'second.key') }
    await expect(startListener({ ...OPTIONS, tls })).rejects.toMatchObject({ code: 'config' })
  })

  test('that cannot be read is a clear configuration error', async () => {
    const tls = { certFile: '/none/cert.pem', keyFile: '/none/cert.key' }
    await expect(startListener({ ...OPTIONS, tls })).rejects.toMatchObject({ code: 'config' })
  })
})
