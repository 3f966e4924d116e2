import { describe, expect, test } from 'vitest'
import { refuseComparison } from '../../../src/documents/differences/bounds.ts'
import { differencesOf } from './pairs.ts'

const refusal = (record: object) => refuseComparison(JSON.stringify(record), record)

/** Counts the values that are put into sets, and the elements that are copied from lists, while work runs. */
function countCopies(work: () => void): number {
  const add = Reflect.get(Set.prototype, 'add') as (this: Set<unknown>, value: unknown) => Set<unknown>
  const { concat } = Array.prototype
  let copied = 0
  Set.prototype.add = function (this: Set<unknown>, value: unknown) {
    copied++
    return add.call(this, value)
  }
  Array.prototype.concat = function (this: unknown[], ...lists: unknown[]) {
    copied += this.length
    return concat.apply(this, lists) as unknown[]
  }
  try {
    work()
  } finally {
    Set.prototype.add = add
    Array.prototype.concat = concat
  }
  return copied
}

describe('the comparison of a large record', () => {
  test('reads each version, range and severity of a package a bounded number of times', () => {
    const affected = Array.from({ length: 1000 }, (_, i) => ({
      versions: [`${i}`],
      ranges: [{ type: 'SEMVER', events: [{ fixed: `${i}.0.0` }] }],
      severity: [{ type: 'CVSS_V3', score: `${i}` }],
    }))
    let found = 0
    const copied = countCopies(() => {
      found = differencesOf({}, { affected }).length
    })
    expect(found).toBeGreaterThan(1000)
    expect(copied).toBeGreaterThanOrEqual(1000)
    expect(copied).toBeLessThan(50_000)
  })

  test('orders versions of a bounded length in all', () => {
    const fixed = (first: string, count: number) => {
      const more = Array.from({ length: count }, (_, i) => ({ fixed: `9.${i}${'.1'.repeat(60)}` }))
      const events = [{ introduced: '0' }, { fixed: first }, ...more]
      return { affected: [{ package: { ecosystem: 'Maven', name: 'a' }, ranges: [{ type: 'ECOSYSTEM', events }] }] }
    }
    const kinds = (count: number) => differencesOf(fixed('1', count), fixed('2', count)).map(({ kind }) => kind)
    expect(kinds(100)).toEqual(['fix_raised', 'range_widened'])
    expect(kinds(1000)).toEqual(['fix_raised', 'range_changed'])
  })

  test('is refused where it has too many values, or a name that each difference would repeat', () => {
    const versions = Array.from({ length: 30_001 }, () => '1')
    expect(refusal({ affected: [{ versions }] })).toBe('more than 30000 values')
    expect(refusal({ affected: [{ versions: versions.slice(0, 29_000) }] })).toBeNull()
    expect(refusal({ details: '\\",[{'.repeat(100_000) })).toBeNull()
    const deep = (levels: number): object => JSON.parse('{"a":'.repeat(levels) + '1' + '}'.repeat(levels)) as object
    expect(refusal(deep(200))).toBeNull()
    expect(refusal(deep(201))).toBe('nested in more than 200 levels')
    const named = (length: number) => ({ affected: [{ package: { ecosystem: 'npm', name: 'x'.repeat(length) } }] })
    expect(refusal(named(297))).toBeNull()
    expect(refusal(named(298))).toMatch(/name is longer than 300 characters/)
    expect([null, 7, [], { affected: [null, { package: 1 }] }].map((one) => refuseComparison('', one))).toEqual(
      Array(4).fill(null),
    )
  })
})
