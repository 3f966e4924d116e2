import { sha256Hex } from '../../core/digest.ts'
import { MirrorError } from '../../core/errors.ts'
import type { OnProgress } from '../../domain/progress.ts'
import type { SourceName } from '../../domain/sources.ts'
import {
  type CarriedRow,
  ROW_KINDS,
  type RowKind,
  type SourceValue,
  compareKeys,
} from '../../store/replication/rows.ts'
import type { Writes } from '../../store/writer.ts'
import type { Bundle } from './open.ts'
import { type PutLine, answerBody, confirmedOf, eachLine, entryBody, isContent } from './rows.ts'
import type { RowCounts } from './types.ts'

/** Context for writing the rows of a source. */
interface RowContext {
  bundle: Bundle
  store: Writes
  source: SourceName
  runId: number
  /** Also write rows that equal the stored ones. */
  again: boolean
  progress: OnProgress
}

/** The result of applying a source's rows. */
interface AppliedRows {
  counts: Partial<Record<RowKind, RowCounts>>
  /** The source's own row, if it differs from the stored one. */
  value: SourceValue | null
}

type Writer<K extends RowKind> = {
  put(line: PutLine<K>): void | Promise<void>
  remove(key: string): void
  /** Stores what is not part of the row, from the line of an unchanged row. */
  confirm?(line: PutLine<K>): void
}

/** Writers by kind; documents of the catalog are staged before, and swept after. */
type Writers = { [K in Exclude<RowKind, 'catalog-document'>]: Writer<K> }

/**
 * Writes the rows of a source that differ from the stored ones, within the open transaction. The bytes of records follow
 * later: their rows are staged in `store.incoming`.
 */
export async function applyRows(context: RowContext): Promise<AppliedRows> {
  const { store, source } = context
  const applied: AppliedRows = { counts: {}, value: null }
  const writers = createWriters(context, (value) => {
    applied.value = value
  })
  store.carried.incoming.clear()
  for (const kind of ROW_KINDS[source]) {
    if (kind === 'catalog-document') continue
    const counts = await applyKind(context, kind, writers[kind] as Writer<RowKind>)
    if (counts.put + counts.removed > 0) applied.counts[kind] = counts
    if (kind === 'catalog-entry') store.carried.settleEntries()
  }
  return applied
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
  { bundle, store, source, again, progress }: RowContext,
  kind: K,
  writer: Writer<K>,
): Promise<RowCounts> {
  const counts = { put: 0, removed: 0 }
  const total = bundle.manifest.counts[kind]?.put ?? null
  const full = bundle.manifest.kind === 'full'
  const stored = createStored(full ? store.carried.eachRow(source, kind) : null)
  const remove = (key: string): void => {
    writer.remove(key)
    counts.removed++
  }
  let seen = 0
  for await (const line of eachLine(bundle, source, kind)) {
    const same = stored.passTo(line.key, remove)
    if (line.put === null) remove(line.key)
    else if (again || same !== line.put.hash) {
      await writer.put(line.put)
      counts.put++
    } else writer.confirm?.(line.put)
    if (++seen % 1000 === 0) progress({ phase: 'rows', unit: 'rows', done: seen, total })
  }
  stored.passTo(null, remove)
  return counts
}

/** The stored rows: a full bundle replaces all of them, a delta lists the removed ones itself. */
function createStored(rows: Generator<CarriedRow> | null) {
  let next = rows?.next()
  return {
    /**
     * Reports the rows before a key (null: all remaining) as removed. Returns the hash of the row with that key; null:
     * none.
     */
    passTo(key: string | null, gone: (key: string) => void): string | null {
      while (next?.done === false) {
        const { value } = next
        const order = key === null ? -1 : compareKeys(value.key, key)
        if (order > 0) return null
        next = rows?.next() // read ahead, before anything is written
        if (order === 0) return value.hash
        gone(value.key)
      }
      return null
    },
  }
}

function createWriters(
  { bundle, store, source, runId }: RowContext,
  found: (value: SourceValue) => void,
): Writers {
  return {
    source: {
      put: ({ key, value }) => {
        if (key !== source)
          throw new MirrorError('bundle', `the rows of ${source} have a row of ${key}`)
        found(value)
      },
      remove: (key) => {
        throw new MirrorError('bundle', `it would remove all of ${key}`)
      },
    },
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
      put: ({ value }) => store.carried.incoming.put(value),
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
          throw new MirrorError(
            'bundle',
            `the item ${line.key} belongs to a list that is not stored`,
          )
      },
      remove: store.carried.removeEntry,
    },
    'catalog-answer': {
      put: (line) => store.carried.putAnswer(line.value, answerBody(line), confirmedOf(line)),
      confirm: (line) =>
        store.carried.confirmCarried('catalog_answer', line.key, confirmedOf(line)),
      remove: store.catalog.removeAnswer,
    },
    'catalog-lacking': {
      put: ({ value }) => store.carried.putMissingPath(value),
      remove: store.carried.removeMissingPath,
    },
  }
}

/** The stored bytes of a whole document, null when upstream has none. Throws `bundle` when they are not the row's. */
async function readDocument(
  { read }: Bundle,
  { key, present, blob, size, sha256 }: PutLine<'document'>['value'],
): Promise<Buffer | null> {
  if (!present && blob === null) return null
  const body = blob === null ? null : await read(`blobs/${blob}.gz`)
  if (present && body !== null && sha256Hex(body) === blob)
    if (isContent(body, size, sha256)) return body
  throw new MirrorError('bundle', `${key} does not have the bytes that its row names`)
}
