import { MirrorError } from '../../../base/errors.ts'
import type { SourceName } from '../../../base/domain/sources.ts'
import { type Difference, eachDifference } from './difference.ts'
import type { CarriedReader } from '../../../store/replication/reader.ts'
import type { StatePass } from './summary.ts'
import { type CarriedRow, type RowKind, compareKeys, valueOf } from '../../../store/replication/rows.ts'
import { CAPS, type ManifestHead } from '../format/manifest.ts'
import type { KnownState } from './delta-base.ts'
import type { BundleWriter } from './writer.ts'

/** The rows of a bundle that were written, and the data to which they refer. */
export interface RowsWritten {
  readonly counts: ManifestHead['counts']
  /** Records that differ, in id order; empty for a full bundle, whose archive has all. */
  readonly records: string[]
  readonly blobs: Blob[]
  /** Ids of the records whose dates belong to the bundle: those that differ; null: all. */
  readonly dated: readonly string[] | null
}

/** Bytes to which a row refers: a feed document by its path, or a catalog document by its digest. */
export type Blob =
  | { readonly kind: 'document'; readonly name: string; readonly path: string }
  | { readonly kind: 'catalog-document'; readonly name: string; readonly stored: number }

const PACK_BYTES = 4 * 2 ** 20

/**
 * Writes the rows of some sources into packs: all of them, or, with states, those that differ from any of these. One
 * pack is in memory at a time. All rows are read through `pass`. `onRows` gets the number of rows written so far.
 */
export async function writeRows(
  { carried, pass }: { readonly carried: CarriedReader; readonly pass: StatePass },
  sources: readonly SourceName[],
  states: Partial<Record<SourceName, KnownState[]>> | null,
  writer: BundleWriter,
  onRows: (rows: number) => void,
): Promise<RowsWritten> {
  const counts: Partial<Record<RowKind, { put: number; removed: number }>> = {}
  const blobs = new Map<string, Blob>()
  const records: string[] = []
  const dated = states === null ? null : new Set<string>()
  let done = 0
  for (const source of sources) {
    const known = states?.[source] ?? []
    const lines = await Promise.all(known.map((state) => state.lines()))
    const packs = createPacks(writer, source)
    for await (const difference of eachDifference(pass, source, lines)) {
      const { kind, key, row } = difference
      const count = (counts[kind] ??= { put: 0, removed: 0 })
      count[row === null ? 'removed' : 'put']++
      await packs.add(kind, row === null ? JSON.stringify({ removed: key }) : carried.rowLine(row))
      const blob = blobOf(difference)
      if (blob !== null) blobs.set(blob.name, blob)
      if (states !== null && kind === 'osv-record' && row !== null) records.push(key)
      if (kind === 'osv-record' || kind === 'osv-tombstone') dated?.add(key)
      if (++done % 1000 === 0) onRows(done)
    }
    await packs.end()
  }
  onRows(done)
  const ids = dated && [...dated].sort(compareKeys)
  return { counts, records, blobs: [...blobs.values()], dated: ids }
}

function blobOf({ row }: Difference): Blob | null {
  if (row?.kind !== 'document' && row?.kind !== 'catalog-document') return null
  const value = valueOf(row as CarriedRow<typeof row.kind>)
  if ('stored' in value) return { kind: 'catalog-document', name: value.blob, stored: value.stored }
  const { blob: name, key: path } = value
  return name === null ? null : { kind: 'document', name, path }
}

function createPacks(writer: BundleWriter, source: SourceName) {
  let kind: RowKind | null = null
  let number = 0
  let lines: string[] = []
  let bytes = 0
  const end = async (): Promise<void> => {
    if (kind === null || lines.length === 0) return
    const name = `rows/${source}/${kind}-${String(++number).padStart(5, '0')}.jsonl`
    await writer.addDeflated(name, Buffer.from(`${lines.join('\n')}\n`))
    lines = []
    bytes = 0
  }
  return {
    end,
    async add(of: RowKind, line: string): Promise<void> {
      const size = Buffer.byteLength(line) + 1
      if (size > CAPS.packBytes)
        throw new MirrorError(
          'bundle',
          `a ${of} of ${source} takes ${size} bytes as a row, over the ${CAPS.packBytes} that a pack may have: ${line.slice(0, 200)}`,
        )
      if (of !== kind || bytes + size > PACK_BYTES) await end()
      if (of !== kind) number = 0
      kind = of
      lines.push(line)
      bytes += size
    },
  }
}
