import { createServer } from 'node:net'
import { endWithParent, portOf } from './child.ts'

/**
 * What Node's sockets can do at most: one fixed answer for each piece of a request that arrives, nothing of which is read.
 * `socket-child.ts BYTES`.
 */
const size = Number(process.argv[2])
const answer = Buffer.from(`HTTP/1.1 200 OK\r\ncontent-length: ${size}\r\n\r\n${'a'.repeat(size)}`)
const server = createServer({ noDelay: true }, (socket) => {
  socket.on('data', () => socket.write(answer))
  socket.on('error', () => socket.destroy())
})
endWithParent()
server.listen({ host: '127.0.0.1', port: 0 }, () => {
  const address = server.address()
  portOf(typeof address === 'object' && address !== null ? address.port : 0)
})
