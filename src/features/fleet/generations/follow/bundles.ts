import type { SourceName } from '../../../../base/domain/sources.ts'
import { EMPTY_DIGEST } from '../../../../store/replication/rows.ts'
import type { ObjectStore } from '../../objects/object-store.ts'
import { type Generation, type NamedObject, sourcesOf } from '../format/generation.ts'
import { downloadBundle, sweepDownloads } from './download.ts'

/** A bundle on the store, and the state that it leads to. */
export interface ChosenBundle extends NamedObject {
  readonly digest: string
}

/** A downloaded bundle, and the state that it must lead to. */
export interface DownloadedBundle {
  readonly path: string
  /** The combined state digest that its manifest must name. */
  readonly digest: string
}

/** Returns the bundles that lead from the stored state digests to a generation, in order. */
export function chooseBundles(
  stored: Partial<Record<SourceName, string>>,
  { sources, full, delta, digest }: Generation,
): ChosenBundle[] {
  if (delta === null) return [full]
  const applies = sourcesOf(sources).every(([source, to]) => {
    const from = stored[source] ?? EMPTY_DIGEST
    return from === to.digest || delta.bases[source]?.includes(from) === true
  })
  if (applies) return [{ ...delta, digest }]
  return full.digest === digest ? [full] : [full, { ...delta, digest }]
}

/** Downloads bundles one after the other; other downloads are removed. */
export async function downloadBundles(
  store: ObjectStore,
  dataDir: string,
  chosen: readonly ChosenBundle[],
): Promise<DownloadedBundle[]> {
  sweepDownloads(dataDir, chosen)
  const bundles: DownloadedBundle[] = []
  for (const one of chosen) bundles.push({ path: await downloadBundle(store, dataDir, one), digest: one.digest })
  return bundles
}
