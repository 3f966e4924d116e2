import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { MirrorError, messageOf } from '../../core/errors.ts'
import type { OnProgress } from '../../domain/progress.ts'
import type { SourceName } from '../../domain/sources.ts'
import { ROW_KINDS, type RowKind } from '../../store/replication/rows.ts'
import type { Directory } from '../../zip/directory.ts'
import { openSource } from '../../zip/reader.ts'
import type { SigningKey } from '../format/keys.ts'
import { manifestSources } from '../import/admission.ts'
import { ARCHIVE_LIMITS, archiveName } from '../import/apply-source.ts'
import { type Bundle, openFiles } from '../import/open.ts'
import {
  type PutLine,
  answerBody,
  chunksOf,
  eachLine,
  entryBody,
  refuseOtherRows,
} from '../import/rows.ts'
import type { Blob } from './rows.ts'

/** Up to this many bytes of documents, as they are stored, are inflated too: with more, that would cost as much as the export. */
const INFLATED_BYTES = 64_000_000

/**
 * Opens a bundle that was just written as an import does, reads it to its end with all of its rows, and checks that blobs are
 * what their names say. Throws `bundle`, and `corrupt` for a document whose stored bytes are not what they were.
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
      if (blob.kind === 'document' && digests.get(name) !== blob.name) throw damaged(blob.path)
      if (blob.kind === 'document' || stored > INFLATED_BYTES) continue
      if ((await contentDigest(bundle, name)) !== blob.name) throw damaged(`document ${blob.name}`)
    }
  } finally {
    await bundle.close()
  }
}

/** The member that holds a blob. */
export function memberOf({ name }: Blob): string {
  return `blobs/${name}.gz`
}

/** SHA-256 of what a member inflates to, hex; its own words where it does not inflate. */
async function contentDigest(bundle: Bundle, name: string): Promise<string> {
  const source = bundle.source(name)
  async function* chunks(): AsyncGenerator<Buffer> {
    for (let at = 0; at < source.size; at += 1 << 20)
      yield await source.read(at, Math.min(1 << 20, source.size - at))
  }
  const hash = createHash('sha256')
  const inflated = createGunzip()
  const packed = Readable.from(chunks()).on('error', (error) => inflated.destroy(error))
  try {
    for await (const chunk of packed.pipe(inflated)) hash.update(chunk as Buffer)
    return hash.digest('hex')
  } catch (error) {
    return messageOf(error)
  }
}

function damaged(what: string): MirrorError {
  return new MirrorError(
    'corrupt',
    `${what} is damaged here already, and is not exported: run "patchmirror verify --repair"`,
  )
}

/**
 * Reads all rows of a bundle as an import does, and finds for each record its member in the archive. What an export makes
 * must pass this before it gets its name: a bundle that no mirror takes would be noticed only at the target mirror. Throws
 * `corrupt` with the row.
 */
async function verifyRows(bundle: Bundle): Promise<void> {
  try {
    refuseOtherRows(bundle.manifest)
    for (const [source] of manifestSources(bundle.manifest))
      for (const kind of ROW_KINDS[source]) await verifyKind(bundle, source, kind)
  } catch (error) {
    throw new MirrorError(
      'corrupt',
      `no mirror would take this bundle: ${messageOf(error)}. Replace what is stored and export again: "patchmirror sync --full" or "patchmirror verify --repair", or, where no upstream is set (upstream.apiRoot), import a full bundle`,
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
      throw new MirrorError(
        'bundle',
        `its archive does not have the record ${put.key} in its place`,
      )
  }
}

/** The bytes beside a row are what its values say. */
function verifyExtra(kind: RowKind, line: PutLine<RowKind>): void {
  if (kind === 'catalog-entry') entryBody(line as PutLine<'catalog-entry'>)
  else if (kind === 'catalog-answer') answerBody(line as PutLine<'catalog-answer'>)
  else if (kind === 'catalog-document') chunksOf(line as PutLine<'catalog-document'>)
}

/** Members of the archive, in the order of the rows of records; null when the bundle has none. */
async function openMembers(bundle: Bundle): Promise<Directory | null> {
  const name = archiveName(bundle.manifest)
  if (!bundle.manifest.members.some((member) => member.name === name)) return null
  return (await openSource(bundle.source(name), ARCHIVE_LIMITS)).directory
}
