import type { Config } from '../../../config/schema.ts'
import { toIso } from '../../../base/time.ts'
import type { ViewsStatus } from '../../../base/reports/scanners.ts'
import type { Reads } from '../../../store/reads.ts'
import { type ViewsKind, generationDir, readCurrentViews, readDamage, unreadVexIn } from '../store/generations.ts'
import { openViews } from '../store/reads.ts'
import { derivedVendors } from './osv/ecosystems.ts'
import { osvViewsName } from './osv-name.ts'
import { vexBasis } from './vex/basis.ts'

/** What is compared. */
export interface ViewsStateOptions {
  readonly config: Pick<Config, 'views' | 'data'>
  /** What is served now. */
  readonly reads: Pick<Reads, 'snapshots' | 'osv' | 'catalog'>
}

/** What is being built, and what could not be. */
interface Builds {
  readonly making: ViewsKind | null
  readonly isFailing: (kind: ViewsKind) => boolean
}

/** Compares the views in use with what is served. */
export function createViewsState({ config, reads }: ViewsStateOptions) {
  const { dir } = config.data
  const oddOf = createOddCount(dir)
  const catalogId = (): string | null => reads.snapshots.readSnapshot('catalog')?.id ?? null
  /** Names what the views of a kind are to show; null when there is nothing to show. */
  const wantedOf = (kind: ViewsKind): string | null =>
    kind === 'osv' ? osvViewsName(reads, derivedVendors(config.views)) : wantedVex(reads)
  /** Whether the views show less than what is served; false when there is nothing to show. */
  const lacks = (kind: ViewsKind): boolean => {
    const current = readCurrentViews(dir, kind)
    const wanted = wantedOf(kind)
    if (wanted === null) return false
    if (kind === 'osv') return current?.name !== wanted
    const isOld = current === null || vexText(current) !== wanted
    return isOld || unreadVexIn(dir).length > 0
  }
  const shownBy = (kind: ViewsKind): Pick<ViewsStatus, 'state' | 'snapshot' | 'madeAt'> => {
    const current = readCurrentViews(dir, kind)
    if (current === null) {
      const state = readDamage(dir, kind) === null ? 'none' : 'unreadable'
      return { state, snapshot: null, madeAt: null }
    }
    if (kind === 'osv' && oddOf(kind) === null) return { state: 'unreadable', snapshot: null, madeAt: null }
    const state = lacks(kind) ? 'behind' : 'current'
    return { state, snapshot: current.snapshot, madeAt: toIso(current.since) }
  }
  /** The view kinds that the settings ask for and the stored data allows. */
  const kinds = (): ViewsKind[] => {
    const { bucket, query, vex } = config.views
    return [
      ...(bucket || query ? (['osv'] as const) : []),
      ...(vex && catalogId() !== null ? (['vex'] as const) : []), // synced, or imported below a gap
    ]
  }
  return {
    kinds,
    wantedOf,
    lacks,
    reports: ({ making, isFailing }: Builds): ViewsStatus[] =>
      kinds().map((kind) => ({
        kind,
        ...shownBy(kind),
        odd: oddOf(kind),
        unread: kind === 'vex' ? unreadVexIn(dir).length : null,
        making: making === kind,
        failing: isFailing(kind) && lacks(kind),
      })),
  }
}

/** Names what the VEX repository is to show; null where there is no catalog. */
function wantedVex(reads: Pick<Reads, 'snapshots' | 'catalog'>): string | null {
  const snapshot = reads.snapshots.readSnapshot('catalog')?.id
  return snapshot === undefined ? null : vexText({ snapshot, basis: vexBasis(reads) })
}

function vexText({ snapshot, basis }: { readonly snapshot: string; readonly basis: string }): string {
  return `${snapshot} ${basis}`
}

/** Returns the number of malformed records of the current generation, read once for each; null if none can be read. */
function createOddCount(dataDir: string): (kind: ViewsKind) => number | null {
  let counted: { readonly name: string; readonly odd: number } | null = null
  return (kind) => {
    const name = kind === 'osv' ? readCurrentViews(dataDir, kind)?.name : undefined
    if (name === undefined) return null
    if (counted?.name === name) return counted.odd
    try {
      const views = openViews(generationDir(dataDir, name))
      counted = { name, odd: views.info.odd }
      views.close()
      return counted.odd
    } catch {
      return null // the serving side requests a rebuild
    }
  }
}
