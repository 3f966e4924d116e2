import type { OsvReader } from '../../../../../store/osv/reads.ts'
import { consumeChunks } from '../../../../../base/threads/chunks.ts'
import { workerFile } from '../../../../../base/threads/worker-file.ts'
import { eachPrepared } from './layout.ts'
import type { PrepareStart } from './prepare.worker.ts'
import type { PrepareRules, PreparedRecord } from './prepared.ts'
import { sendPrepared } from './send.ts'

/** What records are read from to prepare all of them. */
export interface PrepareOptions {
  readonly reads: Pick<OsvReader, 'eachSum' | 'countRecords'>
  readonly rules: PrepareRules
  /** The data folder and the snapshot's id, so that another thread reads the same one. */
  readonly source: Pick<PrepareStart, 'dataDir' | 'snapshot'>
  /** Yields to other work from time to time; throws when the work is to end. */
  readonly pause: () => Promise<void>
}

/** Records from which a thread of its own is worth its start. */
const THREAD_FROM = 4_000
/** The thread creates much garbage that lives shortly: a small young generation keeps its memory small. */
const LIMITS = { maxYoungGenerationSizeMb: 6, maxOldGenerationSizeMb: 1000 }

/**
 * Calls `use` with all records in the order of their ids; their buffers are valid during the call. Many are read and
 * analysed in a thread of their own, so that the caller can compress and write at the same time.
 */
export async function prepareAll(
  { reads, rules, source, pause }: PrepareOptions,
  use: (record: PreparedRecord) => void,
): Promise<void> {
  const { vendors, chosen } = rules
  if (reads.countRecords() >= THREAD_FROM) {
    const data: PrepareStart = {
      ...source,
      vendors: [...vendors],
      chosen: chosen && [...chosen],
    }
    const file = workerFile('prepare.worker', import.meta.url)
    return consumeChunks({ file, data, limits: LIMITS }, (chunk) => eachPrepared(chunk, use))
  }
  await sendPrepared(reads, rules, async (chunk) => {
    eachPrepared(chunk, use)
    await pause()
    return new Uint8Array(chunk.buffer)
  })
}
