import { deflateRawSync } from 'node:zlib'
import { describe, expect } from 'vitest'
import { MALFORMED_IDS, generateRecord } from './generate.ts'
import { bothTest, LONG, longTest, test } from '../../support/tables.ts'

interface Osv {
  id: string
  modified: string
  schema_version?: string
  affected: { package: { ecosystem: string; name: string }; ranges: { events: object[] }[] }[]
  database_specific: { distro: string; distro_version: string }
}

const some = (seed: number, count: number, malformedIds = false) =>
  Array.from({ length: count }, (_, i) => generateRecord({ seed, malformedIds }, i))

describe('the generator', () => {
  test('gives the same bytes for the same seed, and other bytes for another seed', () => {
    const bytes = (seed: number) => Buffer.concat(some(seed, 200).map((record) => record.bytes))
    expect(bytes(7).equals(bytes(7))).toBe(true)
    expect(bytes(7).equals(bytes(8))).toBe(false)
  })

  test('gives each record by its number, independent of earlier ones', () => {
    expect(generateRecord({ seed: 3 }, 41)).toEqual(some(3, 42)[41])
  })

  bothTest('gives distinct ids', () => {
    const count = LONG ? 5000 : 600
    const ids = new Set<string>()
    for (const { id } of some(1, count, true)) ids.add(id)
    expect(ids.size).toBe(count)
  })

  longTest('gives sizes as real feeds have them', () => {
    const records = some(1, 6000)
    const sizes = records.map((record) => record.bytes.length).sort((a, b) => a - b)
    const at = (fraction: number) => sizes[Math.floor(fraction * sizes.length)] ?? 0
    const mean = sizes.reduce((sum, size) => sum + size, 0) / sizes.length
    expect(mean).toBeGreaterThan(2150)
    expect(mean).toBeLessThan(2850)
    expect(at(0.5)).toBeGreaterThan(1750)
    expect(at(0.5)).toBeLessThan(2150)
    expect(at(0.9)).toBeGreaterThan(3100)
    expect(at(0.9)).toBeLessThan(4000)
    expect(at(0.99)).toBeGreaterThan(9500)
    expect(at(0.99)).toBeLessThan(18_000)
    const deflated = records.slice(0, 2000).map((r) => deflateRawSync(r.bytes, { level: 6 }).length)
    const deflatedMean = deflated.reduce((sum, size) => sum + size, 0) / deflated.length
    expect(deflatedMean).toBeGreaterThan(650)
    expect(deflatedMean).toBeLessThan(950)
  })

  test('gives large records only when asked', () => {
    const large = Array.from({ length: 20 }, (_, i) => generateRecord({ seed: 1, large: 2 }, i))
    expect(large.filter((record) => record.bytes.length > 500_000)).toHaveLength(2)
    expect(some(1, 20).some((record) => record.bytes.length > 500_000)).toBe(false)
  })

  test('gives OSV records of the ecosystem that their id names', () => {
    for (const { id, modified, bytes } of some(1, 300)) {
      const record = JSON.parse(bytes.toString()) as Osv
      expect(record.id).toBe(id)
      expect(record.modified).toBe(modified)
      const ecosystem = record.affected[0]?.package.ecosystem ?? ''
      if (id.includes('-APP-')) expect(ecosystem).toMatch(/^Root:(npm|PyPI|Maven)$/)
      else expect(ecosystem).toMatch(/^Root:(Alpine:3\.\d+|Debian:\d+|Ubuntu:\d\d\.04)$/)
      expect(record.affected[0]?.ranges[0]?.events[0]).toEqual({ introduced: '0' })
      if (id.includes('-APP-')) expect(record.database_specific.distro_version).toBe('')
    }
  })

  longTest('is as irregular as real feeds are', () => {
    const records = some(1, 3000, true)
    const texts = records.map((record) => record.bytes.toString())
    const lengths = new Set(records.map((record) => record.modified.length))
    expect(Math.min(...lengths)).toBe(20)
    expect(Math.max(...lengths)).toBe(27)
    expect(records.some((record) => record.modified.startsWith('2031-'))).toBe(true)
    expect(records.some((record) => record.modified.startsWith('0001-'))).toBe(true)
    expect(records.filter((r) => r.modified.endsWith('T00:00:00Z')).length).toBeGreaterThan(600)
    expect(texts.some((text) => text.startsWith('{\n'))).toBe(true)
    expect(texts.some((text) => text.startsWith('{"affected"'))).toBe(true)
    expect(texts.some((text) => text.includes('漏洞'))).toBe(true)
    expect(texts.some((text) => text.includes('\\u6f0f'))).toBe(true)
    expect(texts.filter((text) => text.includes('"withdrawn"')).length).toBeGreaterThan(20)
    expect(texts.filter((text) => !text.includes('"schema_version"'))).toEqual([])
    expect(records.slice(0, MALFORMED_IDS.length).map((record) => record.id)).toEqual(MALFORMED_IDS)
  })

  test('leaves the schema_version out of some records only on request', () => {
    const texts = Array.from({ length: 300 }, (_, i) =>
      generateRecord({ seed: 1, malformed: true }, i).bytes.toString(),
    )
    const bare = texts.filter((text) => !text.includes('"schema_version"'))
    expect(bare.length).toBeGreaterThan(30)
    expect(bare.length).toBeLessThan(100)
  })
})
