import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cutMembers } from '../../src/json/cut.ts'

const hide = (name: string): boolean => name.startsWith('x')
const cut = (text: string): string => cutMembers(Buffer.from(text), hide).toString()

test.each([
  ['{"x":1}', '{}'],
  ['{"x":1,"x2":2,"x3":3}', '{}'],
  ['{"a":1,"x":2,"x2":3,"x3":4}', '{"a":1}'],
  ['{"x":1,"x2":2,"a":3}', '{"a":3}'],
  ['{"a":1, "x":2, "b":3, "x2":4 }', '{"a":1, "b":3 }'],
  [' [ {"a":{"x":[1,{"y":2}],"b":9007199254740993.0}} ] ', ' [ {"a":{"b":9007199254740993.0}} ] '],
  ['{"\\u0078":"escaped","a":"x"}', '{"a":"x"}'],
  ['"x"', '"x"'],
])('%s without what is hidden is %s', (text, expected) => {
  expect(cut(text)).toBe(expected)
})

function without(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(without)
  if (typeof value !== 'object' || value === null) return value
  const kept = Object.entries(value).filter(([name]) => !hide(name))
  return Object.fromEntries(kept.map(([name, inner]) => [name, without(inner)]))
}

test('any JSON keeps all that is not hidden, whatever the spacing', () => {
  const names = fc.constantFrom('a', 'b', 'x', 'x1', 'x2', 'é', '"')
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(null, true, 0, -1.5, '', 'x', '"', '\\"', '{'),
      fc.array(tie('tree'), { maxLength: 4 }),
      fc.dictionary(names, tie('tree'), { maxKeys: 6 }),
    ),
  }))
  fc.assert(
    fc.property(tree, fc.constantFrom(undefined, 1, '\t'), (value, space) => {
      expect(JSON.parse(cut(JSON.stringify(value, null, space)))).toEqual(without(value))
    }),
    { numRuns: 300 },
  )
})

test('JSON that is nested deeper than a stack is refused', () => {
  expect(() => cut('['.repeat(100_000) + ']'.repeat(100_000))).toThrow(/nested more than 500 deep/)
})
