import { once } from 'node:events'
import { type IncomingMessage, createServer } from 'node:http'
import { type AddressInfo, type Socket, connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { refuseMalformed } from '../../../src/server/http/node-server.ts'
import { type Share, createAccount } from '../../../src/base/connections/account.ts'
import { bodyTimeMs, readRequestBody } from '../../../src/base/connections/bodies.ts'
import { limitPipelining } from '../../../src/base/connections/pipelining.ts'
import { countedResponses, shareFor } from '../../../src/base/connections/responses.ts'
import { createBodies } from '../../../src/webhooks/receive/body-reader.ts'

type Read = (request: IncomingMessage, share: Share) => Promise<unknown>

const MIB = 2 ** 20
const deliveries = createBodies({ maxBytes: MIB, timeOf: bodyTimeMs, maxTotal: 8 * MIB })
const READERS: [name: string, read: Read][] = [
  ['a request', (request, share) => readRequestBody(request, { bytes: MIB, share })],
  ['a delivery', (request, share) => deliveries.read(request, share)],
]

/** Starts a server as the mirror's own that reads bodies, and answers what it has read. */
async function start(read: Read) {
  const account = createAccount()
  const holderOf = () => ({ address: () => 'one', hasKey: () => false })
  const options = { ServerResponse: countedResponses({ account, holderOf }) }
  const results: unknown[] = []
  const handler = limitPipelining((request, response) => {
    void read(request, shareFor(response)).then((result) => {
      results.push(result)
      if (result === 'gone') response.destroy()
      else response.end()
    })
  })
  const server = createServer(options, handler)
  Object.assign(server, { httpAllowHalfOpen: true }).on('clientError', refuseMalformed)
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return { account, results, open: () => openSocket(port) }
}

async function openSocket(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined).resume()
  await once(socket, 'connect')
  return socket
}

const head = (length: string): string => `POST / HTTP/1.1\r\nHost: m\r\n${length}\r\n\r\n`
const LENGTHS = ['Content-Length: 100000', 'Transfer-Encoding: chunked']
const PART = `c350\r\n${'x'.repeat(50_000)}`

test.each(READERS.flatMap((reader) => LENGTHS.map((length) => [...reader, length] as const)))(
  'the bytes of %s whose client closes its side in the middle are given back at once (%#)',
  async (_, read, length) => {
    const { account, results, open } = await start(read)
    const socket = await open()
    socket.write(head(length) + PART)
    await expect.poll(account.bytes).toBeGreaterThanOrEqual(50_000)
    socket.end()
    await expect.poll(() => results.length).toBe(1)
    expect(['gone', { failed: 'gone' }]).toContainEqual(results[0])
    await expect.poll(account.bytes).toBe(0)
  },
)

test.each(READERS)('the body of %s whose client closes its side at its end is read', async (_, read) => {
  const { results, open } = await start(read)
  const socket = await open()
  socket.end(`${head('Content-Length: 5')}whole`)
  await expect.poll(() => results.length).toBe(1)
  const body = Buffer.from('whole')
  expect([body, { body }]).toContainEqual(results[0])
})

const SOUND = `${head('Content-Length: 5')}whole`
test.each(READERS.flatMap((reader) => ['', SOUND].map((before) => [...reader, before] as const)))(
  'the body of %s that is no sound HTTP is refused at once, after the answers before it (%#)',
  async (_, read, before) => {
    const { account, open } = await start(read)
    const socket = await open()
    let text = ''
    socket.on('data', (data: Buffer) => void (text += data.toString())).on('end', () => socket.end())
    socket.write(`${before}${head('Transfer-Encoding: chunked')}${PART}\r\nno size\r\n`)
    await expect.poll(() => text).toMatch(/HTTP\/1\.1 400 .*not a sound HTTP request/s)
    expect(text.startsWith('HTTP/1.1 200')).toBe(before !== '')
    await expect.poll(account.bytes).toBe(0)
  },
)
