import { closeSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync, truncateSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32, deflateRawSync, gunzipSync } from 'node:zlib'
import { hash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, onTestFinished } from 'vitest'
import { packContent } from '../../../../src/store/database/gzip.ts'
import { type Writes, openWrites } from '../../../../src/store/writes.ts'
import { buildArchive } from '../../../../src/archive/build.ts'
import { type BuiltArchive } from '../../../../src/archive/draft.ts'
import { type Expected, patchArchive } from '../../../../src/archive/patch.ts'
import { startsPart } from '../../../../src/archive/parts.ts'
import { crc32c } from '../../../../src/archive/zip/crc32c.ts'
import { deflate } from '../../../../src/base/gzip/member.ts'
import { copyFilledFolder } from '../../../support/filled-folder.ts'
import { type Bench, differences } from '../../../support/mirror.ts'
import { LONG, longTest, test } from '../../../support/tables.ts'
import { archiveOf, bench, expectAgreement, expectSound, tamper, verify } from '../../fixtures.ts'

const ids = Array.from({ length: 700 }, (_, i) => `${['ROOT', 'ü', 'A/B'][i % 3]}-${i}`)
const all = (): boolean => true
const any: Expected = { get: all, find: all }

function temporary(): string {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-patch-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

function put(store: Writes, id: string, text: string): void {
  const content = Buffer.from(text)
  const body = packContent(content, deflate)
  const sums = { crc32: crc32(content), sha256: hash('sha256', content, 'buffer') }
  store.osv.updateRecord({ id, modified: text, size: content.length, body, asOf: null, ...sums }, 1)
}

function publish(store: Writes, built: BuiltArchive): void {
  if (built.patched) store.osv.renewParts(built.written)
  else store.osv.replaceParts(built.written)
  const { file, size, crc32c: crc, sha256 } = built
  store.osv.replaceArchive({ file, size, crc32c: crc, sha256, changed: 1 })
}

/** A store of these records, its archive published. */
async function filled(dir: string, held: readonly string[]): Promise<Writes> {
  const store = openWrites(dir)
  for (const id of held) put(store, id, `first of ${id}`)
  publish(store, await buildArchive(store.osv, join(dir, 'derived'), all))
  return store
}

const change = fc.record({
  id: fc.constantFrom(...ids),
  to: fc.option(fc.string({ maxLength: 90 })),
})

describe('a patched archive', () => {
  longTest('has the same bytes as a rebuild, after any history', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(change, { maxLength: 5 }), { minLength: 1, maxLength: 8 }),
        async (history) => {
          const dir = mkdtempSync(join(tmpdir(), 'patchmirror-patch-'))
          const store = await filled(dir, ids.slice(0, 500))
          try {
            for (const step of history) {
              for (const { id, to } of step)
                if (to === null) store.osv.removeRecord(id, 1, 1)
                else put(store, id, to)
              await expectRebuilt(store, join(dir, 'derived'))
            }
          } finally {
            store.close()
            rmSync(dir, { recursive: true, force: true })
          }
        },
      ),
      { numRuns: LONG ? 50 : 2 },
    )
  })

  longTest('keeps its parts valid when records at their ends are added and removed', async () => {
    const dir = temporary()
    const store = await filled(dir, ids.slice(0, 500))
    onTestFinished(() => store.close())
    const ends = ids.filter((id, i) => i < 500 && startsPart(id))
    expect(ends.length).toBeGreaterThan(5)
    for (const id of [...ends.slice(0, 3), ...ids.slice(0, 500).sort().slice(0, 2)]) {
      store.osv.removeRecord(id, 1, 1)
      await expectRebuilt(store, join(dir, 'derived'))
      put(store, id, 'it is back')
      await expectRebuilt(store, join(dir, 'derived'))
    }
  })

  test('is not built when most parts changed, or no old file exists', async () => {
    const dir = temporary()
    const store = await filled(dir, ids)
    onTestFinished(() => store.close())
    const derived = join(dir, 'derived')
    const path = join(derived, store.osv.readArchive()?.file ?? '')
    put(store, ids[3] ?? '', 'x')
    truncateSync(path, 900)
    expect(await patchArchive(store.osv, derived, any)).toBeNull()
    rmSync(path)
    expect(await patchArchive(store.osv, derived, any)).toBeNull()
    publish(store, await buildArchive(store.osv, derived, all))
    for (const id of ids) put(store, id, 'y')
    expect(await patchArchive(store.osv, derived, any)).toBeNull()
    store.osv.replaceParts([])
    expect(await patchArchive(store.osv, derived, any)).toBeNull()
  })

  test('has its name only after it was published and written, and none when that fails', async () => {
    const dir = temporary()
    const store = await filled(dir, ids)
    onTestFinished(() => store.close())
    put(store, ids[3] ?? '', 'x')
    const derived = join(dir, 'derived')
    const before = readdirSync(derived)
    const named: boolean[] = []
    const publication = (built: BuiltArchive): void => {
      named.push(readdirSync(derived).includes(built.file))
      if (named.length === 1) throw new Error('not published')
    }
    await expect(patchArchive(store.osv, derived, any, publication)).rejects.toThrow('not published')
    expect(readdirSync(derived)).toEqual(before)
    const patched = await patchArchive(store.osv, derived, any, publication)
    expect(named).toEqual([false, false])
    expect(readdirSync(derived).sort()).toEqual([...before, patched?.file].sort())
  })

  test('is refused when it would contain an unlisted record', async () => {
    const dir = temporary()
    const store = await filled(dir, ids)
    onTestFinished(() => store.close())
    put(store, ids[3] ?? '', 'x')
    const neighbour = partOf(store, ids[3] ?? '')
    for (const stranger of [ids[3], ids[600], neighbour])
      await expect(patchArchive(store.osv, join(dir, 'derived'), but(stranger))).rejects.toMatchObject({
        code: 'proof',
      })
  })
})

/** Another id of the part of an id. */
function partOf(store: Writes, id: string): string | undefined {
  const before = (one: string, other: string) => Buffer.from(one).compare(Buffer.from(other)) <= 0
  const { first = '' } = store.osv.listParts().findLast((part) => before(part.first, id)) ?? {}
  return store.osv.listIdsFrom('', 700).find((one) => one !== id && before(first, one))
}

function but(stranger: string | undefined): Expected {
  const get = (id: string): boolean => id !== stranger
  return { get, find: (bytes, from, to) => get(bytes.toString('utf8', from, to)) }
}

/** Patches, rebuilds, compares everything, publishes. */
async function expectRebuilt(store: Writes, derived: string): Promise<void> {
  const patched = await patchArchive(store.osv, derived, any)
  const bytes = patched === null ? null : readFileSync(join(derived, patched.file))
  const built = await buildArchive(store.osv, derived, all)
  if (patched !== null && bytes !== null) {
    expect(bytes.equals(readFileSync(join(derived, built.file)))).toBe(true)
    expect({ ...patched, patched: false, written: [] }).toEqual({ ...built, written: [] })
    expect(patched.crc32c).toBe(crc32c(bytes))
    store.osv.renewParts(patched.written)
    expect(store.osv.listParts()).toEqual(built.written.map((part) => ({ ...part, dirty: false })))
  }
  publish(store, patched ?? built)
}

const LARGE = { records: 2_100, large: 0 }

/** A mirror large enough to be patched, and its archive's file. */
async function large(): Promise<{ made: Bench; path: () => string }> {
  const dir = await copyFilledFolder({ sandbox: LARGE }, ['osv'])
  const made = await bench({ sandbox: LARGE, dir })
  return { made, path: () => join(made.dir, 'derived', made.store.osv.readArchive()?.file ?? '') }
}

function spoil(path: string, at: number): void {
  const fd = openSync(path, 'r+')
  writeSync(fd, 'spoilt', at)
  closeSync(fd)
}

longTest('a sync of a large feed publishes the same archive as a rebuild after each change', async () => {
  const { made } = await large()
  const { feed } = made.sandbox
  const steps = [() => [feed.change(9), feed.remove(4)], () => [feed.add(5), feed.withdraw(3)]]
  for (const step of steps) {
    step()
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    expect(differences(made)).toEqual([])
    expectAgreement(made)
    await expectSound(made.dir)
    const published = archiveOf(made)
    const info = made.store.osv.readArchive()
    expect(published === null ? null : crc32c(published)).toBe(info?.crc32c)
    const built = await buildArchive(made.store.osv, join(made.dir, 'derived'), all)
    expect(built).toMatchObject({ file: info?.file, sha256: info?.sha256 })
    expect(archiveOf(made)?.equals(published ?? Buffer.of())).toBe(true)
  }
})

longTest('a sync of a large feed copies damage of the old file only until verify or a reconcile reads it', async () => {
  const { made, path } = await large()
  spoil(path(), 40)
  made.sandbox.feed.put('ZZZ-1', '{"id":"ZZZ-1","modified":"2026-05-01T00:00:00Z"}')
  expect(await made.run('osv')).toMatchObject({ state: 'complete' })
  expect((await verify(made.dir)).disagreements).toHaveLength(1)
  expect(await made.run('osv', { kind: 'reconcile' })).toMatchObject({ state: 'complete' })
  await expectSound(made.dir)
  expect(differences(made)).toEqual([])
})

longTest('writes a part from the store that another program changed before the run', async () => {
  const { made } = await large()
  const { store } = made
  const part = store.osv.listParts()[2]
  const [id, , size, body] = [...store.osv.eachContent(part?.first, null)].at(0) ?? raise()
  const other = packContent(gunzipSync(body), (content) => deflateRawSync(content, { level: 1 }))
  expect(other.equals(body)).toBe(false)
  tamper(made.dir, 'UPDATE osv_part SET dirty = 1 WHERE first = ?', part?.first)
  tamper(made.dir, 'UPDATE osv_body SET bytes = ? WHERE rowid = (SELECT body FROM osv_record WHERE id = ?)', other, id)
  tamper(made.dir, 'UPDATE osv_record SET body_crc32 = ? WHERE id = ?', crc32(other), id)
  made.sandbox.feed.change(2)
  expect(await made.run('osv')).toMatchObject({ state: 'complete' })
  await expectSound(made.dir)
  const built = await buildArchive(store.osv, join(made.dir, 'derived'), all)
  expect(built.file).toBe(store.osv.readArchive()?.file)
  expect(store.osv.readRecord(id)?.size).toBe(size)
})

function raise(): never {
  throw new Error('there is no record')
}

const DAMAGES: [string, (path: string) => void][] = [
  ['its directory is damaged', (path: string) => spoil(path, readFileSync(path).length - 90)],
  ['it is cut short', (path: string) => truncateSync(path, 1_000)],
  ['it is gone', (path: string) => rmSync(path)],
]
for (const [name, damage] of DAMAGES)
  longTest(`does not build on the old file when ${name}`, async () => {
    const { made, path } = await large()
    damage(path())
    made.sandbox.feed.change(2)
    expect(await made.run('osv')).toMatchObject({ state: 'complete' })
    await expectSound(made.dir)
    expectAgreement(made)
  })
