import { sha256Hex } from '../../base/digest.ts'
import type { CatalogLink } from '../../store/catalog/answers.ts'
import { unpackedContent, wholeContent } from '../../store/catalog/whole-content.ts'
import type { GivenDocument } from './check.ts'
import { MAX_SIGNED_BYTES } from './envelopes.ts'

/** Iterates over the documents of an artifact, one in memory at a time; of a gzip file what is in it. */
export function* documentsOf(
  reader: Parameters<typeof wholeContent>[0],
  links: readonly CatalogLink[],
): Generator<GivenDocument> {
  for (const { digest } of links) yield contentOf(reader, digest)
}

function contentOf(reader: Parameters<typeof wholeContent>[0], digest: string): GivenDocument {
  const stored = wholeContent(reader, digest, MAX_SIGNED_BYTES)
  if (typeof stored === 'string') return refusal(stored)
  if (sha256Hex(stored) !== digest) return refusal('incomplete')
  const content = unpackedContent(stored, MAX_SIGNED_BYTES)
  return typeof content === 'string' ? refusal(content) : content
}

function refusal(why: 'absent' | 'too large' | 'incomplete'): GivenDocument {
  if (why === 'too large') return { unreadable: `it has more than ${MAX_SIGNED_BYTES} bytes, and is not verified` }
  return { unreadable: 'its stored document is damaged or missing' }
}
