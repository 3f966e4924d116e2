import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import AdmZip from 'adm-zip'
import { expect } from 'vitest'
import { longTest, test } from '../../../../support/tables.ts'
import {
  VEX_FILE,
  readVexGeneration,
  readVexInfo,
  unreadVexIn,
  viewsDir,
} from '../../../../../src/features/scanners/store/generations.ts'
import { createDice } from '../../../../support/dice.ts'
import { type VexBench, anyOpenVex, followHistory, openVexBench } from './history.ts'

longTest(
  'a repository that follows changed documents has the bytes of one that is made from the beginning',
  async () => {
    const copied = await followHistory(openVexBench(), createDice(5), 16)
    expect(copied).toBeGreaterThan(10)
  },
)

const stated = (name: string, ...products: string[]): Buffer =>
  Buffer.from(
    JSON.stringify({
      '@context': 'https://openvex.dev/ns/v0.2.0',
      '@id': name,
      author: name,
      statements: [{ vulnerability: { name }, products: products.map((one) => ({ '@id': one })), status: 'fixed' }],
    }),
  )

/** Some documents about `pkg:npm/a`, and one about `pkg:npm/b` alone. */
async function smallBench(): Promise<VexBench> {
  const bench = openVexBench()
  for (const name of ['one', 'two', 'three']) bench.add(stated(name, 'pkg:npm/a'))
  bench.add(stated('other', 'pkg:npm/b'))
  expect(await bench.make()).toMatchObject({ read: 4, made: 2, copied: 0 })
  return bench
}

test('only documents that are new are read, and only what is about their packages is made', async () => {
  const bench = await smallBench()
  const before = bench.made()
  expect(await bench.make()).toBeNull() // another snapshot with the same documents
  expect(bench.made()).toMatchObject({ folder: before.folder, snapshot: 's-2' })
  const added = bench.add(stated('new', 'pkg:npm/c', 'pkg:npm/d'))
  expect(await bench.make()).toMatchObject({ read: 1, made: 1, copied: 2, packages: 4 })
  bench.documents.delete(added)
  expect(await bench.make()).toMatchObject({ read: 0, made: 0, copied: 2, packages: 2 })
  expect(bench.made().bytes.equals(before.bytes)).toBe(true)
  bench.add(stated('second', 'pkg:npm/b')) // what was alone is merged now, which takes both
  expect(await bench.make()).toMatchObject({ read: 1, made: 1, copied: 1, packages: 2 })
  expect(bench.made().bytes.equals((await bench.fresh()).bytes)).toBe(true)
})

test.each<[string, (made: ReturnType<VexBench['made']>) => void]>([
  ['has no list of its documents', ({ sources }) => rmSync(sources)],
  ['has a list that is cut short', ({ sources }) => truncateSync(sources, 100)],
  [
    'has a list with another byte',
    ({ sources }) => writeFileSync(sources, readFileSync(sources, 'latin1').replace('one', 'onf'), 'latin1'),
  ],
  [
    'has a damaged archive',
    ({ folder }) => {
      const name = readdirSync(folder).find((one) => one.endsWith('.zip')) ?? ''
      const bytes = readFileSync(join(folder, name))
      bytes.fill(0, 100, 120)
      writeFileSync(join(folder, name), bytes)
    },
  ],
  ['has a damaged description', ({ folder }) => writeFileSync(join(folder, VEX_FILE), '{"file"')],
  [
    'was made by a version without such a list',
    ({ folder }) => {
      const { sources: _, ...info } = JSON.parse(readFileSync(join(folder, VEX_FILE), 'utf8')) as Record<
        string,
        unknown
      >
      writeFileSync(join(folder, VEX_FILE), JSON.stringify(info))
    },
  ],
])('a generation that %s is not used for the next one', async (_, damage) => {
  const bench = await smallBench()
  damage(bench.made())
  bench.add(stated('new', 'pkg:npm/a'))
  expect(await bench.make()).toMatchObject({ read: 5, copied: 0 })
  expect(bench.made().bytes.equals((await bench.fresh()).bytes)).toBe(true)
  bench.add(stated('next', 'pkg:npm/a'))
  expect(await bench.make()).toMatchObject({ read: 1, made: 1, copied: 1 })
})

test.each(['null', '[]', '5', '{"file":5}', '{"file":"x","sources":{}}'])(
  'a description of another shape is damaged: %s',
  async (description) => {
    const { folder } = (await smallBench()).made()
    writeFileSync(join(folder, VEX_FILE), description)
    expect(() => readVexInfo(folder)).toThrow('the VEX repository cannot be read')
  },
)

test('a list of another archive is not used, although both are sound', async () => {
  const bench = await smallBench()
  const first = bench.made()
  const list = basename(first.sources)
  const info = JSON.parse(readFileSync(join(first.folder, VEX_FILE), 'utf8')) as { sources: object }
  bench.add(stated('new', 'pkg:npm/a'))
  await bench.make()
  const { folder } = bench.made()
  cpSync(first.sources, join(folder, list))
  const now = JSON.parse(readFileSync(join(folder, VEX_FILE), 'utf8')) as object
  writeFileSync(join(folder, VEX_FILE), JSON.stringify({ ...now, sources: info.sources }))
  bench.add(stated('next', 'pkg:npm/b'))
  expect(await bench.make()).toMatchObject({ read: 6, copied: 0 })
  expect(bench.made().bytes.equals((await bench.fresh()).bytes)).toBe(true)
})

test('a rebuild does not use the generation that it replaces', async () => {
  const bench = await smallBench()
  const { bytes } = bench.made()
  expect(await bench.make(true)).toMatchObject({ read: 4, made: 2, copied: 0 })
  expect(bench.made().bytes.equals(bytes)).toBe(true)
})

test('what a killed build left is removed, and the generation before is used', async () => {
  const bench = await smallBench()
  const draft = join(viewsDir(bench.dir), 'making-vex')
  mkdirSync(draft)
  writeFileSync(join(draft, VEX_FILE), '{"documents":')
  bench.add(stated('new', 'pkg:npm/a'))
  expect(await bench.make()).toMatchObject({ read: 1, made: 1, copied: 1 })
  expect(readdirSync(viewsDir(bench.dir))).not.toContain('making-vex')
  expect(bench.made().bytes.equals((await bench.fresh()).bytes)).toBe(true)
})

test('what was read of a document stays when the document is damaged later, unless it takes reading it again', async () => {
  const bench = await smallBench()
  for (const document of bench.documents.values()) document.isDamaged = true
  bench.add(stated('new', 'pkg:npm/a'))
  expect(await bench.make()).toMatchObject({ read: 1, made: 1, copied: 1 })
  const names = () => new AdmZip(bench.made().bytes).readAsText('pkg/npm/a/vex.json')
  for (const name of ['one', 'two', 'three', 'new']) expect(names()).toContain(`"name":"${name}"`)
  bench.add(stated('second', 'pkg:npm/b')) // needs the one that was alone, and damaged
  expect(await bench.make()).toMatchObject({ read: 6, copied: 0, packages: 2 })
  expect(bench.made().bytes.equals((await bench.fresh()).bytes)).toBe(true)
})

test('a document that could not be read is read when the next generation is made', async () => {
  const bench = await smallBench()
  const content = anyOpenVex(createDice(8))
  const digest = bench.add(content, true)
  expect(await bench.make()).toMatchObject({ documents: 4, unread: 1, read: 1, made: 0, copied: 2 })
  const document = bench.documents.get(digest)
  if (document !== undefined) document.isDamaged = false
  bench.add(stated('new', 'pkg:npm/z'))
  expect(await bench.make()).toMatchObject({ documents: 6, read: 2, copied: 2 })
  expect(bench.made().bytes.equals((await bench.fresh()).bytes)).toBe(true)
})

test('a document that could not be read is read once it can be, although nothing else is different', async () => {
  const bench = await smallBench()
  const digest = bench.add(stated('new', 'pkg:npm/z'), true)
  expect(await bench.make()).toMatchObject({ documents: 4, unread: 1 })
  expect(unreadVexIn(bench.dir)).toEqual([digest])
  const { changed = 0 } = readVexGeneration(bench.dir) ?? {}
  expect(await bench.make()).toBeNull()

  const document = bench.documents.get(digest)
  if (document !== undefined) document.isDamaged = false
  const made = await bench.make()
  expect(made).toMatchObject({ documents: 5, read: 1, copied: 2 })
  expect([unreadVexIn(bench.dir), made]).toEqual([[], expect.not.objectContaining({ unread: 1 })])
  expect(readVexGeneration(bench.dir)?.changed).toBe(changed + 1) // other bytes have another date
  expect(bench.made().bytes.equals((await bench.fresh()).bytes)).toBe(true)
  expect(await bench.make()).toBeNull()
})
