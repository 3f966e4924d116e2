import { expect, test } from 'vitest'
import { doubtsAbout } from '../../src/guard/kinds.ts'

type Events = readonly Record<string, string>[]

function kindsOf(before: Events, after: Events, versions?: readonly string[]): string[] {
  const recordOf = (events: Events) => {
    const ranges = events.length === 0 ? [] : [{ type: 'ECOSYSTEM', events }]
    const json = { id: 'R-1', affected: [{ package: { ecosystem: 'npm', name: 'a' }, ranges, versions }] }
    return { json, length: 1_000 }
  }
  return doubtsAbout(recordOf(before), recordOf(after)).map(({ kind }) => kind)
}

test('Affected versions that are lost beside a bound that could never be read are doubted', () => {
  const start = { introduced: '0' }
  const odd = { fixed: 'see the text' }
  expect(kindsOf([start, { last_affected: '5.0.0' }, odd], [start, { last_affected: '0.0.1' }, odd])).toEqual([
    'affectedLost',
  ])
  expect(
    kindsOf([start, { fixed: '5.0.0' }, odd], [start, { last_affected: '1.0.0' }, { fixed: '5.0.0' }, odd]),
  ).toEqual(['affectedLost'])
  expect(kindsOf([start, { fixed: '5.0.0' }, odd], [start, { fixed: '5.0.1' }, odd])).toEqual([])
  expect(kindsOf([start, { fixed: '5.0.0' }, odd], [start, { fixed: '5.0.0' }])).toEqual([])
})

test('Ranges that are gone are doubted, though versions are listed beside them', () => {
  expect(kindsOf([{ introduced: '0' }, { fixed: '5.0.0' }], [], ['0.0.1'])).toEqual(['affectedLost'])
})

test('A listed version that is gone and was in no range is doubted, and one within a range is not', () => {
  const kinds = (before: readonly string[], after: readonly string[]): string[] => {
    const [one, other] = [before, after].map((versions) => {
      const ranges = [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: '2.0.0' }] }]
      const json = { id: 'R-1', affected: [{ package: { ecosystem: 'npm', name: 'a' }, ranges, versions }] }
      return { json, length: 1_000 }
    }) as [{ json: object; length: number }, { json: object; length: number }]
    return doubtsAbout(one, other).map(({ kind }) => kind)
  }
  expect(kinds(['1.0.0', '3.0.0', '4.0.0'], ['1.0.0', '4.0.0'])).toEqual(['affectedLost'])
  expect(kinds(['1.0.0', '1.1.0', '4.0.0'], ['1.0.0', '4.0.0'])).toEqual([])
})
