import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, type Socket, connect } from 'node:net'
import { afterEach, expect, onTestFinished } from 'vitest'
import { limitPipelining } from '../../../src/base/connections/pipelining.ts'
import { longTest, test } from '../../support/tables.ts'
import { type Served, closeAll, serve } from '../../server/served.ts'

afterEach(closeAll)

const REQUEST = 'GET /-/status HTTP/1.1\r\nHost: m\r\n\r\n'
const LAST = 'GET /-/health HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n'

const start = () => serve((store) => store.publishOsv({ one: '{}' }))

longTest.each([1000, 10_000])('%i requests sent at once by a client that reads are all answered', async (count) => {
  const { raw } = await start()
  const text = await raw(REQUEST.repeat(count) + LAST)
  expect(text.split('HTTP/1.1 200 OK').length - 1).toBe(count + 1)
  expect(text.endsWith('{"status":"ok"}')).toBe(true)
})

test('large heads that wait on one connection are read no further than their bytes allow', async () => {
  let came = 0
  const handler = limitPipelining(() => undefined) // the first is never answered
  const server = createServer({ maxHeaderSize: 80_000 }, (request, response) => {
    came++
    handler(request, response)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  onTestFinished(() => {
    socket.destroy()
    server.closeAllConnections()
    server.close()
  })
  socket.on('error', () => undefined)
  socket.write(`GET / HTTP/1.1\r\nHost: m\r\nX-Long: ${'x'.repeat(60_000)}\r\n\r\n`.repeat(40))
  await expect.poll(() => came).toBeGreaterThan(1)
  for (let turn = 0; turn < 500; turn++) await new Promise((resolve) => setImmediate(resolve))
  expect(came).toBeLessThan(8)
})

longTest('clients that send and never read leave the other clients their turn', async () => {
  const served = await start()
  const sockets = Array.from({ length: 8 }, () => stuff(served, 4000))
  for (let again = 0; again < 20; again++) {
    expect((await served.get('/-/health')).status).toBe(200)
  }
  // All of them still wait for answers that they do not take, and yet the others were served.
  expect(sockets.filter((socket) => socket.destroyed)).toEqual([])
  for (const socket of sockets) socket.destroy()
  expect((await served.get('/-/status')).status).toBe(200)
})

function stuff({ port }: Served, count: number): Socket {
  const socket = connect(port, '127.0.0.1').pause()
  socket.on('error', () => undefined)
  socket.write(REQUEST.repeat(count))
  return socket
}
