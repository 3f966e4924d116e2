import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import { readNamedFile, replacePrivateFile } from '../../../base/files.ts'
import { readSummary } from '../../../store/replication/summary.ts'
import type { CarriedReader } from '../../../store/replication/reader.ts'
import { type DescribedReads, describeHeld } from '../export/record-state.ts'
import type { ImportReport } from '../import/types.ts'

/** Receipts in an outbox. */
const RECEIPT = /^[^.].*\.need$/
/** Bytes of a receipt at most: it is the header of a need file alone. */
const LARGEST = 65_536

/**
 * Writes to an inbox which state this mirror has, as `patchmirror bundle need --brief` does: that of the import that just ended, or
 * what is read from all rows. Returns false where nothing can be written, as on a read-only medium: the outbox then sends whole deltas.
 */
export function writeReceipt(
  folder: string,
  { carried, ...reads }: DescribedReads & { readonly carried: Pick<CarriedReader, 'digestSources'> },
  imported: Pick<ImportReport, 'digest' | 'held'> | null,
): boolean {
  const last = reads.ledger.readLastImport()
  const isLast = imported !== null && imported.held === imported.digest && last?.digest === imported.digest
  const digests = isLast ? last.sources : carried.digestSources().sources
  const header = describeHeld(reads, digests, true)
  const path = join(folder, `patchmirror-${header.mirror.slice(0, 8)}.need`)
  try {
    replacePrivateFile(path, gzipSync(`${JSON.stringify(header)}\n`))
    return true
  } catch {
    return false
  }
}

/**
 * Reports whether there are receipts in an outbox, and all are of this exported state, by its digest. Throws the system's error for
 * an unreadable folder, and `bundle` for a receipt that cannot be read.
 */
export async function hasArrived(folder: string, digest: string): Promise<boolean> {
  const names = readdirSync(folder).filter((name) => RECEIPT.test(name))
  for (const name of names) if ((await digestOfReceipt(join(folder, name))) !== digest) return false
  return names.length > 0
}

async function digestOfReceipt(path: string): Promise<string> {
  try {
    const { header } = await readSummary([readNamedFile(path, LARGEST)])
    return header.digest
  } catch (error) {
    const why = `the receipt ${path} cannot be read (${messageOf(error)}): remove it, or bring it again`
    throw new MirrorError('bundle', why, { cause: error })
  }
}
