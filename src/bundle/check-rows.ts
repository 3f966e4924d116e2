import { MirrorError, messageOf } from '../errors.ts'
import { type RowKind, ROW_KINDS } from '../store/carried-rows.ts'
import type { SourceName } from '../store/runs.ts'
import type { Directory } from '../zip/directory.ts'
import { openSource } from '../zip/reader.ts'
import { manifestSources } from './admit.ts'
import { ARCHIVE_LIMITS, archiveName } from './apply-osv.ts'
import {
  type PutLine,
  answerBody,
  chunksOf,
  eachLine,
  entryBody,
  refuseOtherRows,
} from './lines.ts'
import type { Bundle } from './open.ts'

/**
 * Reads all rows of a bundle as an import does, and finds for each record its member in the archive. What an export makes
 * must pass this before it gets its name: a bundle that no mirror takes would be noticed only at the target mirror. Throws
 * `corrupt` with the row.
 */
export async function verifyRows(bundle: Bundle): Promise<void> {
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
