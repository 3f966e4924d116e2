import { parentPort, workerData } from 'node:worker_threads'
import { openThreadReads, type ShortReads } from '../../store/reads.ts'
import { answerCalls } from '../../base/threads/calls.ts'
import { collectWhenIdle } from '../../base/threads/idle-memory.ts'
import type { PinRequest } from '../../server/reading/request.ts'
import { createPageMaker } from './make-page.ts'
import type { PageReply, PageRequest, PagesData } from './request.ts'

function main(port: NonNullable<typeof parentPort>): void {
  collectWhenIdle()
  const data = workerData as PagesData
  let opened: ShortReads | null = null
  const open = (): ShortReads => (opened ??= openThreadReads(data.config.data.dir))
  const make = createPageMaker(data, open)
  answerCalls(port, (request: PageRequest | PinRequest): PageReply => {
    if (!('pin' in request)) return make(request)
    open().repin(request.pin)
    return { status: 204, type: '', body: new Uint8Array(), file: null, fault: null }
  })
}

if (parentPort !== null) main(parentPort)
