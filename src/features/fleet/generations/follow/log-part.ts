import { DAY_MS } from '../../../../base/time.ts'
import type { KeyTrust } from '../../../bundles/format/keys.ts'
import type { AdoptedRow } from '../../../../store/changes/log-adoption.ts'
import type { ObjectStore } from '../../objects/object-store.ts'
import { readHistory } from '../chain.ts'
import { readChangeRows } from '../format/change-rows.ts'
import type { KnownGeneration } from '../format/generation.ts'
import type { Position } from '../position.ts'

/** What an import adds to the change log. */
export interface LogPart {
  /** Rows behind this one are replaced; 0: all. */
  readonly after: number
  readonly rows: readonly AdoptedRow[]
}

/** Most generations whose changes a new reader fetches. */
const MOST = 400

/**
 * Reads the rows of the fleet's change log from the stored generation to `target`; without a stored one those of the last
 * `days`. Where rows are not available any more, only those behind them are used: a gap would hide changes.
 */
export async function readLogPart(
  store: ObjectStore,
  stored: Position | null,
  seen: readonly KnownGeneration[],
  target: KnownGeneration,
  { trust, now, days }: { trust: KeyTrust; now: number; days: number },
): Promise<LogPart> {
  const last = target.generation.generation
  const between = seen.filter(({ generation }) => generation.generation <= last)
  const isWhole = stored !== null && between.length === last - stored.generation
  const newestFirst = isWhole
    ? between.toReversed()
    : [target, ...(await readHistory(store, target, { since: now - days * DAY_MS, most: MOST, trust }))]
  const rows: AdoptedRow[][] = []
  for (const { generation } of newestFirst) {
    if (generation.changes === null) continue
    const found = await readChangeRows(store, generation.changes)
    if (found === null) return { after: 0, rows: rows.toReversed().flat() }
    rows.push(found)
  }
  return { after: isWhole ? stored.log : 0, rows: rows.toReversed().flat() }
}
