import { MirrorError, messageOf } from '../../../base/errors.ts'
import type { OnProgress } from '../../../base/domain/progress.ts'
import type { SourceName } from '../../../base/domain/sources.ts'
import { ROW_KINDS, type RowKind } from '../../../store/replication/rows.ts'
import { openSource } from '../../../archive/zip/reader.ts'
import type { SigningKey } from '../format/keys.ts'
import { manifestSources } from '../import/admission.ts'
import { readDocument } from '../import/apply-rows.ts'
import { proveDocument } from '../import/documents/staging.ts'
import { ARCHIVE_LIMITS, archiveName } from '../import/records/members.ts'
import { sendRecords } from '../import/records/read.ts'
import { eachCarriedDates } from '../import/carried/dates.ts'
import { type Bundle, openFiles } from '../import/open.ts'
import { type PutLine, answerBody, chunksOf, eachLine, entryBody, refuseOtherRows } from '../import/rows.ts'
import type { Blob } from './rows.ts'

/**
 * Opens a bundle that was just written as an import does, and reads all of it with its rows, records and documents. Throws
 * `bundle`, and `corrupt` for what no mirror would accept, such as a document whose stored bytes are damaged.
 */
export async function verifyOwn(
  drafts: readonly string[],
  keys: readonly SigningKey[],
  onProgress: OnProgress,
): Promise<void> {
  const trust = { keys, revoked: new Set<string>(), allowUnsigned: keys.length === 0, now: null }
  const bundle = await openFiles(drafts, trust)
  try {
    await bundle.verify((done, total) => {
      onProgress({ phase: 'check', unit: 'bytes', done, total })
    })
    await verifyRows(bundle)
  } finally {
    await bundle.close()
  }
}

/** Returns the name of the member with a blob. */
export function memberOf({ name }: Blob): string {
  return `blobs/${name}.gz`
}

/** Does `work`, which reads a document as an import does, and names the document if that refuses it. Throws `corrupt`. */
async function soundDocument(what: string, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof MirrorError) || error.code !== 'bundle') throw error
    throw new MirrorError(
      'corrupt',
      `${what} is damaged on this mirror and is not exported: run "patchmirror doctor --data --repair"`,
      { cause: error },
    )
  }
}

/**
 * Reads all rows of a bundle as an import does, with the bytes that they name. A bundle must pass this before it gets its
 * name: a bundle that no mirror accepts would be noticed only at the target mirror. Throws `corrupt` with the row.
 */
async function verifyRows(bundle: Bundle): Promise<void> {
  try {
    refuseOtherRows(bundle.manifest)
    for (const [source] of manifestSources(bundle.manifest))
      for (const kind of ROW_KINDS[source]) await verifyKind(bundle, source, kind)
    for await (const _ of eachCarriedDates(bundle)); // each is checked as it is read
  } catch (error) {
    if (error instanceof MirrorError && error.code === 'corrupt') throw error
    throw new MirrorError(
      'corrupt',
      `no mirror would accept this bundle: ${messageOf(error)}. Replace the stored data and export again: "patchmirror sync --full" or "patchmirror doctor --data --repair", or, where no upstream is set (upstream.apiRoot), import a full bundle`,
      { cause: error },
    )
  }
}

async function verifyKind(bundle: Bundle, source: SourceName, kind: RowKind): Promise<void> {
  if (kind === 'osv-record') return verifyRecords(bundle)
  for await (const { put } of eachLine(bundle, source, kind)) if (put !== null) await verifyPut(bundle, kind, put)
}

/** Checks that the bytes that a line has, or names, are those of the row's values. */
async function verifyPut(bundle: Bundle, kind: RowKind, line: PutLine<RowKind>): Promise<void> {
  if (kind === 'catalog-entry') entryBody(line as PutLine<'catalog-entry'>)
  else if (kind === 'catalog-answer') answerBody(line as PutLine<'catalog-answer'>)
  else if (kind === 'document') {
    const { value } = line as PutLine<'document'>
    await soundDocument(value.key, () => readDocument(bundle, value))
  } else if (kind === 'catalog-document') {
    const document = line as PutLine<'catalog-document'>
    const chunks = chunksOf(document)
    await soundDocument(`document ${line.key}`, () => proveDocument(bundle, { value: document.value, chunks }))
  }
}

/** Checks that the archive has the content of each record, in the order of the rows, and nothing else. */
async function verifyRecords(bundle: Bundle): Promise<void> {
  const rows = await sendRecords(bundle, (chunk) => Promise.resolve(new Uint8Array(chunk.buffer)))
  const name = archiveName(bundle.manifest)
  if (!bundle.manifest.members.some((member) => member.name === name)) return
  const { directory } = await openSource(bundle.source(name), ARCHIVE_LIMITS)
  if (directory.count !== rows)
    throw new MirrorError('bundle', `${name} has ${directory.count} members for ${rows} records`)
}
