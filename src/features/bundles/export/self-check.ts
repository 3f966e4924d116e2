import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { digestOfChunks } from '../../../base/digest.ts'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import type { OnProgress } from '../../../base/domain/progress.ts'
import type { SourceName } from '../../../base/domain/sources.ts'
import { ROW_KINDS, type RowKind } from '../../../store/replication/rows.ts'
import type { Directory } from '../../../archive/zip/directory.ts'
import { openSource } from '../../../archive/zip/reader.ts'
import type { SigningKey } from '../format/keys.ts'
import { manifestSources } from '../import/admission.ts'
import { ARCHIVE_LIMITS, archiveName } from '../import/records/members.ts'
import { eachCarriedDates } from '../import/carried/dates.ts'
import { type Bundle, openFiles } from '../import/open.ts'
import { type PutLine, answerBody, chunksOf, eachLine, entryBody, refuseOtherRows } from '../import/rows.ts'
import type { Blob } from './rows.ts'

/** Largest total of stored documents that are inflated too, bytes: above it, that would cost as much as the export. */
const INFLATED_BYTES = 64_000_000

/**
 * Opens a bundle that was just written as an import does, reads all of it with its rows, and checks that blobs match
 * their names. Throws `bundle`, and `corrupt` for a document whose stored bytes are damaged.
 */
export async function verifyOwn(
  drafts: readonly string[],
  keys: readonly SigningKey[],
  blobs: readonly Blob[],
  onProgress: OnProgress,
): Promise<void> {
  const trust = { keys, revoked: new Set<string>(), allowUnsigned: keys.length === 0, now: null }
  const bundle = await openFiles(drafts, trust)
  try {
    await bundle.verify((done, total) => {
      onProgress({ phase: 'check', unit: 'bytes', done, total })
    })
    await verifyRows(bundle)
    const digests = new Map(bundle.manifest.members.map(({ name, sha256 }) => [name, sha256]))
    const documents = blobs.filter((blob) => blob.kind === 'catalog-document')
    const stored = documents.reduce((sum, blob) => sum + blob.stored, 0)
    for (const blob of blobs) {
      const name = memberOf(blob)
      if (blob.kind === 'document') {
        const isOwn = digests.get(name) === blob.name && (await contentDigest(bundle, name)) === blob.sha256
        if (!isOwn) throw damaged(blob.path)
      } else if (stored <= INFLATED_BYTES && (await contentDigest(bundle, name)) !== blob.name)
        throw damaged(`document ${blob.name}`)
    }
  } finally {
    await bundle.close()
  }
}

/** Returns the name of the member with a blob. */
export function memberOf({ name }: Blob): string {
  return `blobs/${name}.gz`
}

/** Returns the SHA-256 of a member's inflated content, hex, or the error message if it does not inflate. */
async function contentDigest(bundle: Bundle, name: string): Promise<string> {
  const source = bundle.source(name)
  async function* chunks(): AsyncGenerator<Buffer> {
    for (let at = 0; at < source.size; at += 1 << 20) yield await source.read(at, Math.min(1 << 20, source.size - at))
  }
  const inflated = createGunzip()
  const packed = Readable.from(chunks()).on('error', (error) => inflated.destroy(error))
  try {
    return await digestOfChunks(packed.pipe(inflated))
  } catch (error) {
    return messageOf(error)
  }
}

function damaged(what: string): MirrorError {
  return new MirrorError(
    'corrupt',
    `${what} is damaged on this mirror and is not exported: run "patchmirror doctor --data --repair"`,
  )
}

/**
 * Reads all rows of a bundle as an import does, and finds the archive member of each record. A bundle must pass this
 * before it gets its name: a bundle that no mirror accepts would be noticed only at the target mirror. Throws `corrupt`
 * with the row.
 */
async function verifyRows(bundle: Bundle): Promise<void> {
  try {
    refuseOtherRows(bundle.manifest)
    for (const [source] of manifestSources(bundle.manifest))
      for (const kind of ROW_KINDS[source]) await verifyKind(bundle, source, kind)
    for await (const _ of eachCarriedDates(bundle)); // each is checked as it is read
  } catch (error) {
    throw new MirrorError(
      'corrupt',
      `no mirror would accept this bundle: ${messageOf(error)}. Replace the stored data and export again: "patchmirror sync --full" or "patchmirror doctor --data --repair", or, where no upstream is set (upstream.apiRoot), import a full bundle`,
      { cause: error },
    )
  }
}

async function verifyKind(bundle: Bundle, source: SourceName, kind: RowKind): Promise<void> {
  const members = kind === 'osv-record' ? await openMembers(bundle) : null
  let next = 0
  for await (const { put } of eachLine(bundle, source, kind)) {
    if (put === null) continue
    verifyExtra(kind, put)
    if (members === null) continue
    const entry = next < members.count ? members.entry(next++) : null
    if (entry?.name !== `${put.key}.json` || !entry.safeName)
      throw new MirrorError('bundle', `its archive does not have the record ${put.key} at its position`)
  }
}

/** Checks that a line's bytes match the row's values. */
function verifyExtra(kind: RowKind, line: PutLine<RowKind>): void {
  if (kind === 'catalog-entry') entryBody(line as PutLine<'catalog-entry'>)
  else if (kind === 'catalog-answer') answerBody(line as PutLine<'catalog-answer'>)
  else if (kind === 'catalog-document') chunksOf(line as PutLine<'catalog-document'>)
}

/** Returns the members of the archive, in the order of the record rows; null if the bundle has no archive. */
async function openMembers(bundle: Bundle): Promise<Directory | null> {
  const name = archiveName(bundle.manifest)
  if (!bundle.manifest.members.some((member) => member.name === name)) return null
  return (await openSource(bundle.source(name), ARCHIVE_LIMITS)).directory
}
