import { parentPort, workerData } from 'node:worker_threads'
import { MirrorError } from '../core/errors.ts'
import { openShortReads } from '../store/reads.ts'
import { collectWhenIdle } from '../threads/idle-memory.ts'
import { failureOf } from '../threads/requests.ts'
import type { PinRequest } from '../api/reading/request.ts'
import { createPageMaker } from './make-page.ts'
import type { PageReply, PageRequest, PagesData } from './request.ts'

function main(port: NonNullable<typeof parentPort>): void {
  collectWhenIdle()
  const data = workerData as PagesData
  let opened: ReturnType<typeof openShortReads> = null
  const open = (): NonNullable<typeof opened> => {
    opened ??= openShortReads(data.config.data.dir)
    if (opened !== null) return opened
    throw new MirrorError('not_ready', 'there is no database yet: the mirror is starting')
  }
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
