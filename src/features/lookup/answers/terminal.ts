import { table, timeOf, visible } from '../../../cli/output.ts'
import {
  type Answer,
  type Column,
  type Facts,
  type Part,
  type Table,
  type Value,
  ISO_TIME,
  columnsOf,
  listOf,
  notesOf,
} from './answer.ts'

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

function tableLines(given: Table): string[] {
  const { rows, of = rows.length, empty } = given
  const notes = notesOf(given)
  if (rows.length === 0) return [...[empty, ...notes].map(visible), ...nextLines(given)]
  const columns = columnsOf(given)
  if (columns.some(({ isBelow }) => isBelow)) return [...outlineLines(columns, rows), ...nextLines(given)]
  const shown = columns.filter(({ isDetail }) => isDetail !== true)
  const cells = rows.map((row) =>
    columns.flatMap((column, at) => (column.isDetail === true ? [] : cellText(column, row[at] ?? []))),
  )
  const more = of - rows.length
  const hint = more > 0 ? [`… and ${more} more: --limit ${of}, or --json`] : []
  const head = shown.map(({ name }) => name)
  return [...notes.map(visible), table(head, cells), ...hint, ...nextLines(given)]
}

/** Returns each row as a line, a time apart from the rest, with the values of its columns below it. */
function outlineLines(columns: readonly Column[], rows: Table['rows']): string[] {
  return rows.flatMap((row) => {
    const cells = columns.map((column, at) => ({ ...column, values: listOf(row[at] ?? []) }))
    const heads = cells.filter(({ isBelow, isDetail }) => isBelow !== true && isDetail !== true)
    const [times = [], others = []] = [true, false].map((isTime) =>
      heads.filter(({ values }) => (values[0]?.kind === 'time') === isTime).map(({ values }) => textOfValues(values)),
    )
    const below = cells.flatMap(({ isBelow, values }) => (isBelow === true ? values : []))
    return [visible([...times, others.join(': ')].join('  ')), ...below.map((one) => `  ${visible(textOfValue(one))}`)]
  })
}

/** Returns what is to be known of a table that is printed in another form: why rows may be missing, and how to see more. */
export function notesBeside(given: Table): string[] {
  return [...notesOf(given), ...nextLines(given).slice(1)]
}

/** Says how many rows of a list are shown, and how to see the next ones. */
function nextLines({ rows, next, total, more }: Table): string[] {
  if (more !== undefined) return ['', more]
  if (next === undefined || total === undefined) return []
  const count = total === null ? `${rows.length} shown` : `${rows.length} of ${total}`
  return ['', `${count}; the next page: the same command with`, `--after ${next}`]
}

function cellText({ isPhrase }: Column, values: Value | readonly Value[]): string {
  if (isPhrase !== true) return textOfValues(values)
  const [first, ...others] = listOf(values)
  const parts = [...listOf(first ?? []), ...others.filter(({ kind }) => kind !== 'none')]
  return parts.map(textOfValue).join(' ')
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
    case 'digest':
      return value.digest.replace(/^sha256:/, '').slice(0, 12)
    case 'time': {
      const at = terminalTime(value.at)
      return withNote(value.isDay === true ? at.slice(0, 10) : at, value.note)
    }
    case 'text':
      return withNote(terminalTime(value.text), value.note)
  }
}

/** Returns a time in the one form of the terminal, also one of the service; any other text unchanged. */
export function terminalTime(at: number | string): string {
  if (typeof at === 'number') return timeOf(at)
  return ISO_TIME.test(at) ? `${at.slice(0, 19).replace('T', ' ')}Z` : at
}

function withNote(text: string, note: string | undefined): string {
  return note === undefined ? text : `${text}, ${note}`
}
