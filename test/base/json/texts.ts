import fc from 'fast-check'
import { ANY_CHARACTER } from '../../support/texts.ts'

/** JSON as it was written: every token with its own spelling, so that bytes can be compared. */
export type Written =
  | { kind: 'scalar'; text: string }
  | { kind: 'list'; items: Written[] }
  | { kind: 'object'; members: { name: string; spelled: string; value: Written }[] }

/** A string token: its plain spelling, or with any of its characters escaped. */
function spell(text: string, escaped: boolean): string {
  if (!escaped) return JSON.stringify(text)
  const units = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at))
  return `"${units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')}"`
}

const strings = fc
  .tuple(
    fc.oneof(
      fc.string({ unit: ANY_CHARACTER, maxLength: 8 }),
      fc.constantFrom('key', 'secret', '', '"', '\\', '}', '],{', '__proto__', 'ключ', '🛡'),
    ),
    fc.boolean(),
  )
  .map(([text, escaped]) => ({ name: text, spelled: spell(text, escaped) }))

const scalars: fc.Arbitrary<Written> = fc
  .oneof(
    strings.map(({ spelled }) => spelled),
    fc.constantFrom('true', 'false', 'null', '0', '-0.0', '1e400', '90071992547409931', '1E-7'),
  )
  .map((text) => ({ kind: 'scalar', text }))

function listsOf(inner: fc.Arbitrary<Written>): fc.Arbitrary<Written> {
  return fc.array(inner, { maxLength: 5 }).map((items) => ({ kind: 'list', items }))
}

function objectsOf(inner: fc.Arbitrary<Written>): fc.Arbitrary<Written> {
  return fc.array(fc.tuple(strings, inner), { maxLength: 6 }).map((members) => ({
    kind: 'object',
    members: members.map(([name, value]) => ({ ...name, value })),
  }))
}

/** Any JSON, its names repeated now and then. */
export const written: fc.Arbitrary<Written> = fc.letrec<{ value: Written }>((tie) => ({
  value: fc.oneof({ maxDepth: 5, depthSize: 'small' }, scalars, listsOf(tie('value')), objectsOf(tie('value'))),
})).value

const SPACES = ['', ' ', '\n', '\r\n\t', '    ']

/** The text, with white space wherever there may be some, drawn from `seed`; none with seed 0. */
export function textOf(value: Written, seed: number): string {
  let state = seed
  const space = (): string => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return seed === 0 ? '' : (SPACES[(state >> 8) % SPACES.length] ?? '')
  }
  const write = (one: Written): string => {
    if (one.kind === 'scalar') return space() + one.text + space()
    if (one.kind === 'list') return `${space()}[${one.items.map(write).join(',') || space()}]${space()}`
    const members = one.members.map(({ spelled, value: inner }) => `${space()}${spelled}${space()}:${write(inner)}`)
    return `${space()}{${members.join(',') || space()}}${space()}`
  }
  return write(value)
}

/** The text without the white space between its tokens. */
export function compact(text: string): string {
  return text.replace(/("(?:\\.|[^"\\])*")|[ \n\r\t]+/g, '$1')
}
