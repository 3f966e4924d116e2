import { type SourceName, SOURCES } from '../../base/domain/sources.ts'
import type { CarriedReader } from './reader.ts'
import { type CarriedRow, compareRows, ROW_KINDS, type RowKind, type SummaryRow } from './rows.ts'

/** A row that differs from at least one of the compared states; `row` null: it does not exist any more. */
export interface Difference {
  source: SourceName
  kind: RowKind
  key: string
  row: CarriedRow | null
}

/** Reads one state's rows, one row ahead. */
interface Cursor {
  /** Null at the end. */
  next: SummaryRow | null
  advance(): Promise<void>
}

async function openCursor(rows: AsyncGenerator<SummaryRow>, wanted: ReadonlySet<SourceName>): Promise<Cursor> {
  const cursor: Cursor = {
    next: null,
    async advance() {
      for (;;) {
        const read = await rows.next()
        cursor.next = read.done === true ? null : read.value
        if (cursor.next === null || wanted.has(cursor.next.source)) return
      }
    },
  }
  await cursor.advance()
  return cursor
}

/**
 * Compares the stored rows with one or several states, in row order, and yields every row that differs from any of them,
 * was missing in any of them, or was removed. Applied to any of these states, the differences give the stored state. One
 * row of each is in memory.
 */
export async function* eachDifference(
  reader: CarriedReader,
  sources: readonly SourceName[],
  states: readonly AsyncGenerator<SummaryRow>[],
): AsyncGenerator<Difference> {
  const wanted = new Set(sources)
  const cursors = await Promise.all(states.map((rows) => openCursor(rows, wanted)))
  for (const source of SOURCES.filter((one) => wanted.has(one)))
    for (const kind of ROW_KINDS[source]) {
      for (const row of reader.eachRow(source, kind)) {
        const place = { source, kind, key: row.key }
        yield* removedBefore(cursors, place)
        if (await differs(cursors, place, row.hash)) yield { ...place, row }
      }
      yield* removedBefore(cursors, { source, kind, key: null })
    }
}

interface Place {
  source: SourceName
  kind: RowKind
  /** Null: after all rows of the kind. */
  key: string | null
}

function isBefore(row: SummaryRow, { source, kind, key }: Place): boolean {
  if (key !== null) return compareRows(row, { source, kind, key }) < 0
  return compareRows(row, { source, kind, key: row.key }) <= 0
}

/** Yields the rows that some state has before a position and that are not stored: in order, each once. */
async function* removedBefore(cursors: readonly Cursor[], place: Place): AsyncGenerator<Difference> {
  for (;;) {
    let first: SummaryRow | null = null
    for (const { next } of cursors)
      if (next !== null && isBefore(next, place) && (first === null || compareRows(next, first) < 0)) first = next
    if (first === null) return
    const { source, kind, key } = first
    for (const cursor of cursors)
      while (cursor.next !== null && compareRows(cursor.next, first) === 0) await cursor.advance()
    yield { source, kind, key, row: null }
  }
}

/** Advances the cursors past a stored row; returns true when any state has a different row, or none. */
async function differs(cursors: readonly Cursor[], place: Place & { key: string }, hash: string): Promise<boolean> {
  let found = false
  for (const cursor of cursors) {
    const { next } = cursor
    if (next === null || compareRows(next, place) !== 0) found = true
    else {
      if (next.hash !== hash) found = true
      await cursor.advance()
    }
  }
  return found || cursors.length === 0
}
