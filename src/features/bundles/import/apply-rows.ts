import { sha256Hex } from '../../../base/digest.ts'
import { MirrorError } from '../../../base/errors.ts'
import { namesFix } from '../../../base/domain/named-fix.ts'
import type { OnProgress } from '../../../base/domain/progress.ts'
import type { SourceName } from '../../../base/domain/sources.ts'
import { gzipMember } from '../../../store/database/gzip.ts'
import {
  type CarriedRow,
  ROW_KINDS,
  type RowKind,
  type RowValue,
  type SourceValue,
  compareKeys,
  valueOf,
} from '../../../store/replication/rows.ts'
import type { Writes } from '../../../store/writes.ts'
import type { Bundle } from './open.ts'
import { createRecordMembers, readRecord } from './records/members.ts'
import {
  type Line,
  type PutLine,
  answerBody,
  confirmedOf,
  carriedScope,
  eachLine,
  entryBody,
  isContent,
} from './rows.ts'
import type { RowCounts } from './types.ts'

/** Context for writing the rows of a source. */
interface RowContext {
  bundle: Bundle
  store: Writes
  source: SourceName
  runId: number
  /** Also write rows that equal the stored ones. */
  again: boolean
  /** Unix milliseconds. */
  now: () => number
  /** Number of records that were stored already, all of the bundle; null: they are stored with their rows. */
  filled: number | null
  progress: OnProgress
}

/** The result of applying a source's rows. */
interface AppliedRows {
  counts: Partial<Record<RowKind, RowCounts>>
  /** The source's own row. */
  row: SourceValue
  /** The scope of the source mirror (`Snapshot.scope`). */
  scope: string | null
}

type Writer<K extends RowKind> = {
  put(line: PutLine<K>): void | Promise<void>
  remove(key: string): void
  /** Stores what is not part of the row, from the line of an unchanged row. */
  confirm?(line: PutLine<K>): void
}

/** Writers by kind; documents of the catalog are staged before, and swept after. The source's own row is written last. */
type Writers = { [K in Exclude<RowKind, 'source' | 'catalog-document'>]: Writer<K> }

/** Writes the rows of a source that differ from the stored ones, within the open transaction. */
export async function applyRows(context: RowContext): Promise<AppliedRows> {
  const { store, source } = context
  const { row, scope, isNew } = await readSourceRow(context)
  const counts: AppliedRows['counts'] = isNew ? { source: { put: 1, removed: 0 } } : {}
  const writers = createWriters(context)
  for (const kind of ROW_KINDS[source]) {
    if (kind === 'source' || kind === 'catalog-document') continue
    const { filled } = context
    const applied =
      kind === 'osv-record' && filled !== null
        ? { put: filled, removed: 0 }
        : await applyKind(context, kind, writers[kind] as Writer<RowKind>)
    if (applied.put + applied.removed > 0) counts[kind] = applied
    if (kind === 'catalog-entry') store.carried.settleEntries()
  }
  return { row, scope, counts }
}

/** Returns the source's own row: the bundle's, or the stored one that the bundle leaves unchanged. Throws `bundle`. */
async function readSourceRow({
  bundle,
  store,
  source,
  again,
}: RowContext): Promise<{ row: SourceValue; scope: string | null; isNew: boolean }> {
  const full = bundle.manifest.kind === 'full'
  const [stored] = store.carried.eachRow(source, 'source')
  let given: PutLine<'source'> | null = null
  for await (const { key, put } of eachLine(bundle, source, 'source')) {
    if (put === null) throw new MirrorError('bundle', `it would remove all of ${key}`)
    if (key !== source) throw new MirrorError('bundle', `the rows of ${source} have a row of ${key}`)
    given = put
  }
  if (given !== null) {
    const isNew = again || !full || given.hash !== stored?.hash
    return { row: given.value, scope: carriedScope(given), isNew }
  }
  if (stored === undefined) throw new MirrorError('bundle', `it does not say which snapshot ${source} is`)
  if (full) throw new MirrorError('bundle', `it would remove all of ${source}`)
  const scope = store.snapshots.readSnapshot(source)?.scope ?? null
  return { row: valueOf(stored), scope, isNew: false }
}

/**
 * Stores the confirmation dates of rows that equal the stored ones. Call inside the transaction that records the bundle.
 */
export async function confirmRows(
  { bundle, store }: Pick<RowContext, 'bundle' | 'store'>,
  source: SourceName,
): Promise<void> {
  if (!ROW_KINDS[source].includes('catalog-list')) return
  for await (const { put } of eachLine(bundle, source, 'catalog-list'))
    if (put !== null) store.carried.confirmCarried('catalog_list', put.key, confirmedOf(put))
  for await (const { put } of eachLine(bundle, source, 'catalog-answer'))
    if (put !== null) store.carried.confirmCarried('catalog_answer', put.key, confirmedOf(put))
}

async function applyKind<K extends RowKind>(
  { bundle, store, source, again, now, progress }: RowContext,
  kind: K,
  writer: Writer<K>,
): Promise<RowCounts> {
  const counts = { put: 0, removed: 0 }
  const total = bundle.manifest.counts[kind]?.put ?? null
  // A full bundle replaces all stored rows, a delta lists the removed ones itself.
  const stored = bundle.manifest.kind === 'full' ? store.carried.eachRow(source, kind) : null
  const floor = store.feeds.readDateFloor()
  let isBelow = false
  let seen = 0
  for await (const { key, put, storedHash } of withStored(eachLine(bundle, source, kind), stored)) {
    if (put === null) {
      writer.remove(key)
      counts.removed++
    } else if (again || storedHash !== put.hash) {
      await writer.put(put)
      counts.put++
      isBelow ||= isDatedUntil(put.value, floor)
    } else writer.confirm?.(put)
    if (++seen % 1000 === 0) progress({ phase: 'rows', unit: 'rows', done: seen, total })
  }
  if (isBelow) store.feeds.raiseDateFloor(now()) // or the new content had the date of the old
  return counts
}

/** Whether what a row describes has no later date than the earliest that is served (`readDateFloor`). */
function isDatedUntil(value: RowValue, floor: number | null): boolean {
  return floor !== null && 'changed' in value && value.changed <= floor
}

/** A line with the hash of the stored row of its key; null: none is stored. */
type ComparedLine<K extends RowKind> = Line<K> & { storedHash: string | null }

/** Merges the lines of a kind with its stored rows, both in order: a stored row without a line is to be removed. */
async function* withStored<K extends RowKind>(
  lines: AsyncIterable<Line<K>>,
  rows: Generator<CarriedRow> | null,
): AsyncGenerator<ComparedLine<K>> {
  let next = rows?.next()
  /** Returns the next stored row and reads ahead: the caller writes before it asks again. */
  const take = (upTo: string | null): CarriedRow | null => {
    if (next?.done !== false) return null
    const { value } = next
    if (upTo !== null && compareKeys(value.key, upTo) > 0) return null
    next = rows?.next()
    return value
  }
  for await (const line of lines) {
    let row = take(line.key)
    for (; row !== null && row.key !== line.key; row = take(line.key))
      yield { key: row.key, put: null, storedHash: row.hash }
    yield { ...line, storedHash: row?.hash ?? null }
  }
  for (let row = take(null); row !== null; row = take(null)) yield { key: row.key, put: null, storedHash: row.hash }
}

function createWriters({ bundle, store, source, runId }: RowContext): Writers {
  const archive = createRecordMembers(bundle)
  return {
    document: {
      async put({ value }) {
        const { key: path, size, sha256, changed, entries } = value
        const body = await readDocument(bundle, value)
        const digest = Buffer.from(sha256, 'hex')
        store.feeds.replaceDocument({ path, source, body, size, sha256: digest, changed, entries })
      },
      remove: store.feeds.removeDocument,
    },
    'osv-record': {
      async put({ value }) {
        const { content, deflated } = readRecord(bundle.manifest, value, await archive.find(value.key))
        const { key: id, modified, crc32, size, changed, asOf } = value
        const body = gzipMember(deflated, crc32, size)
        const sha256 = Buffer.from(value.sha256, 'hex')
        const fix = namesFix(content)
        store.osv.putRecord({ id, modified, crc32, size, sha256, body, asOf, fix }, changed)
      },
      remove: (id) => store.osv.dropRecord(id),
    },
    'osv-tombstone': {
      put: ({ value }) => store.carried.putTombstone(value, runId),
      remove: store.carried.removeTombstone,
    },
    'catalog-list': {
      put: (line) => store.carried.putList(line.value, confirmedOf(line)),
      confirm: (line) => store.carried.confirmCarried('catalog_list', line.key, confirmedOf(line)),
      remove: (path) => store.catalog.removeList(path),
    },
    'catalog-entry': {
      put(line) {
        if (!store.carried.putEntry(line.value, entryBody(line)))
          throw new MirrorError('bundle', `the item ${line.key} belongs to a list that is not stored`)
      },
      remove: store.carried.removeEntry,
    },
    'catalog-answer': {
      put: (line) => store.carried.putAnswer(line.value, answerBody(line), confirmedOf(line)),
      confirm: (line) => store.carried.confirmCarried('catalog_answer', line.key, confirmedOf(line)),
      remove: store.catalog.removeAnswer,
    },
    'catalog-lacking': {
      put: ({ value }) => void store.carried.putMissingPath(value),
      remove: store.carried.removeMissingPath,
    },
  }
}

/** Returns the stored bytes of a whole document, null when upstream has none. Throws `bundle` when they are not the row's. */
export async function readDocument(
  { read }: Pick<Bundle, 'read'>,
  { key, present, blob, size, sha256 }: PutLine<'document'>['value'],
): Promise<Buffer | null> {
  if (!present && blob === null) return null
  const body = blob === null ? null : await read(`blobs/${blob}.gz`)
  if (present && body !== null && sha256Hex(body) === blob) if (isContent(body, size, sha256)) return body
  throw new MirrorError('bundle', `${key} does not have the bytes that its row names`)
}
