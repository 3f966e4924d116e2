import { type OsvScope, type ScopeSettings, createOsvScope } from '../../../base/domain/osv-scope.ts'
import { jsonTextOf } from '../../../base/json/objects.ts'
import { contentOf, sizeOf } from '../../../store/database/gzip.ts'
import type { SyncContext } from '../../context.ts'
import { type IdTable, type Ids, createIdTable } from '../id-table.ts'
import type { IndexScope, OsvIndex } from '../index-parser.ts'

type ScopeContext = Pick<SyncContext, 'config' | 'store' | 'full'>

/** A stored record whose new content is out of scope, with its stamp in the index. */
export type LeftRecord = readonly [id: string, modified: string]

/** Returns the scope of the settings; null when everything is in scope. */
function scopeOf({ config }: Pick<SyncContext, 'config'>): OsvScope | null {
  return createOsvScope(scopeSettings(config))
}

/** Returns the settings of the scope. */
export function scopeSettings({ osv, views }: SyncContext['config']): ScopeSettings {
  return { include: osv.include, exclude: osv.exclude, vendors: views.vendors }
}

/** Returns whether the published snapshot was made with another scope than the settings have. */
export function isScopeChanged(context: Pick<SyncContext, 'config' | 'store'>): boolean {
  const published = context.store.snapshots.readSnapshot('osv')
  return (published?.scope ?? null) !== (scopeOf(context)?.text ?? null)
}

/**
 * Narrows a fetched index to the scope: without the ids that are out of scope by themselves, and without those whose
 * content was read under the listed stamp and is out of scope. Ids whose content must be read first stay.
 */
export function applyScope<T extends { index: OsvIndex }>(context: ScopeContext, listed: T): T {
  const scope = scopeOf(context)
  if (scope === null) return listed
  const { index } = listed
  const changed = isScopeChanged(context)
  const known = changed || context.full ? judgeStored(context, index, scope) : readKnown(context, index)
  const ids = narrowed(index.ids, (id) => scope.judgeId(id) === 'out' || known.outside.get(id) !== undefined)
  return { ...listed, index: { ...index, ids, scope: { scope, listed: index.ids, ...known } } }
}

type Known = Pick<IndexScope, 'outside' | 'stored' | 'outdated'>

/** Returns what earlier runs judged, as far as upstream still lists it under the same stamp. */
function readKnown({ store }: ScopeContext, { ids, unstamped }: OsvIndex): Known {
  const outside = createIdTable(1024)
  const outdated: string[] = []
  for (const [id, modified] of store.osv.eachOutside()) {
    const ordinal = ids.get(id)
    const isListed = ordinal !== undefined && ids.modifiedAt(ordinal) === modified
    // Without a stamp it may have changed since.
    if (isListed && !unstamped.has(id)) outside.set(id, modified)
    else outdated.push(id)
  }
  return { outside, stored: outside.size, outdated }
}

/** Judges the stored records under another scope; what is not stored must be fetched to be judged. */
function judgeStored({ store }: ScopeContext, index: OsvIndex, scope: OsvScope): Known {
  const outside = createIdTable(1024)
  for (const [id, , , , body, modified] of store.osv.eachSum()) {
    if (body === null || scope.judgeId(id) !== 'unknown') continue
    if (index.ids.stamp(id) !== modified || includesBytes(scope, id, body)) continue
    outside.set(id, modified)
  }
  return { outside, stored: 0, outdated: [] }
}

/** A record that cannot be read stays in scope: it is fetched again as damaged. */
function includesBytes(scope: OsvScope, id: string, body: Buffer): boolean {
  try {
    const record: unknown = JSON.parse(jsonTextOf(contentOf(body, sizeOf(body))))
    return typeof record !== 'object' || record === null || scope.includes(id, record)
  } catch {
    return true
  }
}

/** Returns whether a fetched record is out of scope, and remembers it under the listed stamp if it is. */
export function isLeftOut(index: OsvIndex, id: string, record: object): boolean {
  if (index.scope === null || index.scope.scope.includes(id, record)) return false
  leaveOut(index, id)
  return true
}

/** Remembers under the listed stamp that a fetched record is out of scope. */
export function leaveOut({ scope, ids }: OsvIndex, id: string): void {
  scope?.outside.set(id, ids.stamp(id))
}

/** Returns the index without the records that this run found to be out of scope. */
export function withoutLeftOut<T extends { index: OsvIndex }>(listed: T): T {
  const { ids, scope } = listed.index
  if (scope === null || scope.outside.size === scope.stored) return listed
  const kept = narrowed(ids, (id) => scope.outside.get(id) !== undefined)
  return { ...listed, index: { ...listed.index, ids: kept } }
}

/** Returns whether the stored list of what is out of scope by its content is still right. */
export function isScopeStored(context: Pick<SyncContext, 'config' | 'store'>, index: OsvIndex): boolean {
  const { scope } = index
  if (isScopeChanged(context)) return false
  return scope === null || (scope.outside.size === scope.stored && scope.outdated.length === 0)
}

/**
 * Writes what is out of scope by its content, in the open transaction, and removes stored records of it: without a
 * tombstone, because upstream has them. Returns the stored ones whose new content is out of the scope that the snapshot
 * has, with their stamps; none where the setting changed.
 */
export function writeScope(
  { store, facts, config }: SyncContext,
  { scope }: OsvIndex,
  dropped: readonly string[],
): LeftRecord[] {
  const isChanged = isScopeChanged({ config, store })
  const byContent: LeftRecord[] = []
  for (const id of dropped) store.osv.dropRecord(id)
  if (scope === null || scope.stored === 0) store.osv.clearOutside()
  if (scope === null) return byContent
  for (const id of scope.outdated) store.osv.dropOutside(id)
  let left = dropped.length
  for (let ordinal = scope.stored; ordinal < scope.outside.size; ordinal++) {
    const id = scope.outside.idAt(ordinal)
    const modified = scope.outside.modifiedAt(ordinal)
    store.osv.putOutside(id, modified)
    if (store.osv.readEntry(id) === null) continue
    store.osv.dropRecord(id)
    left++
    if (!isChanged) byContent.push([id, modified])
  }
  if (left > 0) facts['removedByScope'] = left
  return byContent
}

/** Number of listed records that are out of scope. */
export function countLeftOut({ scope, ids }: OsvIndex): number {
  if (scope === null) return 0
  let count = scope.listed.size - ids.size
  for (let ordinal = scope.stored; ordinal < scope.outside.size; ordinal++)
    if (ids.get(scope.outside.idAt(ordinal)) !== undefined) count++
  return count
}

function narrowed(ids: Ids, drops: (id: string) => boolean): IdTable {
  const kept = createIdTable(ids.size * 16)
  for (let ordinal = 0; ordinal < ids.size; ordinal++) {
    const id = ids.idAt(ordinal)
    if (!drops(id)) kept.set(id, ids.modifiedAt(ordinal))
  }
  return kept
}
