import Fastify from 'fastify'
import { endWithParent, portOf } from './child.ts'

/** The yardstick: one Fastify route that sends one fixed buffer. `bare-child.ts BYTES`. */
const body = Buffer.alloc(Number(process.argv[2]), 'a')
const app = Fastify()
app.get('/external/osv/:id', (_request, reply) => reply.send(body))
endWithParent()
await app.listen({ host: '127.0.0.1', port: 0 })
const address = app.server.address()
portOf(typeof address === 'object' && address !== null ? address.port : 0)
