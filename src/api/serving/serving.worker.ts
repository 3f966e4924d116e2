import { createServer } from 'node:net'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { messageOf } from '../../core/errors.ts'
import { collectWhenIdle } from '../../threads/idle-memory.ts'
import { type WorkerStarted, openOrRefuse } from '../../threads/supervisor.ts'
import { WAITING_BYTES } from '../http/node-server.ts'
import { followStore } from '../snapshot/served.ts'
import { createClients } from './clients.ts'
import type { FromServing, ServingStart, ToServing } from './messages.ts'
import { openThreadRecords } from './records.ts'

/** A serving thread beside the main one: it accepts connections of the same port, and answers plain GETs of records. */
function main(port: MessagePort): void {
  const start = workerData as ServingStart
  const tell = (message: FromServing | WorkerStarted): void => port.postMessage(message)
  const records = openOrRefuse(port, () => openThreadRecords(start))
  if (records === null) return
  collectWhenIdle()
  const log = {
    info: (_: object, message: string) => tell({ type: 'log', level: 'info', message }),
    error({ err }: { readonly err?: unknown }, message: string) {
      tell({ type: 'log', level: 'error', message: `${message} (${messageOf(err)})` })
    },
  }
  const look = (release = false): void => {
    if (records.look(release)) tell({ type: 'moved' })
  }
  let isCopied = false
  const follower = followStore({ refresh: () => look(isCopied) }, log)
  const clients = createClients(start, records, look, tell)
  // Nothing is read before a connection is admitted: an end that came before would not be noticed.
  const options = { allowHalfOpen: true, noDelay: true, pauseOnConnect: true }
  const server = createServer({ ...options, highWaterMark: WAITING_BYTES }, clients.add)
  const end = (): void => {
    follower.stop()
    records.close()
    port.close()
  }
  server.once('error', (error) => {
    tell({
      type: 'refused',
      code: 'config',
      message: `a serving thread (server.threads) cannot listen on ${start.host} port ${start.port}: ${messageOf(error)}`,
    })
    end()
  })
  const { host, backlog } = start
  server.listen({ host, port: start.port, backlog, reusePort: true }, () => tell({ type: 'ready' }))
  port.on('message', (message: ToServing) => {
    if (message.type === 'look') {
      isCopied = true
      follower.look()
      isCopied = false
    } else if (message.type === 'cut') clients.cut()
    else if (message.type !== 'stop') clients.decide(message)
    else {
      clients.close()
      server.close(end) // once all its connections are closed
    }
  })
}

if (parentPort !== null) main(parentPort)
