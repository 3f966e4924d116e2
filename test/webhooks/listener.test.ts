import { spawnSync } from 'node:child_process'
import { copyFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type ListenerOptions, startListener } from '../../src/webhooks/listener.ts'
import { scratch } from './inboxes.ts'

const OPTIONS: ListenerOptions = {
  host: '127.0.0.1',
  port: 0,
  tls: null,
  maxConnections: 100,
  maxConnectionsPerAddress: 0,
  handler: (_, response) => void response.end('here'),
  log: null,
}

test('an address that is taken is a clear error', async () => {
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void other.close())
  const { port } = other.address() as { port: number }
  await expect(startListener({ ...OPTIONS, port })).rejects.toMatchObject({
    code: 'config',
    message: expect.stringContaining('set webhooks.port and webhooks.host') as string,
  })
})

test('closing lets go of connections that are idle', async () => {
  const listener = await startListener(OPTIONS)
  expect(await (await fetch(listener.url)).text()).toBe('here')
  await listener.close(60_000)
  await expect(fetch(listener.url)).rejects.toThrow()
})

const OPENSSL = spawnSync('openssl', ['version']).status === 0

function makeCertificate(dir: string, name: string): void {
  const files = ['-keyout', join(dir, `${name}.key`), '-out', join(dir, `${name}.pem`)]
  const options = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', `/CN=${name}`]
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

describe.skipIf(!OPENSSL)('a certificate', () => {
  test('that is renewed is taken without a restart, and a broken one is told and not taken', async () => {
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
    await expect.poll(() => told.at(-1)).toContain('the renewed certificate cannot be used')
    expect(await nameAt(port)).toBe('first')
    use('second')
    await expect.poll(() => nameAt(port)).toBe('second')
  })

  test('with the key of another is a clear error', async () => {
    const dir = scratch()
    for (const name of ['first', 'second']) makeCertificate(dir, name)
    const tls = { certFile: join(dir, 'first.pem'), keyFile: join(dir, 'second.key') }
    await expect(startListener({ ...OPTIONS, tls })).rejects.toMatchObject({ code: 'config' })
  })

  test('that cannot be read is a clear error', async () => {
    const tls = { certFile: '/none/cert.pem', keyFile: '/none/cert.key' }
    await expect(startListener({ ...OPTIONS, tls })).rejects.toMatchObject({ code: 'config' })
  })
})
