import { type OsvScope, type ScopeSettings, createOsvScope } from '../../base/domain/osv-scope.ts'
import { jsonTextOf } from '../../base/json/objects.ts'
import { contentOf, sizeOf } from '../../store/database/gzip.ts'
import type { Writes } from '../../store/writes.ts'
import type { SyncContext } from '../context.ts'
import { type IdTable, type Ids, createIdTable } from './id-table.ts'
import type { IndexScope, OsvIndex } from './index-parser.ts'

/** A stored record whose new content is out of scope, with its stamp in the index. */
export type LeftRecord = readonly [id: string, modified: string]

/** The scope of a run: what `osv.scope` leaves of what upstream lists. */
export type RunScope = ReturnType<typeof openScope>

/** Reads the scope of the settings, and whether the published snapshot was made with it. */
export function openScope({ config, store, full, facts }: SyncContext) {
  const scope = createOsvScope(scopeSettings(config))
  const published = store.snapshots.readSnapshot('osv')?.scope ?? null
  const isChanged = published !== (scope?.text ?? null)
  return {
    /** Whether the published snapshot was made with another scope than the settings have. */
    isChanged,
    /**
     * Narrows a fetched index to the scope: without the ids that are out of scope by themselves, and without those whose
     * content was read under the listed stamp and is out of scope. Ids whose content must be read first stay.
     */
    narrow(index: OsvIndex): OsvIndex {
      if (scope === null) return index
      const known = isChanged || full ? judgeStored(store.osv, index.ids, scope) : readKnown(store.osv, index)
      const ids = narrowed(index.ids, (id) => scope.judgeId(id) === 'out' || known.outside.get(id) !== undefined)
      return { ...index, ids, scope: createIndexScope(scope, index.ids, ids, known) }
    },
    /** Returns whether the stored list of what is out of scope by its content is still right. */
    isStored({ scope: own }: OsvIndex): boolean {
      if (isChanged) return false
      return own === null || (own.outside.size === own.stored && own.outdated.length === 0)
    },
    /**
     * Writes what is out of scope by its content, in the open transaction, and removes stored records of it: without a
     * tombstone, because upstream has them. Returns the stored ones whose new content is out of the scope that the
     * snapshot has, with their stamps; none where the setting changed.
     */
    write({ scope: own }: OsvIndex, dropped: readonly string[]): LeftRecord[] {
      for (const id of dropped) store.osv.dropRecord(id)
      if (own === null || own.stored === 0) store.osv.clearOutside()
      const left = own === null ? [] : writeOutside(store.osv, own)
      if (own !== null && dropped.length + left.length > 0) facts['removedByScope'] = dropped.length + left.length
      return isChanged ? [] : left
    },
  }
}

/** Returns the settings of the scope. */
export function scopeSettings({ osv, views }: SyncContext['config']): ScopeSettings {
  return { include: osv.include, exclude: osv.exclude, vendors: views.vendors }
}

/** What is known of ids that only their content puts out of scope, as `IndexScope` has it. */
type Known = Pick<IndexScope, 'stored' | 'outdated'> & { readonly outside: IdTable }

/** Returns what earlier runs judged, as far as upstream still lists it under the same stamp. */
function readKnown(osv: Writes['osv'], { ids, unstamped }: OsvIndex): Known {
  const outside = createIdTable(1024)
  const outdated: string[] = []
  for (const [id, modified] of osv.eachOutside()) {
    const ordinal = ids.get(id)
    const isListed = ordinal !== undefined && ids.modifiedAt(ordinal) === modified
    // Without a stamp it may have changed since.
    if (isListed && !unstamped.has(id)) outside.set(id, modified)
    else outdated.push(id)
  }
  return { outside, stored: outside.size, outdated }
}

/** Judges the stored records under another scope; what is not stored must be fetched to be judged. */
function judgeStored(osv: Writes['osv'], ids: Ids, scope: OsvScope): Known {
  const outside = createIdTable(1024)
  for (const [id, , , , body, modified] of osv.eachSum()) {
    if (body === null || scope.judgeId(id) !== 'unknown') continue
    if (ids.stamp(id) !== modified || includesBytes(scope, id, body)) continue
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

/** Creates the scope of an index that lists `listed`, of which `ids` are to be mirrored. */
function createIndexScope(scope: OsvScope, listed: Ids, ids: Ids, { outside, stored, outdated }: Known): IndexScope {
  const leaveOut = (id: string): void => {
    outside.set(id, ids.stamp(id))
  }
  return {
    text: scope.text,
    listed,
    outside,
    stored,
    outdated,
    leaveOut,
    admits(id, record) {
      const isIn = scope.includes(id, record)
      if (!isIn) leaveOut(id)
      return isIn
    },
    kept: () => (outside.size === stored ? ids : narrowed(ids, (id) => outside.get(id) !== undefined)),
    countLeftOut() {
      let count = listed.size - ids.size
      for (let ordinal = stored; ordinal < outside.size; ordinal++)
        if (ids.get(outside.idAt(ordinal)) !== undefined) count++
      return count
    },
  }
}

/** Writes what this run found to be out of scope, and forgets what is outdated. Returns the stored records of it, which are dropped. */
function writeOutside(osv: Writes['osv'], { outside, stored, outdated }: IndexScope): LeftRecord[] {
  const left: LeftRecord[] = []
  for (const id of outdated) osv.dropOutside(id)
  for (let ordinal = stored; ordinal < outside.size; ordinal++) {
    const id = outside.idAt(ordinal)
    const modified = outside.modifiedAt(ordinal)
    osv.putOutside(id, modified)
    if (osv.readEntry(id) === null) continue
    osv.dropRecord(id)
    left.push([id, modified])
  }
  return left
}

function narrowed(ids: Ids, drops: (id: string) => boolean): IdTable {
  const kept = createIdTable(ids.size * 16)
  for (let ordinal = 0; ordinal < ids.size; ordinal++) {
    const id = ids.idAt(ordinal)
    if (!drops(id)) kept.set(id, ids.modifiedAt(ordinal))
  }
  return kept
}
