import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import { readNamedFile, replacePrivateFile } from '../../../base/files.ts'
import { readSummary } from '../../../store/replication/summary.ts'
import type { Writes } from '../../../store/writer.ts'
import { describeHeld } from '../export/record-state.ts'
import type { ImportReport } from '../import/types.ts'

/** Receipts in an outbox. */
const RECEIPT = /^[^.].*\.need$/
/** Bytes of a receipt at most: it is the header of a need file alone. */
const LARGEST = 65_536

/**
 * Writes to an inbox which state this mirror has after an import, as `patchmirror bundle need --brief` does, where that is the
 * bundle's alone. Returns false where nothing is written, as on a read-only medium: the outbox then sends whole deltas.
 */
export function writeReceipt(
  folder: string,
  { ledger, ...reads }: Writes,
  { digest, held }: Pick<ImportReport, 'digest' | 'held'>,
): boolean {
  const last = ledger.readLastImport()
  if (last === null || held !== digest || last.digest !== digest) return false
  const header = describeHeld({ ...reads, ledger }, last.sources, true)
  try {
    replacePrivateFile(
      join(folder, `patchmirror-${header.mirror.slice(0, 8)}.need`),
      gzipSync(`${JSON.stringify(header)}\n`),
    )
    return true
  } catch {
    return false
  }
}

/**
 * Returns a receipt of an exported state, by its digest; null unless all receipts in the outbox are of this state, and there is
 * one. Throws the system's error for an unreadable folder, and `bundle` for a receipt that cannot be read.
 */
export async function receiptOf(folder: string, digest: string): Promise<Buffer | null> {
  const names = readdirSync(folder).filter((name) => RECEIPT.test(name))
  let found: Buffer | null = null
  for (const name of names) {
    const receipt = await readReceipt(join(folder, name))
    if (receipt.digest !== digest) return null
    found = receipt.bytes
  }
  return found
}

async function readReceipt(path: string): Promise<{ readonly bytes: Buffer; readonly digest: string }> {
  try {
    const bytes = readNamedFile(path, LARGEST)
    const { header } = await readSummary([bytes])
    return { bytes, digest: header.digest }
  } catch (error) {
    const why = `the receipt ${path} cannot be read (${messageOf(error)}): remove it, or bring it again`
    throw new MirrorError('bundle', why, { cause: error })
  }
}
