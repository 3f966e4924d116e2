import { parentPort, workerData } from 'node:worker_threads'
import { collectWhenIdle } from '../../base/threads/idle-memory.ts'
import { createReader } from './reader.ts'
import type { ReadingData, ReadingRequest } from './request.ts'

function main(port: NonNullable<typeof parentPort>): void {
  collectWhenIdle()
  const { read } = createReader(workerData as ReadingData)
  port.on('message', (request: ReadingRequest) => {
    const made = read(request)
    const bytes = 'body' in made ? made.body : null
    const isOwn = bytes !== null && bytes.byteLength === bytes.buffer.byteLength
    port.postMessage(made, isOwn && bytes.buffer instanceof ArrayBuffer ? [bytes.buffer] : [])
  })
}

if (parentPort !== null) main(parentPort)
