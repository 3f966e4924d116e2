import AdmZip from 'adm-zip'
import { describe, expect } from 'vitest'
import { type HostileKind, HOSTILE_KINDS, hostileZip } from './hostile-zip.ts'
import { scanZip } from '../feed/from-archive.ts'
import { longTest, test } from '../../support/tables.ts'

const names = (kind: HostileKind) => scanZip(hostileZip(kind)).map((member) => member.name)
const last = (kind: HostileKind) => {
  const member = scanZip(hostileZip(kind)).at(-1)
  if (member === undefined) throw new Error(`${kind} has no member`)
  return member
}

describe('a hostile archive', () => {
  longTest('has the same bytes every time, and other bytes for each kind', () => {
    const seen = new Set<string>()
    for (const kind of HOSTILE_KINDS) {
      if (kind === 'manyMembers') continue
      const made = hostileZip(kind)
      expect(hostileZip(kind).equals(made), kind).toBe(true)
      seen.add(made.toString('latin1'))
    }
    expect(seen.size).toBe(HOSTILE_KINDS.length - 1)
  })

  test('has names that must not be extracted', () => {
    expect(names('traversal')).toContain('../../evil.json')
    expect(names('absolute')).toContain('/etc/evil.json')
    expect(names('backslash')).toContain('..\\evil.json')
    expect(names('directories')).toContain('nested/deeper/')
    expect(names('nulName').at(-1)).toContain('\0')
    const twice = names('duplicates')
    expect(twice.length - new Set(twice).size).toBe(1)
  })

  longTest('declares wrong sizes', () => {
    const small = last('bombSmall')
    expect([small.size, small.data.length > 50_000]).toEqual([100, true])
    expect(last('bombHuge').size).toBe(0xfffffffe)
    expect(last('sizeBeyond').data.length).toBeGreaterThan(100)
  })

  test('of unusual but valid form is read by adm-zip', () => {
    const sound = ['stored', 'dataDescriptor', 'comment', 'prefix', 'directories'] as const
    for (const kind of sound) {
      const entries = new AdmZip(hostileZip(kind)).getEntries()
      const files = entries.filter((entry) => !entry.isDirectory)
      for (const entry of files) {
        expect(JSON.parse(entry.getData().toString()), kind).toHaveProperty('id')
      }
      expect(files.length, kind).toBe(2)
    }
  })

  longTest('of seventy thousand members has Zip64 end records', () => {
    const zip = hostileZip('manyMembers')
    expect(zip.readUInt16LE(zip.length - 12)).toBe(0xffff)
    expect(new AdmZip(zip).getEntryCount()).toBe(70_001)
  })

  test('has the headers of its defect', () => {
    const flags = (kind: HostileKind) => hostileZip(kind).readUInt16LE(last(kind).central + 8)
    expect(flags('encrypted') & 1).toBe(1)
    expect(flags('dataDescriptor') & 8).toBe(8)
    expect(last('unknownMethod').method).toBe(12)
    expect(last('stored').method).toBe(0)
    const zip = hostileZip('localName')
    const { local, name } = last('localName')
    expect(zip.toString('latin1', local + 30, local + 30 + name.length)).not.toBe(name)
    expect(hostileZip('empty').length).toBe(0)
    expect(scanZip(hostileZip('noMembers'))).toEqual([])
  })
})
