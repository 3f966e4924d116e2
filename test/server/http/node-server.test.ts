import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import { type AddressInfo, type Socket, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { refuseMalformed } from '../../../src/server/http/node-server.ts'
import { startListener } from '../../../src/webhooks/receive/listener.ts'
import { longTest, test } from '../../support/tables.ts'
import { hasOpenssl, makeTls } from '../../support/tls.ts'
import { closeAll, serve } from '../served.ts'

function certificate() {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-tls-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  const { key, cert } = makeTls(dir)
  return { key, cert, certFile: join(dir, 'cert.pem'), keyFile: join(dir, 'key.pem') }
}

/** Opens a connection whose handshake never ends, and does not close it. */
async function openUnfinished(port: number, text: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined).resume()
  await once(socket, 'connect')
  socket.write(text)
  return socket
}

/** The begin of a handshake: a record is announced, and its content does not come. */
const BEGUN = '\x16\x03\x01\x02\x00'

test.runIf(hasOpenssl).each([
  ['that says nothing', ''],
  ['that begins a handshake', BEGUN],
  ['that speaks plain HTTP', 'GET / HTTP/1.1\r\n\r\n'],
])('a connection %s to a port with TLS is ended', async (_, text) => {
  const { key, cert } = certificate()
  const options = { key, cert, handshakeTimeout: 100, allowHalfOpen: true }
  const server = createServer(options, () => undefined).on('clientError', refuseMalformed)
  onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  const socket = await openUnfinished((server.address() as AddressInfo).port, text)
  await once(socket, 'end')
  await expect.poll(() => open.size).toBe(0)
})

longTest('handshakes that never end are ended by both listeners after ten seconds', async () => {
  const { certFile, keyFile } = certificate()
  const env = { PATCHMIRROR_SERVER_CERT_FILE: certFile, PATCHMIRROR_SERVER_KEY_FILE: keyFile }
  const { port } = await serve((store) => store.publishOsv({ a: '1' }), { env })
  const listener = await startListener({
    host: '127.0.0.1',
    port: 0,
    tls: { certFile, keyFile },
    log: null,
    maxConnections: 10,
    maxConnectionsPerAddress: 0,
    handler: (_, response) => void response.end(),
  })
  onTestFinished(() => listener.close(0))
  onTestFinished(closeAll)
  const ports = [port, Number(new URL(listener.url).port)]
  const begun = ports.flatMap((one) => [openUnfinished(one, ''), openUnfinished(one, BEGUN)])
  await Promise.all(begun.map(async (socket) => once(await socket, 'end')))
})
