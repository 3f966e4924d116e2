import { once } from 'node:events'
import { type RequestListener, createServer } from 'node:http'
import { type AddressInfo, type Socket, connect } from 'node:net'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { limitConnections } from '../../../src/base/connections/limit.ts'

afterEach(() => {
  vi.useRealTimers()
})

/** More than the system's buffers of a connection have room for. */
const LARGE = Buffer.alloc(24 * 2 ** 20, 'x')

/** Answers when the whole body has come: with much at `/large`, otherwise with one word. */
const handler: RequestListener = (request, response) => {
  request.resume().on('end', () => response.end(request.url === '/large' ? LARGE : 'here'))
}

interface Limited {
  readonly port: number
  readonly closed: string[]
}

async function start(most: number, mostPerAddress = 0): Promise<Limited> {
  const server = createServer({ keepAliveTimeout: 60_000 }, handler)
  const closed: string[] = []
  const onClosed = (why: string): void => void closed.push(why)
  limitConnections(server, { most, mostPerAddress, log: null, onClosed })
  server.listen(0, '127.0.0.1')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, closed }
}

/** Opens a connection that sends this; `from`: the address it comes from. */
async function open({ port }: Limited, text: string, from = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from })
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined)
  await Promise.race([once(socket, 'connect'), once(socket, 'close')])
  socket.write(text)
  return socket
}

/** Opens a connection and waits for the begin of its answer. */
async function answered(limited: Limited, text: string, from?: string): Promise<Socket> {
  const socket = await open(limited, text, from)
  await once(socket, 'data')
  return socket
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: m\r\n\r\n`
const HEAD = 'POST / HTTP/1.1\r\nHost: m\r\nContent-Length: 100000\r\n\r\n'
/** The same, answered with 100 as soon as it was parsed. */
const EXPECTING = HEAD.replace('\r\n\r\n', '\r\nExpect: 100-continue\r\n\r\n')
const isClosed = (socket: Socket): boolean => socket.closed

test('a request whose body does not come makes room before one whose body comes, and before an idle connection', async () => {
  const limited = await start(4)
  const idle = await answered(limited, get('/'))
  const sending = await answered(limited, EXPECTING)
  sending.write('x'.repeat(60_000))
  const waiting = [await answered(limited, EXPECTING), await answered(limited, EXPECTING)]
  for (const one of waiting) one.resume()
  await answered(limited, get('/'))
  await expect.poll(() => waiting.filter(isClosed)).toHaveLength(1)
  sending.write('x'.repeat(40_000))
  expect(String((await once(sending, 'data'))[0])).toMatch(/^HTTP\/1\.1 200 /)
  expect([isClosed(idle), limited.closed]).toEqual([false, ['silent']])
})

test('a client that takes nothing of its answer for ten seconds makes room, one that still reads does not', async () => {
  const limited = await start(3)
  vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] })
  const stopped = await answered(limited, get('/large'))
  stopped.pause()
  const reading = await answered(limited, get('/large'))
  reading.pause()
  const third = await answered(limited, get('/'))
  for (let second = 0; second < 12; second++) {
    const enough = reading.bytesRead + 2 ** 20
    reading.resume()
    while (reading.bytesRead < enough) await once(reading, 'data')
    reading.pause()
    vi.advanceTimersByTime(1000)
  }
  await answered(limited, get('/'))
  await expect.poll(() => limited.closed).toEqual(['unread'])
  stopped.resume()
  await once(stopped, 'close')
  expect([isClosed(reading), isClosed(third)]).toEqual([false, false])
})

test('a client of whose answer the system takes a step every twelve seconds does not make room', async () => {
  const limited = await start(2)
  vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] })
  const steady = await answered(limited, get('/large'))
  steady.pause()
  const idle = await answered(limited, get('/'))
  const pass = (seconds: number): void => {
    for (let second = 0; second < seconds; second++) vi.advanceTimersByTime(1000)
  }
  pass(9)
  const enough = steady.bytesRead + 6 * 2 ** 20
  steady.resume()
  while (steady.bytesRead < enough) await once(steady, 'data')
  steady.pause()
  pass(12)
  await answered(limited, get('/'))
  await expect.poll(() => isClosed(idle)).toBe(true)
  expect([isClosed(steady), limited.closed]).toEqual([false, ['idle']])
})

test('one address takes no more than its share, and its own connections make room for it', async () => {
  const limited = await start(100, 2)
  const heads = [await open(limited, HEAD, '127.0.0.2'), await open(limited, HEAD, '127.0.0.2')]
  for (const one of heads) one.resume()
  const other = await open(limited, HEAD, '127.0.0.3')
  await answered(limited, get('/'), '127.0.0.2')
  // Which of the two has sent fewer bytes a second, the machine decides.
  await expect.poll(() => heads.filter(isClosed)).toHaveLength(1)
  expect([isClosed(other), limited.closed]).toEqual([false, ['silent']])
})
