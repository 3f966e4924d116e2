import { parentPort, workerData } from 'node:worker_threads'
import { answerCalls } from '../../base/threads/calls.ts'
import { collectWhenIdle } from '../../base/threads/idle-memory.ts'
import { createReader } from './reader.ts'
import type { ReadReply, ReadingData } from './request.ts'

function main(port: NonNullable<typeof parentPort>): void {
  collectWhenIdle()
  const { read } = createReader(workerData as ReadingData)
  answerCalls(port, read, movedOf)
}

/** A body that has a buffer of its own. */
function movedOf(reply: ReadReply): ArrayBuffer[] {
  const bytes = 'body' in reply ? reply.body : null
  const isOwn = bytes !== null && bytes.byteLength === bytes.buffer.byteLength
  return isOwn && bytes.buffer instanceof ArrayBuffer ? [bytes.buffer] : []
}

if (parentPort !== null) main(parentPort)
