import { type BuiltArchive, createDraft } from '../../../../archive/draft.ts'
import type { OnProgress } from '../../../../base/domain/progress.ts'
import { derivedDir } from '../../../../store/database/open.ts'
import type { Writes } from '../../../../store/writes.ts'
import { type Chunk, consumeChunks } from '../../../../base/threads/chunks.ts'
import { workerFile } from '../../../../base/threads/worker-file.ts'
import type { Bundle } from '../open.ts'
import type { ImportOptions } from '../types.ts'
import { eachInChunk } from './layout.ts'
import { archiveName } from './members.ts'
import { sendRecords } from './read.ts'

/** The records that were stored, and the archive that was built of them meanwhile. */
interface FilledRecords {
  readonly records: number
  readonly built: BuiltArchive
}

/** Reports whether all records of a bundle can be stored without a look at stored ones: there are none. */
export function canFill({ manifest }: Bundle, { osv }: Pick<Writes, 'osv'>): boolean {
  const isEmpty = osv.readArchive() === null && osv.listParts().length === 0
  return manifest.kind === 'full' && isEmpty && osv.countRecords() === 0
}

/**
 * Stores the records of a full bundle in a store without records, within the open transaction, and builds their archive
 * from the same bytes. Throws `bundle`.
 */
export async function fillRecords(
  { bundle, store, config }: Pick<ImportOptions, 'bundle' | 'store' | 'config'>,
  progress: OnProgress,
): Promise<FilledRecords> {
  const total = bundle.manifest.counts['osv-record']?.put ?? null
  const draft = createDraft(store.osv, derivedDir(config.data.dir), () => true)
  let records = 0
  try {
    draft.begin('')
    await eachVerified(bundle, (chunk) => {
      eachInChunk(chunk, (record, changed) => {
        store.osv.addRecord(record, changed)
        draft.add(record)
        records++
      })
      progress({ phase: 'records', unit: 'records', done: records, total })
    })
    draft.end()
    return { records, built: await draft.finish() }
  } finally {
    draft.close()
  }
}

/** Bytes of an archive from which a thread of its own is worth its start. */
const THREAD_FROM = 2 << 20
/** The thread creates much garbage that lives shortly: a small young generation keeps its memory small. */
const LIMITS = { maxYoungGenerationSizeMb: 8 }

/** Calls `use` with all records in chunks. Those of a large archive are read and verified in a thread of its own. */
async function eachVerified(bundle: Bundle, use: (chunk: Chunk) => void): Promise<void> {
  const archive = archiveName(bundle.manifest)
  const size = bundle.manifest.members.find(({ name }) => name === archive)?.size ?? 0
  if (size >= THREAD_FROM) {
    const data = bundle.excerpt((name) => name === archive || name.startsWith('rows/osv/osv-record'))
    const file = workerFile('records.worker', import.meta.url)
    return consumeChunks({ file, data, limits: LIMITS }, use)
  }
  await sendRecords(bundle, (chunk) => {
    use(chunk)
    return Promise.resolve(new Uint8Array(chunk.buffer))
  })
}
