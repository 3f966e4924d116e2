import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createIdTable } from '../../../src/sync/osv/id-table.ts'

const text = fc.string({ unit: 'grapheme', maxLength: 40 }).filter((value) => value.isWellFormed())

describe('the id table', () => {
  test('answers as a Map does for any ids, repeated or not', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text), { maxLength: 300 }), text, (pairs, stranger) => {
        const table = createIdTable(8)
        const map = new Map<string, string>()
        for (const [id, modified] of pairs) {
          expect(table.set(id, modified)).toBe(!map.has(id))
          map.set(id, modified)
        }
        expect(table.size).toBe(map.size)
        expect([...table.ids()]).toEqual([...map.keys()])
        for (const [id, modified] of map) {
          const ordinal = table.get(id) ?? -1
          expect([table.idAt(ordinal), table.modifiedAt(ordinal)]).toEqual([id, modified])
        }
        expect(table.get(stranger) !== undefined).toBe(map.has(stranger))
      }),
    )
  })

  test('finds each of many thousands of ids', () => {
    const table = createIdTable(64)
    for (let i = 0; i < 50_000; i++) table.set(`ROOT-OS-${i}`, String(i % 7))
    const wrong = Array.from({ length: 50_000 }, (_, i) => i).filter((i) => table.get(`ROOT-OS-${i}`) !== i)
    expect(wrong).toEqual([])
    expect(table.get('ROOT-OS-50000')).toBeUndefined()
  })
})
