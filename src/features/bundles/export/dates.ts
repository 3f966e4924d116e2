import { Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import { sha256Hex } from '../../../base/digest.ts'
import { faultOfRecordId } from '../../../base/domain/record-id.ts'
import type { RecordDates } from '../../../store/dates/reads.ts'
import { DATES_HEADER, datesLine } from '../format/dates.ts'
import type { ExportSnapshot } from './snapshot.ts'
import type { BundleWriter } from './writer.ts'

const PIECE = 65_536

/**
 * Writes the dates of records as the last member: of all, also of removed ones, or, with ids, of these. Returns how many;
 * without any there is no member.
 */
export async function writeDates(
  { reads }: Pick<ExportSnapshot, 'reads'>,
  ids: readonly string[] | null,
  writer: BundleWriter,
): Promise<number> {
  const counted = { records: 0 }
  const rows = ids === null ? reads.dates.eachDates() : datesOf(reads, ids)
  const chunks: Buffer[] = []
  for await (const chunk of Readable.from(textOf(rows, counted)).pipe(createGzip({ level: 6 })))
    chunks.push(chunk as Buffer)
  if (counted.records === 0) return 0
  const bytes = Buffer.concat(chunks)
  await writer.addStored(`blobs/${sha256Hex(bytes)}.gz`, bytes.length, [bytes])
  return counted.records
}

function* datesOf({ dates }: ExportSnapshot['reads'], ids: readonly string[]): Generator<RecordDates> {
  for (const id of ids) {
    const one = dates.readDates(id)
    if (one !== null) yield one
  }
}

function* textOf(rows: Iterable<RecordDates>, counted: { records: number }): Generator<string> {
  let text = `${DATES_HEADER}\n`
  for (const row of rows) {
    if (faultOfRecordId(row.id) !== null) continue // no mirror accepts it
    counted.records++
    text += `${datesLine(row)}\n`
    if (text.length < PIECE) continue
    yield text
    text = ''
  }
  yield text
}
