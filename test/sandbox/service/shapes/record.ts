import type { RecordForm } from './forms.ts'

const json = JSON as unknown as { isRawJSON: (value: unknown) => boolean } // not in the ES2024 types

/** The kinds of records, as a field's prefix has them. */
export type Noun =
  | 'account'
  | 'organization'
  | 'api_key'
  | 'image'
  | 'tag'
  | 'package'
  | 'ticket'
  | 'avr'
  | 'user'
  | 'subscription'
  | 'webhook'
  | 'delivery'
  | 'release'

const DATE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/
const TAILS = { zulu: 'Z', fraction: '.000Z', zoneless: '', offset: '+00:00' } as const

/** A record, snake_case with ids as texts, in the form that a shape has it. */
export function worded(form: RecordForm, noun: Noun, record: object): object {
  const plain = wordedFields(form, noun, record)
  const isId = (name: string): boolean =>
    name === 'id' || name.replaceAll('_', '').toLowerCase() === `${noun.replaceAll('_', '')}id`
  const all: [string, unknown][] = Object.entries(plain)
  const [id] = all.filter(([name]) => isId(name))
  if (form.within === 'nothing' || id === undefined) return plain
  const rest = Object.fromEntries(all.filter(([name]) => name !== id[0]))
  return { [id[0]]: id[1], type: noun, [form.within === 'noun' ? noun : form.within]: rest }
}

function wordedFields(form: RecordForm, noun: Noun, record: object): object {
  if (form.fields !== 'prefixed') return fields(form, record)
  const own = Object.entries(record).map(([name, value]: [string, unknown]) => [prefixed(noun, name, value), value])
  return fields(form, Object.fromEntries(own) as object)
}

/** A field's name as a shape has it, for a record that is no thing of its own. */
export function fieldName({ fields: form }: RecordForm, name: string): string {
  if (form !== 'camel') return name
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

/** The name that a field has in the sandbox, of the name that a request gives it. */
export function plainField(noun: Noun, name: string): string {
  const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  if (noun !== 'ticket' || snake === 'ticket_status' || snake === 'ticket_id') return snake
  return snake.replace(/^ticket_/, '')
}

/** References to other things and what is nested keep their names. */
function prefixed(noun: Noun, name: string, value: unknown): string {
  const isOwn = name === 'id' || !name.endsWith('_id')
  const isPlain = typeof value !== 'object' || value === null || json.isRawJSON(value)
  return isOwn && isPlain && !name.startsWith(`${noun}_`) ? `${noun}_${name}` : name
}

function fields(form: RecordForm, record: object): object {
  const shown = Object.entries(record).flatMap(([name, value]: [string, unknown]) => {
    if (value === null && form.none === 'absent') return []
    return [[fieldName(form, name), wordedValue(form, name, value)]]
  })
  return Object.fromEntries(shown) as object
}

function wordedValue(form: RecordForm, name: string, value: unknown): unknown {
  if (value === null) return form.none === 'empty' ? '' : null
  if (typeof value === 'string') return wordedText(form, name, value)
  if (Array.isArray(value)) return value.map((one) => wordedValue(form, '', one))
  if (typeof value !== 'object' || json.isRawJSON(value)) return value
  return fields(form, value)
}

function wordedText({ ids, dates }: RecordForm, name: string, text: string): string | number {
  if (DATE.test(text)) return text.slice(0, -1) + TAILS[dates]
  const isId = name === 'id' || name.endsWith('_id')
  return ids === 'integer' && isId && /^\d{1,15}$/.test(text) ? Number(text) : text
}
