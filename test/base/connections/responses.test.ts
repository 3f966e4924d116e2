import { once } from 'node:events'
import { type RequestListener, createServer } from 'node:http'
import { type AddressInfo, type Socket, connect } from 'node:net'
import { afterEach, expect, onTestFinished, vi } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { type Shortage, createAccount } from '../../../src/base/connections/account.ts'
import { countedResponses, markShared } from '../../../src/base/connections/responses.ts'

afterEach(() => {
  vi.useRealTimers()
})

const MIB = 2 ** 20
/** More than the system's buffers of a connection have room for. */
const LARGE = Buffer.alloc(24 * MIB, 'x')

interface Counted {
  readonly port: number
  readonly short: Shortage[]
  readonly bytes: () => number
}

/** Starts a server whose answers have so many bytes of room together. */
async function start(bytes: number, handler: RequestListener): Promise<Counted> {
  const short: Shortage[] = []
  const account = createAccount({ bytes, onShort: (why) => short.push(why) })
  const holderOf = () => ({ address: () => 'one', hasKey: () => false })
  const options = { ServerResponse: countedResponses({ account, holderOf }) }
  const server = createServer(options, handler).listen(0, '127.0.0.1')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, short, bytes: account.bytes }
}

/** Sends a request whose answer is not read. */
async function askUnread(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').pause()
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write('GET / HTTP/1.1\r\nHost: m\r\n\r\n')
  return socket
}

const send: RequestListener = (_, response) => void response.end(Buffer.from(LARGE))

longTest('a client that reads gets a large answer whole, with its length', async () => {
  const { port, bytes } = await start(64 * MIB, send)
  const answer = await fetch(`http://127.0.0.1:${port}/`)
  expect(answer.headers.get('content-length')).toBe(String(LARGE.length))
  expect(Buffer.from(await answer.arrayBuffer()).equals(LARGE)).toBe(true)
  await expect.poll(bytes).toBe(0)
})

test('an answer for which there is no room is a 503 that says when to try again', async () => {
  const { port, short, bytes } = await start(32 * MIB, send)
  await askUnread(port)
  await expect.poll(bytes).toBe(LARGE.length)
  const refused = await fetch(`http://127.0.0.1:${port}/`)
  expect([refused.status, refused.headers.get('retry-after'), short]).toEqual([...[503, '30', ['refused']]])
  expect(await refused.json()).toMatchObject({ error: 'busy' })
})

longTest('a client that takes nothing for ten seconds is cut off while room is short', async () => {
  vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] })
  const { port, short, bytes } = await start(32 * MIB, send)
  await askUnread(port)
  await expect.poll(bytes).toBe(LARGE.length)
  const later = (): unknown => {
    vi.advanceTimersByTime(1000)
    return [short, bytes()]
  }
  await expect.poll(later).toEqual([['stopped'], 0])
})

longTest('a body that is in memory anyway counts for no more than what is on its way', async () => {
  const body = markShared(Buffer.from(LARGE))
  const { port, bytes } = await start(32 * MIB, (_, response) => void response.end(body))
  await askUnread(port)
  await askUnread(port)
  await expect.poll(bytes).toBe(2 * 32 * 1024)
  const answer = await fetch(`http://127.0.0.1:${port}/`)
  expect((await answer.arrayBuffer()).byteLength).toBe(LARGE.length)
})

test('what a stream writes counts while its client does not take it', async () => {
  const { port, bytes } = await start(32 * MIB, (_, response) => void response.write(LARGE))
  const socket = await askUnread(port)
  await expect.poll(bytes).toBeGreaterThan(10 * MIB)
  socket.destroy()
  await expect.poll(bytes).toBe(0)
})
