import { open } from 'node:fs/promises'
import { runPool } from '../../../base/pool.ts'
import { type ObjectBody, FleetError } from './object-store.ts'
import type { Answered, Condition, Part, S3Requests } from './s3.ts'
import { type StoreCall, type ExpectedFailure, type StoreSender } from './s3-sender.ts'

/** Parts that S3 allows. */
const MAX_PARTS = 10_000
/** Parts that are in memory at once. */
const WIDTH = 3

interface Upload {
  readonly requests: S3Requests
  readonly send: StoreSender
  readonly call: StoreCall
  readonly partBytes: number
}

/** Uploads a file in parts, of which the object is made under the condition; the upload is aborted when that fails. */
export async function uploadParts(
  { requests, send, call, partBytes }: Upload,
  name: string,
  body: Exclude<ObjectBody, Buffer>,
  condition: Condition,
): Promise<Answered | ExpectedFailure> {
  const part = { verb: call.verb, what: call.what }
  const sent = async <T>(request: (signal: AbortSignal) => Promise<T>, bytes = 0): Promise<T> => {
    const answer = await send({ ...part, bytes }, request)
    if (typeof answer === 'string') throw new FleetError('refused', `${call.what}: unexpected answer: ${answer}`)
    return answer
  }
  const upload = await sent((signal) => requests.startUpload(name, signal))
  try {
    const parts = await sendParts(body, partBytes, (number, bytes) =>
      sent((signal) => requests.putPart(upload, number, bytes, signal), bytes.length),
    )
    const answer = await send({ ...part, isOnce: true }, (signal) =>
      requests.completeUpload(upload, parts, condition, signal),
    )
    if (typeof answer !== 'string') return { ...answer, size: body.size }
    await abort()
    return answer
  } catch (error) {
    await abort()
    throw error
  }

  /** What remains of an upload that cannot be aborted is removed by a rule of the bucket (docs/guides/fleet.md). */
  async function abort(): Promise<void> {
    await sent((signal) => requests.abortUpload(upload, signal)).catch(() => undefined)
  }
}

async function sendParts(
  { file, size }: Exclude<ObjectBody, Buffer>,
  smallest: number,
  put: (number: number, bytes: Buffer) => Promise<Part>,
): Promise<Part[]> {
  const partBytes = Math.max(smallest, Math.ceil(size / MAX_PARTS))
  const count = Math.ceil(size / partBytes)
  const parts: Part[] = []
  const handle = await open(file)
  try {
    await runPool([...Array(count).keys()], WIDTH, async (at) => {
      const length = Math.min(partBytes, size - at * partBytes)
      const bytes = Buffer.allocUnsafe(length)
      const { bytesRead } = await handle.read(bytes, 0, length, at * partBytes)
      if (bytesRead !== length) throw new FleetError('refused', `${file} became shorter while it was sent`)
      parts[at] = await put(at + 1, bytes)
    })
  } finally {
    await handle.close()
  }
  return parts
}
