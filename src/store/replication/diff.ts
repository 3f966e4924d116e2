import { type SourceName, SOURCES } from '../../base/domain/sources.ts'
import type { CarriedReader } from './reader.ts'
import { type CarriedRow, compareRows, ROW_KINDS, type RowKind, type SummaryRow } from './rows.ts'
import type { SummaryRows } from './summary.ts'

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
  /** Null: it has advanced at once, as nearly always. */
  advance(): Promise<void> | null
}

async function openCursor(pages: SummaryRows, wanted: ReadonlySet<SourceName>): Promise<Cursor> {
  let page: readonly SummaryRow[] = []
  let at = 0
  const step = (): boolean => {
    for (let row = page[at]; row !== undefined; row = page[at]) {
      at++
      cursor.next = row
      if (wanted.has(row.source)) return true
    }
    return false
  }
  const turn = async (): Promise<void> => {
    while (!step()) {
      const read = await pages.next()
      cursor.next = null
      if (read.done === true) return
      page = read.value
      at = 0
    }
  }
  const cursor: Cursor = { next: null, advance: () => (step() ? null : turn()) }
  await turn()
  return cursor
}

/**
 * Compares the stored rows with one or several states, in row order, and yields every row that differs from any of them,
 * was missing in any of them, or was removed. Applied to any of these states, the differences give the stored state. One
 * row of each is in memory.
 */
export async function* eachDifference(
  reader: Pick<CarriedReader, 'eachRow'>,
  sources: readonly SourceName[],
  states: readonly SummaryRows[],
): AsyncGenerator<Difference> {
  const wanted = new Set(sources)
  const cursors = await Promise.all(states.map((rows) => openCursor(rows, wanted)))
  for (const source of SOURCES.filter((one) => wanted.has(one)))
    for (const kind of ROW_KINDS[source]) {
      for (const row of reader.eachRow(source, kind)) {
        const place = { source, kind, key: row.key }
        if (cursors.length > 0 && cursors.every(({ next }) => isRow(next, place, row.hash))) {
          for (const cursor of cursors) {
            const turned = cursor.advance()
            if (turned !== null) await turned
          }
          continue
        }
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

function isRow(next: SummaryRow | null, { source, kind, key }: Place, hash: string): boolean {
  return next?.key === key && next.hash === hash && next.kind === kind && next.source === source
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
