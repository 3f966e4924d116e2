import { expect, test } from 'vitest'
import type { Config } from '../../src/config/schema.ts'
import { createArrivals } from '../../src/daemon/verification/arrivals.ts'
import type { PinnedReads } from '../../src/store/reads.ts'

test('the signatures of a catalog that an import brought are verified once, where they are at all', () => {
  const seen = (trustRoot: readonly string[]): number[] => {
    let id = 'a'
    let kind = 'import'
    let count = 0
    const reads = {
      live: {
        snapshots: { readSnapshot: () => ({ id }) },
        runs: { readLatestWith: () => ({ kind }) },
      },
    } as unknown as Pick<PinnedReads, 'live'>
    const config = { catalog: { signatures: null, trustRoot } } as unknown as Pick<Config, 'catalog'>
    const look = createArrivals({ config, reads, verify: () => count++ })
    const after = (next: string, by: string): number => {
      id = next
      kind = by
      look()
      return count
    }
    return [after('a', 'import'), after('b', 'import'), after('b', 'import'), after('c', 'sync')]
  }
  expect(seen(['key.pem'])).toEqual([0, 1, 1, 1])
  expect(seen([])).toEqual([0, 0, 0, 0])
})
