import { expect } from 'vitest'
import { longTest, test } from '../../../../support/tables.ts'
import { createMerge } from '../../../../../src/features/scanners/views/vex/merge.ts'
import { type OpenVex, readOpenVex } from '../../../../../src/features/scanners/views/vex/openvex.ts'
import { sourceOf } from '../../../../../src/features/scanners/views/vex/plan.ts'
import { type Dice, createDice } from '../../../../support/dice.ts'

const ABOUT = 'pkg:npm/a'
const TIMES = ['2026-01-01T00:00:00Z', '2026-01-01T01:00:00+01:00', '2026-01-02T00:00:00Z', 'soon']

function anyDocument(dice: Dice): OpenVex {
  const time = (): object => (dice(3) === 0 ? {} : { timestamp: TIMES[dice(TIMES.length)] })
  const statements = Array.from({ length: 1 + dice(4) }, () => ({
    vulnerability: { name: `CVE-${dice(2)}",]}` },
    products: [{ '@id': dice(6) === 0 ? 'pkg:npm/b' : ABOUT }],
    status: dice(3) === 0 ? 'affected' : 'fixed – ü',
    ...(dice(3) === 0 ? time() : {}),
  }))
  const head = { '@context': 'openvex', author: `“${dice(2)}”`, ...time() }
  const document = readOpenVex(Buffer.from(JSON.stringify({ ...head, statements })))
  if (document === null) throw new Error('not OpenVEX')
  return document
}

function mixed(numbers: readonly number[], dice: Dice): number[] {
  return numbers
    .map((one) => [dice(1000), one] as const)
    .sort(([a], [b]) => a - b)
    .map(([, one]) => one)
}

longTest('a merged document that is changed is the one that is merged from the beginning, whatever the order', () => {
  const dice = createDice(2)
  let shared = 0
  for (let round = 0; round < 300; round++) {
    const documents = Array.from({ length: 6 }, () => anyDocument(dice))
    const some = (): number[] => [...documents.keys()].filter(() => dice(2) === 0)
    const sourcesOf = (numbers: readonly number[]) =>
      new Map(numbers.flatMap((one) => (documents[one] ? [[one, sourceOf(documents[one])]] : [])))
    const before = some()
    const after = some()
    const merged = createMerge(ABOUT)
    const add = (merge: typeof merged, numbers: readonly number[]): void => {
      for (const one of numbers) if (documents[one]) merge.add(one, documents[one])
    }
    add(merged, before)
    const changed = createMerge(ABOUT)
    const removed = before.filter((one) => !after.includes(one))
    changed.restore(merged.end(sourcesOf(before)), (one) => !removed.includes(one))
    const added = after.filter((one) => !before.includes(one))
    add(changed, mixed(added, dice))
    const whole = createMerge(ABOUT)
    add(whole, after)
    const expected = whole.end(sourcesOf(after))
    const found = changed.end(sourcesOf(after))
    expect(found.content.toString()).toBe(expected.content.toString())
    const lengths = ({ order }: typeof found) => order.map(([at, all]) => [at, all.map(([length]) => length)])
    expect(lengths(found)).toEqual(lengths(expected))
    shared += found.order.flatMap(([, all]) => all).filter((one) => one.length > 3).length
  }
  expect(shared).toBeGreaterThan(100)
})

const document = (name: string, timestamp: string, ...names: string[]) => {
  const statements = names.map((one) => ({
    vulnerability: { name: one },
    products: [{ '@id': ABOUT }],
    status: 'fixed',
  }))
  const head = { '@context': 'openvex', author: name, timestamp }
  return readOpenVex(Buffer.from(JSON.stringify({ ...head, statements })))
}

test('statements of equal time are in the order of the documents, an equal one where it is last', () => {
  const z = '2026-01-01T00:00:00Z'
  const plus = '2026-01-01T01:00:00+01:00'
  const documents = [document('A', z, '1', '2'), document('B', plus, '3'), document('C', z, '4', '1', '4')]
  const orders = [
    [0, 1, 2],
    [2, 1, 0],
    [1, 2, 0],
  ]
  for (const order of orders) {
    const merge = createMerge(ABOUT)
    for (const one of order) if (documents[one]) merge.add(one, documents[one])
    const sources = (order[0] === 1 ? [0, 2, 1] : [0, 1, 2]).map(
      (one) => [one, sourceOf(documents[one] ?? null)] as const,
    )
    const { statements, timestamp } = JSON.parse(merge.end(new Map(sources)).content.toString()) as {
      timestamp: string
      statements: { vulnerability: { name: string } }[]
    }
    const names = statements.map(({ vulnerability: { name } }) => name)
    expect([names, timestamp]).toEqual(order[0] === 1 ? [['2', '1', '4', '3'], plus] : [['2', '3', '1', '4'], z])
  }
})
