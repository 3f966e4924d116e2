import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import { counted, plainText } from '../../../base/text.ts'
import { readNamedFile, replacePrivateFile } from '../../../base/files.ts'
import { readSummary } from '../export/summary.ts'
import type { CarriedReader } from '../../../store/replication/reader.ts'
import { type DescribedReads, describeHeld } from '../export/record-state.ts'
import type { ImportReport } from '../import/types.ts'
import { named } from './inbox.ts'

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

/** What was sent last, and what else receipts may name. */
interface Sent {
  readonly sequence: number
  /** Undefined: no delta can build on it any more. */
  readonly digest: string | undefined
  /** The sequences of all exported states by their digests. */
  readonly exported: ReadonlyMap<string, number>
}

/** What receipts make of a delta. */
export interface Confirmation {
  /** There are some, and all name what was sent last. */
  readonly isThin: boolean
  /** The same for people, with the reason; null: there are none. */
  readonly why: string | null
}

/**
 * Reads what receipts in an outbox say of what was sent last. Throws the system's error for an unreadable folder, and `bundle` for a
 * receipt that cannot be read.
 */
export async function readReceipts(folder: string, { sequence, digest, exported }: Sent): Promise<Confirmation> {
  const names = readdirSync(folder).filter((name) => RECEIPT.test(name))
  if (names.length === 0) return { isThin: false, why: null }
  if (digest === undefined) return { isThin: false, why: `whole: bundle ${sequence} is not remembered here` }
  const others: { readonly name: string; readonly sequence: number }[] = []
  for (const name of names) {
    const has = await digestOfReceipt(join(folder, name))
    if (has !== digest) others.push({ name, sequence: exported.get(has) ?? 0 })
  }
  const say = counted(names.length, 'receipt names', 'receipts name')
  if (others.length === 0) return { isThin: true, why: `thin: ${say} bundle ${sequence}, which was sent last` }
  others.sort((a, b) => a.sequence - b.sequence) // what is far behind may be of a target that is gone
  const which = others.map(({ name, sequence }) => {
    return `the receipt ${plainText(name)} names ${sequence === 0 ? 'an unknown state' : `bundle ${sequence}`}`
  })
  return { isThin: false, why: `whole: bundle ${sequence} was sent last; ${named(which)}` }
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
