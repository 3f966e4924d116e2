import { existsSync } from 'node:fs'
import { expect } from 'vitest'
import { openArchive } from '../../../../../src/archive/zip/reader.ts'
import { createRandom } from '../../../../sandbox/feed/random.ts'
import { findEcosystem } from '../../../../../src/base/versions/ecosystems.ts'
import { type OsvRecord, concerns } from '../../../../../src/features/scanners/records/affected.ts'
import { askVersion } from '../../../../../src/features/scanners/records/ranges.ts'
import { type Folders, analyse } from '../../../../../src/features/scanners/views/osv/record.ts'
import { record } from '../fixtures.ts'
import { bothTest, LONG, test } from '../../../../support/tables.ts'

const REAL = new URL('../../../../../../shared/data/osv-real.zip', import.meta.url).pathname

const told = (folders: Folders): Record<string, string[]> =>
  Object.fromEntries([...folders].map(([name, packages]) => [name, [...packages]]))

const VENDORS = new Set(['Root', 'Other', 'Ro\u00f6t'])

const look = (text: string | Buffer, vendors: ReadonlySet<string> = VENDORS) =>
  analyse(Buffer.from(text), '2026-01-01', vendors)

test('a vendor’s record is in the vendor’s folder unchanged, and derived in the folders of its ecosystems', () => {
  const text = record('R', '2026-05-01T00:00:00Z', ['Root:Debian:12', 'rootio-curl'], ['Root:npm', '@rootio/a'])
  const { folders, derived } = look(text)
  expect(told(folders)).toEqual({ Root: ['rootio-curl', '@rootio/a'] })
  expect(told(derived?.folders ?? new Map())).toEqual({
    Debian: ['rootio-curl'],
    npm: ['@rootio/a'],
  })
  expect(derived?.prefixes).toEqual(['Root'])
  const expected = text
    .replace('"Root:Debian:12"', '"Debian:12","purl":"pkg:deb/debian/rootio-curl"')
    .replace('"Root:npm"', '"npm","purl":"pkg:npm/%40rootio/a"')
  expect(derived?.content.toString()).toBe(expected)
})

test('a record that names an ecosystem with and without the prefix is there once, derived', () => {
  const text = record('R', '2026-05-01', ['npm', 'plain'], ['Root:npm', '@rootio/plain'], ['Go', 'g'])
  const { folders, derived } = look(text)
  expect(told(folders)).toEqual({ Root: ['@rootio/plain'], Go: ['g'] })
  expect(told(derived?.folders ?? new Map())).toEqual({ npm: ['plain', '@rootio/plain'] })
})

test('without derived views each record is in the folders that it names, in upstream’s bytes', () => {
  const text = record('R', '2026-05-01', ['npm', 'plain'], ['Root:npm', '@rootio/plain'])
  expect(look(text, new Set())).toMatchObject({ derived: null })
  expect(told(look(text, new Set()).folders)).toEqual({ npm: ['plain'], Root: ['@rootio/plain'] })
})

test('a record with many ecosystems that nobody knows stays in the folders of those that the OSV schema has', () => {
  const unknown = Array.from({ length: 101 }, (_, at): [string, string] => [`Unknown${at}`, 'x'])
  const text = record('R', '2026-05-01', ['Go', 'g'], ['Root:npm', '@rootio/a'], ...unknown)
  const { folders, derived, malformed } = look(text)
  expect(told(folders)).toEqual({ Go: ['g'], Root: ['@rootio/a'] })
  expect(told(derived?.folders ?? new Map())).toEqual({ npm: ['@rootio/a'] })
  expect(malformed).toBe(true)
})

test('what names a package in another case, or by a package URL alone, is in the folder of its ecosystem', () => {
  const affected = [{ ecosystem: 'pypi', name: 'A' }, { purl: 'pkg:npm/b' }].map((one) => ({ package: one }))
  const { folders, malformed, ecosystems } = look(JSON.stringify({ id: 'R', affected }))
  expect(told(folders)).toEqual({ PyPI: ['a'], npm: ['b'] })
  expect([malformed, ecosystems]).toEqual([false, ['PyPI', 'npm']])
  expect(told(look(record('R', '2026-05-01', ['root:debian:bookworm', 'c'])).derived?.folders ?? new Map())).toEqual({
    Debian: ['c'],
  })
})

test.each([{}, { package: { name: 'a' } }, { package: { purl: 'a' } }])(
  'a record is malformed that names no package: %j',
  (one) => {
    expect(look(JSON.stringify({ id: 'R', affected: [one] })).malformed).toBe(true)
    const ranges = [{ type: 'GIT', events: [{ introduced: '0' }] }]
    expect(look(JSON.stringify({ id: 'R', affected: [{ ...one, ranges }] })).malformed).toBe(false)
  },
)

test('names of PyPI are looked up in one spelling', () => {
  const text = record('R', '2026-05-01', ['Root:PyPI', 'Zope._Interface'], ['Go', 'A_b'])
  expect(told(look(text).derived?.folders ?? new Map())).toEqual({ PyPI: ['zope-interface'] })
  expect(told(look(text).folders)).toEqual({ Root: ['zope-interface'], Go: ['a_b'] })
})

test('names of ecosystems that compare them without case are looked up in lower case, npm’s as they are', () => {
  const text = record('R', '2026-05-01', ['NuGet', 'A.B'], ['Packagist', 'V/P'], ['npm', 'JSONStream'])
  expect(told(look(text).folders)).toEqual({
    NuGet: ['a.b'],
    Packagist: ['v/p'],
    npm: ['JSONStream'],
  })
})

test('a record with ranges of commits is in the folder GIT as well', () => {
  const range = '"ranges":[{"type":"GIT","repo":"https://example.com/r"}]'
  expect(told(look(`{"affected":[{${range}}]}`).folders)).toEqual({ GIT: [] })
  const both = `{"affected":[{"package":{"ecosystem":"Go","name":"x"},${range}}]}`
  expect(told(look(both).folders)).toEqual({ Go: ['x'], GIT: [] })
})

test.each([
  '{}',
  '{"affected":null}',
  '{"affected":{}}',
  '{"affected":[]}',
  '{"affected":[null,5,"x",[],{}]}',
  '{"affected":[{"package":null}]}',
  '{"affected":[{"package":{"name":"x"}}]}',
  '{"affected":[{"package":{"ecosystem":5,"name":"x"}}]}',
  '{"affected":[{"package":{"ecosystem":"","name":"x"}}]}',
  '{"affected":[{"package":{"ecosystem":":12","name":"x"}}]}',
  '{"affected":[{"ranges":"GIT"}]}',
  '{"affected":[{"ranges":[null,{"type":"SEMVER"}]}]}',
  '{"affected":[{"package":{"ecosystem":"two\\nlines","name":"x"}}]}',
  JSON.stringify({ affected: [{ package: { ecosystem: 'x'.repeat(201), name: 'x' } }] }),
  JSON.stringify({
    affected: Array.from({ length: 101 }, (_, i) => ({ package: { ecosystem: `E${i}` } })),
  }),
  '[]',
  'null',
  '',
  '{"affected":[',
  '<html>',
])('the record %.80s names no ecosystem, and causes no fault', (text) => {
  expect(told(look(text).folders)).toEqual({ '[EMPTY]': [] })
  expect(look(text)).toMatchObject({ derived: null, instant: '2026-01-01T00:00:00.000000000' })
})

test.each([
  [['\ud800', '\ud801', '\ud800:npm'], 'p'],
  [['\udc00:npm', '\ud800:\udc00'], 'p'],
  [['two\nlines'], 'p'],
])('ecosystems that cannot be one, such as lone surrogates, count as none', (names, name) => {
  const affected = names.map((ecosystem) => ({ package: { ecosystem, name } }))
  const text = JSON.stringify({ affected: [...affected, { package: { ecosystem: 'Go', name } }] })
  expect(told(look(text).folders)).toEqual({ Go: ['p'] })
  expect(look(text)).toMatchObject({ derived: null, malformed: true })
})

test('a name of lone surrogates, or of thousands of characters, is in no folder', () => {
  const names = ['\ud800', '\ud801', 'x'.repeat(4097), 'ok']
  const affected = names.map((name) => ({ package: { ecosystem: 'npm', name } }))
  expect(told(look(JSON.stringify({ affected })).folders)).toEqual({ npm: ['ok'] })
})

test('a record that is nested too deeply to be serialized names no ecosystem', () => {
  const deep = '['.repeat(50_000) + ']'.repeat(50_000)
  const named = '{"package":{"ecosystem":"Root:npm","name":"a"},"z":' + deep + '}'
  const broken = '"affected":[{"\\ud800":[]}],' // the places are found, so it need not be
  expect(look(`{"affected":[${named}]}`).malformed).toBe(false)
  expect(() => look(`{${broken}"affected":[${named}]}`)).not.toThrow()
})

test('a record is in the chosen folders or in [EMPTY], with upstream’s bytes in one of them', () => {
  const of = (names: string[], ...allowed: string[]) => {
    const text = record('R', '', ...names.map((name): [string, string] => [name, 'p']))
    const isFolder = (name: string): boolean => allowed.includes(name)
    const { folders, derived, malformed: odd } = analyse(Buffer.from(text), '', VENDORS, isFolder)
    return [Object.keys(told(folders)), derived === null ? null : [...derived.folders.keys()], odd]
  }
  expect(of(['Go', 'x'], 'Go', 'x')).toEqual([['Go', 'x'], null, false])
  expect(of(['Go', 'x'], 'Go')).toEqual([['Go'], null, true])
  expect(of(['x'], 'Go')).toEqual([['[EMPTY]'], null, true])
  expect(of(['Other:npm'], 'npm')).toEqual([['[EMPTY]'], ['npm'], true])
  expect(of(['Other:npm'], 'Other')).toEqual([['Other'], null, true])
})

test('a package whose name is not text is in the folder, and never found by name', () => {
  expect(told(look('{"affected":[{"package":{"ecosystem":"npm"}}]}').folders)).toEqual({ npm: [] })
})

test('the date of a record is its own, or else that of the index', () => {
  expect(look(record('R', '2026-05-01')).instant).toBe('2026-05-01T00:00:00.000000000')
  expect(look(record('R', 'soon')).instant).toBe('2026-01-01T00:00:00.000000000')
  expect(analyse(Buffer.from('{}'), 'never', VENDORS).instant).toBe('')
})

test('a byte order mark at the start of a record is ignored', () => {
  const text = record('R', '2026-05-01', ['Root:npm', 'x'])
  const marked = look(Buffer.concat([Buffer.from('\ufeff'), Buffer.from(text)]))
  expect(marked.derived?.content.toString()).toBe(text.replace('"Root:npm"', '"npm","purl":"pkg:npm/x"'))
})

test('the last of two members with one name counts, in the derived text as for a parser', () => {
  const twice =
    '{"affected":[{"package":{"ecosystem":"Go"}}],"affected":[{"package":{"ecosystem":"Go","ecosystem":"Root:npm","name":"x"}}]}'
  const content = look(twice).derived?.content.toString() ?? ''
  expect(content).toBe(twice.replace('"Root:npm"', '"npm","purl":"pkg:npm/x"'))
  const named = { ecosystem: 'npm', name: 'x', purl: 'pkg:npm/x' }
  expect(JSON.parse(content)).toEqual({ affected: [{ package: named }] })
})

test('an LTS release of Ubuntu is in a derived record twice, each time complete', () => {
  const one = (ecosystem: string, purl = '') =>
    `{"package":{"name":"c","ecosystem":"${ecosystem}"${purl}}, "ranges": [],"x":"\\u00e9é"}`
  const text = `{"affected": [${one('Root:Ubuntu:22.04')} ,${one('Root:Ubuntu:23.10')}]}`
  const { derived } = look(text)
  const purl = ',"purl":"pkg:deb/ubuntu/c"'
  expect(derived?.content.toString()).toBe(
    `{"affected": [${one('Ubuntu:22.04', purl)},${one('Ubuntu:22.04:LTS', purl)} ,${one('Ubuntu:23.10', purl)}]}`,
  )
  expect(told(derived?.folders ?? new Map())).toEqual({ Ubuntu: ['c'] })
})

test.each<[string, unknown, string?]>([
  ['its own, with what more it says', 'pkg:deb/debian/c@1?distro=debian-12'],
  ['another package', 'pkg:deb/debian/d', 'pkg:deb/debian/c'],
  ['another maker', 'pkg:deb/rootio/c', 'pkg:deb/debian/c'],
  ['no package URL', 'c', 'pkg:deb/debian/c'],
  ['no text', 5, 'pkg:deb/debian/c'],
  ['nothing', null, 'pkg:deb/debian/c'],
])('a derived record has the package URL of its package for one that names %s', (_, purl, own) => {
  const expected = own ?? purl
  const text = JSON.stringify({
    affected: [{ package: { ecosystem: 'Root:Debian:12', purl, name: 'c' } }],
  })
  const content = look(text).derived?.content.toString() ?? ''
  const named = { ecosystem: 'Debian:12', name: 'c', purl: expected }
  expect(JSON.parse(content)).toEqual({ affected: [{ package: named }] })
})

test('in a derived record every package has a package URL where its ecosystem has a type of them', () => {
  const names: [string, string][] = [
    ['Root:PyPI', 'Rootio_Flask'],
    ['Root:Maven', 'io.root.org:core'],
    ['Root:Alpine:3.18', 'libstdc++'],
    ['npm', '@scope/plain'],
    ['Android', 'kernel'],
  ]
  const content = look(record('R', '2026-05-01', ...names)).derived?.content.toString() ?? ''
  const { affected } = JSON.parse(content) as { affected: { package: { purl?: string } }[] }
  expect(affected.map((one) => one.package.purl)).toEqual([
    'pkg:pypi/rootio-flask',
    'pkg:maven/io.root.org/core',
    'pkg:apk/alpine/libstdc%2B%2B',
    'pkg:npm/%40scope/plain',
    undefined,
  ])
})

test('a derived range keeps its readable events when an upper bound cannot be read', () => {
  const ranges = [
    { type: 'ECOSYSTEM', events: [{ introduced: '0' }, { last_affected: '2.6.0-cu124' }] },
    {
      type: 'ECOSYSTEM',
      events: [{ introduced: '0' }, { fixed: '1.5' }, { introduced: '2' }, { fixed: 'soon' }],
    },
    { type: 'ECOSYSTEM', events: [{ introduced: '0', fixed: '2.0+root.io.1' }] },
    { type: 'GIT', events: [{ introduced: '0' }, { fixed: 'abc' }] },
  ]
  const text = JSON.stringify({
    affected: [{ package: { ecosystem: 'Root:PyPI', name: 'torch' }, ranges }],
  })
  const content = look(text).derived?.content.toString() ?? ''
  const { affected } = JSON.parse(content) as { affected: { ranges: object[] }[] }
  const leftOut = { database_specific: { unread_bounds: true } }
  expect(affected[0]?.ranges).toEqual([
    { type: 'ECOSYSTEM', events: [], ...leftOut },
    { type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed: '1.5' }], ...leftOut },
    ranges[2],
    ranges[3],
  ])
})

test('a version behind the bounds that a derived range leaves out is not clear of it', () => {
  const events = [{ introduced: '0' }, { fixed: '1.5' }, { introduced: '2' }, { fixed: 'soon' }]
  const affected = [{ package: { ecosystem: 'Root:PyPI', name: 'torch' }, ranges: [{ type: 'ECOSYSTEM', events }] }]
  const escaped = (text: string): string => text.replace('"affected"', '"\\u0061ffected"')
  for (const text of [JSON.stringify({ affected }), escaped(JSON.stringify({ affected }))]) {
    const record = JSON.parse(look(text).derived?.content.toString() ?? '') as OsvRecord
    const verdict = (version: string) => {
      const asked = { ecosystem: findEcosystem('PyPI'), name: 'torch', version: askVersion(version) }
      return concerns(record, asked, 'Root').next().value
    }
    expect([verdict('1.0'), verdict('2.5')]).toEqual(['affected', 'bounds'])
  }
})

const TYPES: Record<string, string> = {
  'Debian:12': 'deb/debian',
  npm: 'npm',
  PyPI: 'pypi',
}

test('the derived text is the record with other packages and nothing else, however it is written', () => {
  const random = createRandom(7, 1)
  const pick = <T>(from: readonly T[]): T => random.pick(from)
  const ecosystems = ['Root:Debian:12', 'Root:npm', 'npm', 'Root:x', 'Ro\u00f6t:PyPI', 'GIT', '']
  const space = (): string => pick(['', ' ', '\n\t', '  '])
  const strange = (text: string): string =>
    text.replace(/[RD]/g, (sign) => (pick([true, false]) ? `\\u00${sign.charCodeAt(0).toString(16)}` : sign))
  for (let i = 0; i < 300; i++) {
    const affected = Array.from({ length: random.int(5) }, () => {
      const ecosystem = strange(JSON.stringify(pick(ecosystems)))
      const inner = `${space()}"ecosystem"${space()}:${space()}${ecosystem}${space()}`
      return pick([`{"package":{${inner},"name":"a]}\\"b"}}`, `{"x":[{}],"package":{"n":{},${inner}}}`, '{}'])
    })
    const text = `{"details":"\\"affected\\":[",${space()}"affected":${space()}[${affected.join(`${space()},`)}]}`
    const { derived } = look(text)
    type Named = { ecosystem: string; name?: string; purl?: string }
    const before = JSON.parse(text) as { affected: { package?: Named }[] }
    for (const { package: named } of derived === null ? [] : before.affected) {
      if (named === undefined) continue
      if (/^Ro[oö]t:(Debian|npm|PyPI)/.test(named.ecosystem)) named.ecosystem = named.ecosystem.replace(/^Ro[oö]t:/, '')
      const type = TYPES[named.ecosystem]
      if (type !== undefined && named.name !== undefined) named.purl = `pkg:${type}/a%5D%7D%22b`
    }
    if (derived === null) expect(JSON.parse(text)).toEqual(before)
    else expect(JSON.parse(derived.content.toString())).toEqual(before)
  }
})

/** In the long suite alone, where the records are there. */
const testOfReal = LONG ? bothTest.skipIf(!existsSync(REAL)) : (): void => undefined

testOfReal('real records are in the folders of their ecosystems', async () => {
  const archive = await openArchive(REAL, { maxMemberBytes: 1 << 24 })
  const counts = new Map<string, number>()
  await archive.readMembers(
    () => true,
    (_, member) => {
      if ('refused' in member) throw new Error(member.refused)
      const { folders, derived, instant } = analyse(member.content, '', VENDORS)
      if (derived !== null || instant === '') throw new Error('unexpected')
      for (const name of folders.keys()) counts.set(name, (counts.get(name) ?? 0) + 1)
    },
  )
  await archive.close()
  expect(Object.fromEntries(counts)).toMatchObject({
    Go: 1400,
    PyPI: 1151,
    'crates.io': 800,
    Julia: 450,
  })
})
