import { FIXED } from '../fixed.ts'
import type { ValueOf } from '../kinds/base.ts'
import { bytes } from '../kinds/bytes.ts'
import { mapOf } from '../kinds/maps.ts'

/** The largest answers accepted, by what they are. */
export const maxBytes = () =>
  mapOf(
    {
      // JSON is parsed from one string, and V8 allows at most 536,870,888 characters in one.
      json: bytes({ min: '1 KB', max: '512 MB', example: '256 MB' }),
      record: bytes({ min: '1 KB', max: '512 MB', example: '32 MB' }),
      archive: bytes({ min: '1 KB', max: '1 TB', example: '8 GB' }),
      list: bytes({ min: '1 KB', max: '1 TB', example: '1 GB' }),
    },
    '{ archive: 20 GB }',
  )

/** Returns the limits of requests to the service. What an edited default.yaml lacks is as small as can be. */
export function upstreamLimits(most: ValueOf<ReturnType<typeof maxBytes>>) {
  return {
    ...FIXED.upstream,
    maxJsonBytes: most.json ?? LEAST,
    maxRecordBytes: most.record ?? LEAST,
    maxArchiveBytes: most.archive ?? LEAST,
  }
}

/** Returns how much of one list of the catalog is read before it counts as endless, bytes. */
export function listLimit(most: ValueOf<ReturnType<typeof maxBytes>>): number {
  return most.list ?? LEAST
}

const LEAST = 1000
