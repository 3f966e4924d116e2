import { gzipSync } from 'node:zlib'
import { sha256Hex } from '../../../base/digest.ts'
import type { Carried } from '../format/carried.ts'
import type { ManifestHead } from '../format/manifest.ts'
import type { BundleWriter } from './writer.ts'

/** Writes lines that a bundle carries beside its state as a member. Returns their count; none: there is no member. */
export async function writeCarried(
  writer: BundleWriter,
  kind: Carried,
  { header, lines }: { readonly header: string; readonly lines: readonly string[] },
): Promise<ManifestHead['counts']> {
  if (lines.length === 0) return {}
  const bytes = gzipSync([header, ...lines, ''].join('\n'))
  await writer.addStored(`blobs/${sha256Hex(bytes)}.gz`, bytes.length, [bytes])
  return { [kind]: { put: lines.length, removed: 0 } }
}
