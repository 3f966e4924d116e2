import { expect, test } from 'vitest'
import type { Config } from '../../src/config/schema.ts'
import { createArrivals } from '../../src/daemon/verification/arrivals.ts'
import type { PinnedReads } from '../../src/store/reads.ts'

test('the signatures of a catalog that an import brought are verified once, and again by other keys, where they are at all', () => {
  const seen = (trustRoot: readonly string[]): number[] => {
    let id = 'a'
    let kind = 'import'
    let count = 0
    let keys = 'one'
    const reads = {
      live: {
        snapshots: { readSnapshot: () => ({ id }) },
        runs: { readLatestWith: () => ({ kind }) },
        catalog: { listCarriedTrust: () => [keys] },
      },
    } as unknown as Pick<PinnedReads, 'live'>
    const config = { catalog: { signatures: null, trustRoot } } as unknown as Pick<Config, 'catalog'>
    const look = createArrivals({ config, reads, verify: () => count++ })
    const after = (next: string, by: string, trusted = 'one'): number => {
      id = next
      kind = by
      keys = trusted
      look()
      return count
    }
    const first = [after('a', 'import'), after('b', 'import'), after('b', 'import')]
    return [...first, after('b', 'import', 'two'), after('b', 'import', 'two'), after('c', 'sync', 'two')]
  }
  expect(seen(['key.pem'])).toEqual([0, 1, 1, 2, 2, 2])
  expect(seen([])).toEqual([0, 0, 0, 0, 0, 0])
})
