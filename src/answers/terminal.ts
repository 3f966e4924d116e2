import { toIso } from '../base/time.ts'
import { table, visible } from '../cli/output.ts'
import { type Answer, type Facts, type Part, type Table, type Value, listOf } from './answer.ts'

/** Returns an answer as lines of a terminal, without what could move its cursor: facts and tables stand between blank lines. */
export function terminalLines({ title, parts }: Pick<Answer, 'parts'> & Partial<Answer>): string[] {
  const lines = title === undefined ? [] : [visible(title)]
  let isAfterBlock = false
  for (const part of parts) {
    const isBlock = part.kind === 'facts' || part.kind === 'table'
    if (lines.length > 0 && (isBlock || isAfterBlock)) lines.push('')
    lines.push(...linesOfPart(part))
    isAfterBlock = isBlock
  }
  return lines
}

function linesOfPart(part: Part): string[] {
  switch (part.kind) {
    case 'notice': {
      const said = part.text === undefined ? part.title : `${part.title}: ${part.text}`
      return [visible(part.level === 'warning' ? `warning: ${said}` : said)]
    }
    case 'text':
      return [visible(part.text)]
    case 'facts':
      return factLines(part)
    case 'table':
      return tableLines(part)
  }
}

function factLines({ rows }: Facts): string[] {
  const width = Math.max(0, ...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => visible(`${name.padEnd(width)}  ${textOfValues(value)}`))
}

function tableLines({ columns, rows, of = rows.length, notes = [], empty }: Table): string[] {
  if (rows.length === 0) return [empty, ...notes].map(visible)
  const cells = rows.map((row) => row.map(textOfValues))
  const more = of - rows.length
  const hint = more > 0 ? [`… and ${more} more: --limit ${of}, or --json`] : []
  return [...notes.map(visible), table(columns, cells), ...hint]
}

/** Returns values in a line; where one has a comma in it, they are separated by semicolons. */
function textOfValues(values: Value | readonly Value[]): string {
  const texts = listOf(values).map(textOfValue)
  return texts.length === 0 ? '-' : texts.join(texts.some((text) => text.includes(',')) ? '; ' : ', ')
}

function textOfValue(value: Value): string {
  switch (value.kind) {
    case 'none':
      return '-'
    case 'count':
      return String(value.count)
    case 'bytes':
      return `${value.bytes} bytes`
    case 'time':
      return withNote(typeof value.at === 'number' ? toIso(value.at) : value.at, value.note)
    case 'text':
      return withNote(value.text, value.note)
  }
}

function withNote(text: string, note: string | undefined): string {
  return note === undefined ? text : `${text}, ${note}`
}
