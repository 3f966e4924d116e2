/** What stands in the place of a value of another type: none of these is what a note has there. */
const ODD: readonly unknown[] = [
  null,
  true,
  5,
  -1,
  1.5,
  1e300,
  'x',
  '',
  [],
  [null],
  ['x'],
  [[null]],
  {},
  { x: null },
  { x: 5 },
]

/** Returns texts of other shapes than a note has: no JSON, other values, and each of its members replaced or missing. */
export function oddNotes(good: unknown): string[] {
  return ['', '{', '\0', ...ODD.map((one) => JSON.stringify(one)), ...variants(good).map((one) => JSON.stringify(one))]
}

function variants(good: unknown): unknown[] {
  if (typeof good !== 'object' || good === null) return []
  return Object.entries(good).flatMap(([name, value]: [string, unknown]) => [
    without(good, name),
    ...[...ODD, ...variants(value)].map((one) => replaced(good, name, one)),
  ])
}

function replaced(good: object, name: string, value: unknown): object {
  if (Array.isArray(good)) return good.map((one: unknown, at) => (String(at) === name ? value : one))
  return { ...good, [name]: value }
}

function without(good: object, name: string): object {
  return Object.fromEntries(Object.entries(good).filter(([one]) => one !== name))
}
