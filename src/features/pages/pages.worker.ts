import { parentPort, workerData } from 'node:worker_threads'
import { openThreadReads } from '../../store/reads.ts'
import { collectWhenIdle } from '../../base/threads/idle-memory.ts'
import { failureOf } from '../../base/threads/requests.ts'
import type { PinRequest } from '../../server/reading/request.ts'
import { createPageMaker } from './make-page.ts'
import type { PageReply, PageRequest, PagesData } from './request.ts'

function main(port: NonNullable<typeof parentPort>): void {
  collectWhenIdle()
  const data = workerData as PagesData
  let opened: ReturnType<typeof openThreadReads> | null = null
  const open = (): NonNullable<typeof opened> => (opened ??= openThreadReads(data.config.data.dir))
  const make = createPageMaker(data, open)
  const reply = (request: PageRequest | PinRequest): PageReply => {
    try {
      if (!('pin' in request)) return make(request)
      open().repin(request.pin)
      return { status: 204, type: '', body: new Uint8Array(), fault: null }
    } catch (error) {
      return { failed: failureOf(error) }
    }
  }
  port.on('message', (request: PageRequest | PinRequest) => port.postMessage(reply(request)))
}

if (parentPort !== null) main(parentPort)
