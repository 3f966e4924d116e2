import { readSync } from 'node:fs'
import { MirrorError } from '../../../base/errors.ts'
import { freeWhole } from '../../../base/free-bytes.ts'
import { deflatedOf } from '../../../base/gzip/member.ts'
import { createZipWriter } from '../../../archive/zip/writer.ts'
import { memberOf } from './self-check.ts'
import type { ExportSnapshot } from './snapshot.ts'
import type { Blob, RowsWritten } from './rows.ts'
import type { BundleWriter } from './writer.ts'

/** Approximate bytes of a record in an archive. */
const RECORD_BYTES = 1500

/** Returns the estimated bytes that follow the rows. */
export function sizeOfData({ reads, archive }: ExportSnapshot, { records, blobs }: RowsWritten): number {
  let bytes = (archive?.info.size ?? 0) + records.length * RECORD_BYTES
  for (const blob of blobs)
    bytes += blob.kind === 'catalog-document' ? blob.stored : (reads.feeds.readDocument(blob.path)?.body?.length ?? 0)
  return bytes
}

/** Writes the bytes to which the rows refer: the archive, or one of the differing records, and the documents. */
export async function writeData(
  snapshot: ExportSnapshot,
  { records, blobs }: RowsWritten,
  writer: BundleWriter,
  onBytes: (bytes: number) => void,
): Promise<void> {
  const start = writer.size()
  function* reported(chunks: Iterable<Buffer>): Generator<Buffer> {
    let done = writer.size() - start
    for (const chunk of chunks) {
      yield chunk
      onBytes((done += chunk.length))
    }
  }
  const { archive } = snapshot
  if (archive !== null) {
    const { fd, info } = archive
    await writer.addStored('osv/all.zip', info.size, reported(chunksOfFile(fd, info.size)))
  }
  if (records.length > 0) await writer.addStored('osv/changed.zip', null, reported(archiveOf(snapshot, records)))
  for (const blob of blobs) {
    const name = memberOf(blob)
    if (blob.kind === 'document') {
      const body = snapshot.reads.feeds.readDocument(blob.path)?.body ?? lost(blob.path)
      await writer.addStored(name, body.length, reported([body]))
    } else await writer.addStored(name, blob.stored, reported(chunksOf(snapshot, blob)))
  }
}

const CHUNK = 1 << 20

/** Yields a file's bytes in chunks, each valid until the next. */
function* chunksOfFile(fd: number, size: number): Generator<Buffer> {
  const buffer = Buffer.allocUnsafe(CHUNK)
  for (let at = 0; at < size;) {
    const read = readSync(fd, buffer, 0, Math.min(CHUNK, size - at), at)
    if (read === 0) return // the writer checks the size
    yield buffer.subarray(0, read)
    at += read
  }
}

/** Builds an archive of some records from their stored streams. */
function* archiveOf({ reads }: ExportSnapshot, ids: readonly string[]): Generator<Buffer> {
  let ready: Buffer[] = []
  const writer = createZipWriter((chunk) => ready.push(Buffer.from(chunk)))
  for (const id of ids) {
    const [row] = [...reads.osv.eachContent(id, `${id}\0`)]
    if (row === undefined) lost(id)
    const [, crc32, size, body] = row
    writer.add({ name: `${id}.json`, crc32, size, deflated: deflatedOf(body) })
    yield* ready
    ready = []
  }
  writer.finish()
  yield* ready
}

function* chunksOf(
  { reads }: ExportSnapshot,
  { name }: Extract<Blob, { kind: 'catalog-document' }>,
): Generator<Buffer> {
  for (let number = 0; ; number++) {
    const bytes = reads.catalog.readChunk(name, number)
    if (bytes === null) return // the writer checks the size
    yield bytes
    freeWhole(bytes) // otherwise about sixty chunks accumulate before garbage collection
  }
}

function lost(what: string): never {
  throw new MirrorError('corrupt', `the bytes of ${what} are lost: run "patchmirror doctor --data --repair"`)
}
