import { deflatedOf } from '../../../../../base/gzip/member.ts'
import type { OsvReader } from '../../../../../store/osv/reads.ts'
import type { SendChunk } from '../../../../../base/threads/chunks.ts'
import { type ReadRecord, eachBatch } from './contents.ts'
import { createPreparedWriter } from './layout.ts'
import { type PrepareRules, type RecordContent, prepareRecord } from './prepared.ts'

/** Reads and prepares all records, and sends them in chunks (`eachPrepared`). */
export async function sendPrepared(
  reads: Pick<OsvReader, 'eachSum'>,
  rules: PrepareRules,
  send: SendChunk,
): Promise<void> {
  const writer = createPreparedWriter(send)
  for (const batch of eachBatch(reads))
    for (const record of batch) await writer.add(prepareRecord(contentIn(record), rules))
  await writer.end()
}

/** Returns a stored record as it is prepared from. */
export function contentIn({ id, sha256, stamp, body, content }: ReadRecord): RecordContent {
  const crc32 = body.readUInt32LE(body.length - 8) // was compared with the content
  return { id, sha256, stamp, content, crc32, deflated: deflatedOf(body) }
}
