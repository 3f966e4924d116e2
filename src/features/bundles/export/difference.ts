import type { SourceName } from '../../../base/domain/sources.ts'
import type { CarriedReader } from '../../../store/replication/reader.ts'
import {
  type CarriedRow,
  compareRows,
  ROW_KINDS,
  type RowKind,
  type SummaryRow,
} from '../../../store/replication/rows.ts'
import { type SummaryLines, lineOfRow, parseLine } from './summary.ts'

/** A row that differs from at least one of the compared states; `row` null: it does not exist any more. */
export interface Difference {
  kind: RowKind
  key: string
  row: CarriedRow | null
}

/** Reads one state's rows, one row ahead. */
interface Cursor {
  /** The line of the next row; null at the end. */
  line: string | null
  /** Returns the next row; null at the end. Most lines are never parsed: they equal a stored row. */
  next(): SummaryRow | null
  /** Null: it has advanced at once, as nearly always. */
  advance(): Promise<void> | null
}

async function openCursor(pages: SummaryLines): Promise<Cursor> {
  let page: readonly string[] = []
  let at = 0
  let before: string | null = null
  let row: SummaryRow | null = null
  const step = (): boolean => {
    const line = page[at]
    if (line === undefined) return false
    at++
    before = cursor.line
    cursor.line = line
    row = null
    return true
  }
  const turn = async (): Promise<void> => {
    while (!step()) {
      const read = await pages.next()
      if (read.done === true) {
        cursor.line = null
        return
      }
      page = read.value
      at = 0
    }
  }
  const cursor: Cursor = {
    line: null,
    next: () => (cursor.line === null ? null : (row ??= parseLine(cursor.line, before))),
    advance: () => (step() ? null : turn()),
  }
  await turn()
  return cursor
}

/**
 * Compares the stored rows of a source with one or several states of it, in row order, and yields every row that differs from any
 * of them, was missing in any of them, or was removed. Applied to any of these states, the differences give the stored state. One
 * row of each is in memory.
 */
export async function* eachDifference(
  reader: Pick<CarriedReader, 'eachRow'>,
  source: SourceName,
  states: readonly SummaryLines[],
): AsyncGenerator<Difference> {
  const cursors = await Promise.all(states.map(openCursor))
  for (const kind of ROW_KINDS[source]) {
    for (const row of reader.eachRow(source, kind)) {
      const line = lineOfRow(source, row)
      if (cursors.length > 0 && cursors.every((cursor) => cursor.line === line)) {
        for (const cursor of cursors) {
          const turned = cursor.advance()
          if (turned !== null) await turned
        }
        continue
      }
      const place = { source, kind, key: row.key }
      yield* removedBefore(cursors, place)
      if (await differs(cursors, place, row.hash)) yield { kind, key: row.key, row }
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
    for (const cursor of cursors) {
      const next = cursor.next()
      if (next !== null && isBefore(next, place) && (first === null || compareRows(next, first) < 0)) first = next
    }
    if (first === null) return
    for (const cursor of cursors) while (isAt(cursor, first)) await cursor.advance()
    yield { kind: first.kind, key: first.key, row: null }
  }
}

function isAt(cursor: Cursor, place: Omit<SummaryRow, 'hash'>): boolean {
  const next = cursor.next()
  return next !== null && compareRows(next, place) === 0
}

/** Advances the cursors past a stored row; returns true when any state has a different row, or none. */
async function differs(cursors: readonly Cursor[], place: Place & { key: string }, hash: string): Promise<boolean> {
  let found = false
  for (const cursor of cursors) {
    if (cursor.next()?.hash !== hash) found = true
    if (isAt(cursor, place)) await cursor.advance()
    else found = true
  }
  return found || cursors.length === 0
}
