import { csvField } from '../../../base/text.ts'
import { toIso } from '../../../base/time.ts'
import { type Table, type Value, columnsOf, listOf } from './answer.ts'

/** Returns a table as lines of a CSV: all columns, times in ISO 8601, digests as a whole, several values behind semicolons. */
export function csvLines(table: Pick<Table, 'columns' | 'rows'>): string[] {
  const columns = columnsOf(table)
  const head = columns.map(({ name }) => csvField(name.replaceAll(' ', '_')))
  const rows = table.rows.map((row) => columns.map((_, at) => csvField(textOf(row[at] ?? []))))
  return [head, ...rows].map((fields) => fields.join(','))
}

function textOf(values: Value | readonly Value[]): string {
  return listOf(values)
    .flatMap((value) => textOfValue(value) ?? [])
    .join('; ')
}

/** Null: there is none. */
function textOfValue(value: Value): string | null {
  switch (value.kind) {
    case 'none':
      return null
    case 'count':
      return String(value.count)
    case 'bytes':
      return String(value.bytes)
    case 'digest':
      return value.digest
    case 'time':
      return typeof value.at === 'number' ? toIso(value.at) : value.at
    case 'text':
      return value.note === undefined ? value.text : `${value.text}, ${value.note}`
  }
}
