import { copyFileSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { expect } from 'vitest'
import { sha256Hex } from '../../../src/base/digest.ts'
import { MirrorError } from '../../../src/base/errors.ts'
import { type KeyTrust, createKeyFiles, readPublicKey } from '../../../src/features/bundles/format/keys.ts'
import { expand, frameOf, magic, openFrames, squeeze } from '../../../src/features/bundles/thin/format.ts'
import { openThin } from '../../../src/features/bundles/thin/whole.ts'
import { openWrites } from '../../../src/store/writes.ts'
import { commandHost } from '../../support/hosted.ts'
import { loadQuick } from '../../support/limits.ts'
import { LONG, longTest, test } from '../../support/tables.ts'
import { bench, createClock } from '../../sync/fixtures.ts'
import { folder } from './air-gap.ts'
import { watch } from './watched-inbox.ts'

const run = commandHost()

/** A source mirror with 40 records and a target mirror that took its first bundle. */
async function world(now?: () => number) {
  const made = await bench({ sandbox: { records: 40, large: 0 }, ...(now === undefined ? {} : { now }) })
  const dir = folder()
  const { path, line } = { path: join(dir, 'key'), line: createKeyFiles(join(dir, 'key')).line }
  const keys = { PATCHMIRROR_BUNDLE_SIGNING_KEYS: path, PATCHMIRROR_BUNDLE_TRUSTED_KEYS: line }
  const above = (...args: string[]) => run(args, { ...keys, PATCHMIRROR_DATA_DIR: made.dir }, '/')
  const target = folder()
  const below = (...args: string[]) => run(args, { ...keys, PATCHMIRROR_DATA_DIR: target }, '/')
  const file = (name: string): string => join(dir, name)
  const digest = async (side: typeof above): Promise<string> => (await side('status', '--digest')).out
  await made.run('osv')
  await made.run('feeds')
  expect((await above('bundle', 'export', file('full.zip'))).code).toBe(0)
  expect((await below('bundle', 'import', file('full.zip'))).code).toBe(0)
  return { made, above, below, target, file, digest, keys }
}

/** Changes the source mirror's data in each way, and exports what changed: whole and thin. */
async function changed({ made, above, file }: Awaited<ReturnType<typeof world>>) {
  const { feed } = made.sandbox
  feed.change(5)
  feed.add(3)
  await made.run('osv')
  await made.run('feeds')
  expect((await above('bundle', 'export', file('whole.zip'), '--since', '1')).err).toBe('')
  expect((await above('bundle', 'export', file('day.thin'), '--since', '1', '--thin')).err).toBe('')
}

longTest(
  'a thin bundle brings the same state as a whole one, in a fraction of the bytes, also for a mirror that described its own',
  async () => {
    const all = await world()
    const { above, below, file, digest } = all
    expect((await below('bundle', 'need', file('need'), '--brief')).code).toBe(0)
    await changed(all)
    const asked = await above('bundle', 'export', file('for.thin'), '--for', file('need'), '--thin')
    expect([asked.code, asked.err]).toEqual([0, ''])
    expect(statSync(file('day.thin')).size).toBeLessThan(statSync(file('whole.zip')).size / 2)
    expect(await digest(below)).not.toBe(await digest(above))
    const taken = await below('bundle', 'import', file('for.thin'))
    expect([taken.code, taken.err]).toEqual([0, ''])
    expect(taken.out).toContain('osv-record 8 put, 0 removed')
    expect(await digest(below)).toBe(await digest(above))
    const again = await below('bundle', 'import', file('day.thin'))
    expect([again.code, again.out]).toEqual([0, expect.stringContaining('is already imported: nothing to do')])
    expect(again.out).not.toContain('--again') // which takes full bundles alone
  },
)

longTest(
  'several thin bundles are imported in their order, and one that is damaged takes nothing from the others',
  async () => {
    const all = await world()
    await changed(all)
    const { made, above, below, file, digest } = all
    made.sandbox.feed.change(2)
    await made.run('osv')
    await above('bundle', 'export', file('next.thin'), '--since', '2', '--thin')
    writeFileSync(file('cut.thin'), readFileSync(file('next.thin')).subarray(0, -9))
    const given = [file('cut.thin'), file('next.thin'), file('day.thin')]
    const dry = await below('bundle', 'import', '--dry-run', ...given.slice(1))
    expect([dry.code, dry.out]).toEqual([0, expect.stringContaining('next.thin was not checked in the dry run')])
    const taken = await below('bundle', 'import', ...given)
    expect([taken.code, taken.err]).toEqual([1, expect.stringMatching(/^patchmirror: not imported: .*cut\.thin/)])
    expect(taken.out).toMatch(/bundle 2 \(delta\)[^]+bundle 3 \(delta\)/)
    expect(await digest(below)).toBe(await digest(above))
    expect(readdirSync(all.target).filter((name) => name.startsWith('.pm-'))).toEqual([])
  },
)

longTest('an inbox takes thin bundles in their order, and keeps one that comes before its base', async () => {
  const all = await world()
  await changed(all)
  const { made, above, target, file, digest, below } = all
  made.sandbox.feed.change(2)
  await made.run('osv')
  await above('bundle', 'export', file('next.thin'), '--since', '2', '--thin')
  const { config } = loadQuick({ env: { PATCHMIRROR_DATA_DIR: target }, cwd: '/' })
  const store = openWrites(target)
  try {
    const box = folder()
    const { settled, look, inbox } = watch(box, { config, store }, { keys: [readPublicKey(file('key.pub'))] })
    copyFileSync(file('next.thin'), join(box, 'a.thin'))
    await look()
    expect(inbox.status().waiting).toEqual([{ file: 'a.thin', why: 'waiting for bundle 2, or a full one' }])
    const bytes = readFileSync(file('day.thin'))
    writeFileSync(join(box, 'b.thin'), bytes.subarray(0, -9))
    await look()
    expect(inbox.status().waiting).toContainEqual({ file: 'b.thin', why: 'incomplete: the rest has not arrived' })
    writeFileSync(join(box, 'b.thin'), bytes)
    for (let looks = 0; looks < 2; looks++) await look()
    expect(settled.map((one) => `${one.file} ${one.outcome}`)).toEqual(['b.thin imported', 'a.thin imported'])
    expect(await digest(below)).toBe(await digest(above))
    for (const dir of [box, target]) expect(readdirSync(dir).filter((name) => name.startsWith('.pm-'))).toEqual([])
  } finally {
    store.close()
  }
})

longTest('a thin bundle of a state that did not change brings its later date, as a whole one does', async () => {
  const clock = createClock()
  const { made, above, below, file } = await world(clock.now)
  clock.pass(60_000)
  await made.run('osv')
  await made.run('feeds')
  expect((await above('bundle', 'export', file('same.thin'), '--since', '1', '--thin')).code).toBe(0)
  const taken = await below('bundle', 'import', file('same.thin'), '--json')
  expect(JSON.parse(taken.out)).toMatchObject([{ report: { outcome: 'same', renewed: true } }])
})

const NONE = Buffer.alloc(0)

longTest(
  'a mirror with another state or other keys refuses a thin bundle, says what to do, and keeps its state',
  async () => {
    const all = await world()
    await changed(all)
    const { made, above, below, file, digest, keys } = all
    const before = await digest(below)
    const empty = await run(['bundle', 'import', file('day.thin')], { ...keys, PATCHMIRROR_DATA_DIR: folder() }, '/')
    expect([empty.code, empty.err]).toEqual([1, expect.stringContaining('exactly the state of bundle 1')])
    expect(empty.err.match(/is refused/g)).toHaveLength(1)
    const foreign = await run(['bundle', 'import', file('day.thin')], emptyMirror(), '/')
    expect([foreign.code, foreign.err]).toEqual([1, expect.stringContaining('which bundle.trustedKeys does not have')])
    made.sandbox.feed.remove(2)
    await made.run('osv')
    await above('bundle', 'export', file('next.thin'), '--since', '2', '--thin')
    const refused = await below('bundle', 'import', file('next.thin'))
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('exactly the state of bundle 2')])
    expect(refused.err).toContain('patchmirror bundle need FILE')
    expect(await digest(below)).toBe(before)
    for (const name of ['day.thin', 'next.thin']) expect((await below('bundle', 'import', file(name))).code).toBe(0)
    expect(await digest(below)).toBe(await digest(above))
  },
)

const emptyMirror = () => {
  const { line } = createKeyFiles(join(folder(), 'other'))
  return { PATCHMIRROR_DATA_DIR: folder(), PATCHMIRROR_BUNDLE_TRUSTED_KEYS: line }
}

/** Why a thin bundle is refused, opened as an import does; where it opens, the digest of the whole one that was made of it. */
async function outcomeOf(path: string, dataDir: string, trust: KeyTrust): Promise<string> {
  try {
    const bundle = await openThin(path, { dataDir, whole: `${path}.whole`, trust })
    await bundle.close()
    return sha256Hex(readFileSync(`${path}.whole`))
  } catch (error) {
    return error instanceof MirrorError && ['bundle', 'archive'].includes(error.code) ? error.message : String(error)
  } finally {
    rmSync(`${path}.whole`, { force: true })
  }
}

/** Says that this is the thin bundle, unsigned, with one record of this id. */
function forge(path: string, id: string): Buffer {
  const frames = openFrames(path)
  const head = JSON.parse(expand(frames.next(2 ** 20), NONE, 2 ** 22).toString()) as { manifest: string }
  frames.close()
  const manifest = JSON.stringify({ ...(JSON.parse(head.manifest) as object), keys: [] })
  const entries = [{ id, size: 2, known: false, carried: false }]
  const parts = [{ ...head, manifest, signatures: [] }, { isLast: true, entries }, {}]
  const framed = parts.map((part) => frameOf(squeeze(Buffer.from(JSON.stringify(part)), NONE)))
  return Buffer.concat([magic(), ...framed])
}

/** Places of a thin bundle that are changed. */
const PLACES = LONG ? 60 : 12

longTest('no change of a thin bundle is taken for another state, and inspect says what it can', async () => {
  const all = await world()
  await changed(all)
  const { above, target, file } = all
  const shown = await above('bundle', 'inspect', file('day.thin'))
  expect([shown.code, shown.out]).toEqual([0, expect.stringMatching(/kind: +delta since 1[^]+the signature fits/)])
  const verified = await above('bundle', 'inspect', file('day.thin'), '--verify')
  expect([verified.code, verified.err]).toEqual([2, expect.stringMatching(/its import proves.*import --dry-run/)])

  const keys = [readPublicKey(file('key.pub'))]
  const trust: KeyTrust = { keys, revoked: new Set(), allowUnsigned: true, now: Date.now }
  const good = await outcomeOf(file('day.thin'), target, trust)
  expect(good).toMatch(/^[\da-f]{64}$/)
  const bytes = readFileSync(file('day.thin'))
  const tried = file('tried.thin')
  for (let at = 9; at < bytes.length; at += Math.ceil(bytes.length / PLACES)) {
    const other = Buffer.from(bytes)
    other.writeUInt8((other.readUInt8(at) ^ 0x20) & 0xff, at)
    for (const damaged of [other, bytes.subarray(0, at), Buffer.concat([bytes, bytes.subarray(0, at)])]) {
      writeFileSync(tried, damaged)
      // A bit that zstd does not use changes nothing of what is made.
      const found = await outcomeOf(tried, target, trust)
      if (found !== good) expect([at, found]).toEqual([at, expect.stringMatching(/^the thin bundle .+ is refused/)])
    }
  }
  for (const id of ['../x', 'x'.repeat(70_000), '\ud800', '']) {
    writeFileSync(tried, forge(file('day.thin'), id))
    expect(await outcomeOf(tried, target, trust)).toContain('entries[0].id is not the id of a record')
  }
})

test.each([
  [['--thin'], 'give it by --since, or by --for with the file that "patchmirror bundle need FILE" writes there'],
  [['--thin', '--since', '1', '--split', '1 MB'], '--split cuts large files'],
])('export %s is refused with what to do', async (args, why) => {
  const { code, err } = await run(['bundle', 'export', join(folder(), 'x'), ...args], emptyMirror(), '/')
  expect([code, err]).toEqual([2, expect.stringContaining(why)])
})

test('a bomb is refused at its bound, and a dictionary that is another one as well', () => {
  const bomb = zstdCompressSync(Buffer.alloc(2 ** 22))
  expect(() => expand(bomb, Buffer.alloc(0), 1000)).toThrow('a part of it does not expand')
  const text = Buffer.from('a line that both sides have\n'.repeat(100))
  const squeezed = squeeze(text, text)
  expect(squeezed.length).toBeLessThan(40)
  expect(expand(squeezed, text, text.length).equals(text)).toBe(true)
  expect(() => expand(squeezed, Buffer.from('x'), text.length)).toThrow('a part of it does not expand')
})
