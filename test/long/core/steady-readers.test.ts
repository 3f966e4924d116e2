import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, type Socket, connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { type Shortage, createAccount } from '../../../src/base/connections/account.ts'
import { countedResponses } from '../../../src/base/connections/responses.ts'

const MIB = 2 ** 20
/** Of each of the two steady readers: more than half of the room together. */
const LARGE = 6.5 * MIB
/** Of the silent one: more than the buffers of the system take. */
const SMALLER = 6 * MIB
/** What a steady reader reads in a tenth of a second: one megabit a second. */
const TENTH = 12_500

/** Starts a server with room for 24 MiB of answers, of the size that the path names. */
async function start(): Promise<{ port: number; short: Shortage[] }> {
  const short: Shortage[] = []
  const account = createAccount({ bytes: 24 * MIB, onShort: (why) => short.push(why) })
  const holderOf = () => ({ address: () => 'one', hasKey: () => false })
  const options = { ServerResponse: countedResponses({ account, holderOf }) }
  const server = createServer(options, ({ url = '' }, response) => {
    response.end(Buffer.alloc(Number(url.slice(1)), 'x'))
  })
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { port: (server.address() as AddressInfo).port, short }
}

async function ask(port: number, bytes: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').pause()
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(`GET /${bytes} HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n`)
  return socket
}

/** Reads one megabit a second to the end; resolves with the bytes that came. */
async function readSteadily(socket: Socket): Promise<number> {
  let got = 0
  socket.on('readable', () => undefined)
  while (!socket.readableEnded && !socket.destroyed) {
    const some = socket.read(Math.min(TENTH, Math.max(1, socket.readableLength))) as Buffer | null
    got += some?.length ?? 0
    await pause(100)
  }
  return got
}

test('clients that read one megabit a second get their answers whole while room is short, and one that reads nothing is cut off', async () => {
  const { port, short } = await start()
  const steady = [await ask(port, LARGE), await ask(port, LARGE)].map(readSteadily)
  const silent = await ask(port, SMALLER)
  const state = { isOver: false }
  const refused = new Set<number>()
  const crowd = async (): Promise<void> => {
    while (!state.isOver) {
      refused.add((await fetch(`http://127.0.0.1:${port}/${16 * MIB}`)).status)
      await pause(500)
    }
  }
  const asking = crowd()
  const got = await Promise.all(steady)
  state.isOver = true
  await asking
  for (const bytes of got) expect(bytes).toBeGreaterThan(LARGE) // with the head
  expect(new Set(short)).toEqual(new Set(['refused', 'stopped']))
  expect([...refused]).toContain(503)
  silent.resume()
  await once(silent, 'close')
})
