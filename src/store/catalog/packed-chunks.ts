import { freeBytes } from '../../base/free-bytes.ts'
import type { Db } from '../database/open.ts'
import { queries } from '../database/query.ts'

/** A document to be stored; its packed size follows from its chunks. */
export interface CatalogRow {
  readonly digest: string
  readonly size: number
  readonly type: string
  /** Unix seconds. */
  readonly changed: number
}

/**
 * Prepares the writes of chunks. Those of a document come before its row, so that a write that fails between them leaves no
 * document without its content. Chunks without a row, also those of an import that was killed, may be of other bytes: they are
 * replaced.
 */
export function prepareChunks(db: Db) {
  const { run } = queries(db)
  const adopt = db.prepare(
    'INSERT INTO catalog_chunk SELECT ?, number, bytes FROM incoming_chunk WHERE sink = ? ORDER BY number',
  )
  const stored = db.prepare<[number], number>('SELECT sum(length(bytes)) FROM incoming_chunk WHERE sink = ?').pluck()
  const insert = db.prepare('INSERT INTO catalog_document VALUES (?, ?, ?, ?, ?)')
  const dropLeft = db.prepare('DELETE FROM catalog_chunk WHERE digest = ?')
  const isStored = db.prepare<[string], number>('SELECT 1 FROM catalog_document WHERE digest = ?').pluck()
  const only = db.prepare('INSERT OR IGNORE INTO catalog_chunk VALUES (?, 0, ?)')
  return {
    put: run<[sink: number, number: number, bytes: Buffer]>('INSERT INTO incoming_chunk VALUES (?, ?, ?)'),
    drop: run<[sink: number]>('DELETE FROM incoming_chunk WHERE sink = ?'),
    /** Stores a document of a single chunk, as most are, without the temporary table. False: it is stored already. */
    insertWhole(bytes: Buffer, { digest, size, type, changed }: CatalogRow): boolean {
      if (only.run(digest, bytes).changes === 0) {
        if (isStored.get(digest) === 1) return false
        dropLeft.run(digest)
        only.run(digest, bytes)
      }
      insert.run(digest, size, bytes.length, type, changed)
      return true
    },
    /** Stores the chunks of a sink as a document, which is not stored. */
    adopt(sink: number, { digest, size, type, changed }: CatalogRow): void {
      dropLeft.run(digest)
      adopt.run(digest, sink)
      insert.run(digest, size, Number(stored.get(sink)), type, changed)
    },
  }
}

/** The packed chunks of a sink: those in memory, and those in the temporary table. */
export function createPackedChunks(sink: number, chunks: ReturnType<typeof prepareChunks>) {
  const ready: Buffer[] = []
  let number = 0
  const flush = (): void => {
    for (const chunk of ready.splice(0)) {
      chunks.put(sink, number++, chunk)
      freeBytes(chunk)
    }
  }
  return {
    isEmpty: (): boolean => number + ready.length === 0,
    add: (chunk: Buffer): void => void ready.push(chunk),
    flush,
    /** Stores them as a document. False: a document of one chunk is stored already. */
    store(row: CatalogRow): boolean {
      const [first] = ready
      if (number === 0 && ready.length === 1 && first !== undefined) return chunks.insertWhole(first, row)
      flush()
      chunks.adopt(sink, row)
      return true
    },
    drop(): void {
      for (const chunk of ready.splice(0)) freeBytes(chunk)
      if (number > 0) chunks.drop(sink)
    },
  }
}
