import { MirrorError } from '../../../base/errors.ts'
import { readTrust } from '../../../documents/signatures/trust.ts'
import { LARGEST_TRUST, TRUST_HEADER } from '../format/trust-root.ts'
import type { ManifestHead } from '../format/manifest.ts'
import { writeCarried } from './carried.ts'
import type { ExportSnapshot } from './snapshot.ts'
import type { BundleWriter } from './writer.ts'

/**
 * Writes what this mirror trusts to sign artifacts, so that a mirror that trusts the bundle can verify them by it. `files`: as in
 * `catalog.trustRoot`. Returns its count; none: nothing is trusted. Throws `config`.
 */
export async function writeTrustRoot(
  { reads }: ExportSnapshot,
  files: readonly string[],
  writer: BundleWriter,
): Promise<ManifestHead['counts']> {
  const { texts } = readTrust(files, reads.catalog.listCarriedTrust())
  const size = texts.reduce((sum, text) => sum + text.length, 0)
  if (size > LARGEST_TRUST)
    throw new MirrorError(
      'config',
      `catalog.trustRoot: its files have ${size} characters, and a bundle carries ${LARGEST_TRUST}`,
    )
  const lines = texts.map((text) => JSON.stringify(text))
  return writeCarried(writer, 'trust-root', { header: TRUST_HEADER, lines })
}
