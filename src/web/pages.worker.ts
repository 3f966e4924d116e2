import { parentPort, workerData } from 'node:worker_threads'
import { MirrorError } from '../core/errors.ts'
import { openShortReads } from '../store/reads.ts'
import { failureOf } from '../threads/requests.ts'
import { createPageMaker } from './make-page.ts'
import type { PageReply, PageRequest, PagesData } from './request.ts'

function main(port: NonNullable<typeof parentPort>): void {
  const data = workerData as PagesData
  const make = createPageMaker(data, () => {
    const shortReads = openShortReads(data.config.data.dir)
    if (shortReads !== null) return shortReads
    throw new MirrorError('not_ready', 'there is no database yet: the mirror is starting')
  })
  const reply = (request: PageRequest): PageReply => {
    try {
      return make(request)
    } catch (error) {
      return { failed: failureOf(error) }
    }
  }
  port.on('message', (request: PageRequest) => port.postMessage(reply(request)))
}

if (parentPort !== null) main(parentPort)
