import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect } from 'vitest'
import { nameBoxFault, stripPaths } from '../../../../src/features/bundles/boxes/inbox-files.ts'
import { BOXES } from '../../../../src/base/reports/transfer.ts'
import { faultsBy } from '../../../support/openapi.ts'
import { createInboxImporter } from '../../../../src/features/bundles/boxes/inbox.ts'
import { inspectBundle, openBundle } from '../../../../src/features/bundles/import/open.ts'
import { type OutboxFile, fillOutbox, keptFiles, listOutbox } from '../../../../src/features/bundles/boxes/outbox.ts'
import { refusalOf } from '../../../../src/features/bundles/format/refusal.ts'
import { MirrorError } from '../../../../src/base/errors.ts'
import { type Bench, createBench } from '../../../support/mirror.ts'
import { keyPair, refusal, scratch, trust, writeBundle } from '../fixtures.ts'
import { below, carry, folder, signer } from '../air-gap.ts'
import { watch } from '../watched-inbox.ts'
import { longTest, test } from '../../../support/tables.ts'

const DAY = 86_400_000

async function above(): Promise<Bench> {
  const bench = await createBench({ sandbox: { records: 5, service: false } })
  await bench.run('osv')
  return bench
}

async function change(bench: Bench): Promise<void> {
  bench.sandbox.feed.change(1)
  await bench.run('osv')
}

describe('the outbox', () => {
  const settings = { keep: 3, fullDays: 7, expireDays: 90 }

  longTest('gets a full bundle first, then what changed since it, and nothing when nothing is new', async () => {
    const bench = await above()
    const box = join(folder(), 'out')
    let now = Date.now()
    const fill = () =>
      fillOutbox({
        settings,
        folder: box,
        dataDir: bench.dir,
        keys: [signer()],
        trustRoot: [],
        program: 'patchmirror/test',
        now: () => now,
      })
    const kinds: (string | null)[] = []
    for (const step of ['first', 'same', 'change', 'change', 'later'] as const) {
      if (step === 'change') await change(bench)
      if (step === 'later') now += 8 * DAY
      kinds.push((await fill())?.kind ?? null)
    }
    expect(kinds).toEqual(['full', null, 'delta', 'delta', 'full'])
    const names = readdirSync(box).sort()
    expect(names.map((name) => name.replace(/[\da-f]{8}-/, ''))).toEqual(
      [
        'patchmirror-00000002-delta.bundle.zip',
        'patchmirror-00000003-delta.bundle.zip',
        'patchmirror-00000003-full.bundle.zip',
        'patchmirror-00000001-full.bundle.zip',
      ].sort(),
    )
    const delta = await inspectBundle([join(box, names.find((name) => name.includes('3-delta')) ?? '')])
    expect(delta.manifest.base?.sequence).toBe(1)
    expect(delta.manifest.sources.osv?.bases).toHaveLength(2)
    await delta.close()
    renameSync(box, `${box}-unmounted`)
    await change(bench)
    await expect(fill()).rejects.toThrow(`${box} is not there: mount its medium, or make the folder`)
    expect(existsSync(box)).toBe(false)
    renameSync(`${box}-unmounted`, box)
    expect((await fill())?.kind).toBe('delta')
    await bench.close()
  })

  test('gets a full bundle when a key signs that did not sign the last one, and none when one is left out', async () => {
    const bench = await above()
    const box = join(folder(), 'out')
    const next = keyPair(folder(), 'next')
    const fill = async (...keys: ReturnType<typeof signer>[]) => {
      const common = { settings, folder: box, dataDir: bench.dir, trustRoot: [], program: 'test', now: Date.now }
      return (await fillOutbox({ ...common, keys }))?.kind ?? null
    }
    expect(await fill(signer())).toBe('full')
    expect(await fill(signer(), next)).toBe('full')
    expect(await fill(next)).toBe(null)
    const [name = ''] = readdirSync(box)
    expect(await refusal([join(box, name)], trust([next], { now: Date.now }))).toBe(null)
  })

  longTest('begins again with a full bundle when the last one is damaged or no longer recorded', async () => {
    const bench = await above()
    const box = folder()
    const deps = {
      settings,
      folder: box,
      dataDir: bench.dir,
      keys: [signer()],
      trustRoot: [],
      program: 'patchmirror/test',
      now: Date.now,
    }
    const first = await fillOutbox(deps)
    writeFileSync(join(box, first?.file ?? ''), 'damaged')
    await change(bench)
    expect((await fillOutbox(deps))?.kind).toBe('full')
    await bench.store.transaction(() => {
      bench.store.ledger.forgetSummaries(0)
      return Promise.resolve({ commit: true })
    })
    await change(bench)
    expect((await fillOutbox(deps))?.kind).toBe('full')
    await bench.close()
  })

  test('that cannot be written to is reported, and the public status does not name the folder', async () => {
    const bench = await above()
    const box = join(folder(), 'out')
    writeFileSync(box, 'a file where the folder would be')
    const deps = {
      settings,
      folder: box,
      dataDir: bench.dir,
      keys: [signer()],
      trustRoot: [],
      program: 'patchmirror/test',
      now: Date.now,
    }
    const thrown: unknown = await fillOutbox(deps).catch((error: unknown) => error)
    const error = nameBoxFault(thrown, 'outbox', box, bench.dir)
    expect(error).toMatchObject({ code: 'storage' })
    const text = error instanceof Error ? error.message : ''
    expect(text).toContain(`the outbox ${box} cannot be read or written (ENOTDIR`)
    expect(stripPaths(text, { outbox: box, data: bench.dir })).not.toContain(box)
    const full = Object.assign(new Error('full'), { code: 'SQLITE_FULL' })
    expect(nameBoxFault(full, 'outbox', box, bench.dir)).toMatchObject({ code: 'storage' })
    await bench.close()
  })

  test('never drops the full bundle that a kept delta builds on', () => {
    const file = (sequence: number, kind: 'full' | 'delta'): OutboxFile => {
      return { name: `${sequence}-${kind}`, sequence, kind, dated: '', isWhole: true }
    }
    const files = [file(1, 'full'), file(2, 'delta'), file(5, 'full'), file(6, 'delta')]
    const more = [...files, file(7, 'delta'), file(8, 'delta')]
    expect(keptFiles(more, 2).map(({ name }) => name)).toEqual(['5-full', '7-delta', '8-delta'])
    expect(keptFiles(files, 3).map(({ name }) => name)).toEqual(['1-full', '2-delta', '5-full', '6-delta'])
    expect(keptFiles([], 1)).toEqual([])
    const box = folder()
    for (const name of ['note.txt', 'patchmirror-ffffffff-00000001-full.bundle.zip']) writeFileSync(join(box, name), '')
    expect(listOutbox(box, '0'.repeat(32))).toEqual([])
  })
})

describe('the inbox', () => {
  longTest('imports in the order of sequence whatever the names, and moves aside what it took', async () => {
    const bench = await above()
    const to = folder()
    const box = folder()
    const full = await carry(bench.dir, to)
    await change(bench)
    const delta = await carry(bench.dir, to, { since: '1' })
    copyFileSync(full.files[0] ?? '', join(box, 'z-full.zip'))
    copyFileSync(delta.files[0] ?? '', join(box, 'a-delta.zip'))
    const mirror = below()
    const { inbox, settled, look } = watch(box, mirror)
    await inbox.look()
    expect(inbox.status().waiting.map(({ why }) => why)).toEqual(['still arriving', 'still arriving'])
    await inbox.look()
    expect(settled.map(({ file, outcome }) => [file, outcome])).toEqual([
      ['z-full.zip', 'imported'],
      ['a-delta.zip', 'imported'],
    ])
    expect(mirror.digest()).toBe(delta.manifest.digest)
    expect(readdirSync(join(box, 'done')).sort()).toEqual(['a-delta.zip', 'z-full.zip'])
    copyFileSync(full.files[0] ?? '', join(box, 'again.zip'))
    copyFileSync(delta.files[0] ?? '', join(box, 'repeat.zip'))
    await look()
    expect(settled.slice(2).map(({ outcome }) => outcome)).toEqual(['superseded', 'superseded'])
    expect(inbox.status()).toMatchObject({ waiting: [], imported: 2, superseded: 2, refused: 0 })
    await bench.close()
  })

  longTest('keeps a delta until its base arrives, and names the base', async () => {
    const bench = await above()
    const to = folder()
    const box = folder()
    const full = await carry(bench.dir, to)
    await change(bench)
    const delta = await carry(bench.dir, to, { since: '1' })
    copyFileSync(delta.files[0] ?? '', join(box, 'delta.zip'))
    let hours = 0
    const elapsed = (): number => hours * 3_600_000
    const { inbox, settled, troubles, look } = watch(box, below(), { elapsed })
    await look()
    const why = 'waiting for bundle 1, or a full one'
    expect(inbox.status()).toMatchObject({ waiting: [{ file: 'delta.zip', why }], problem: null })
    hours = 5
    await look()
    expect(inbox.status().problem).toBeNull()
    hours = 6
    await look()
    expect(inbox.status().problem).toBe('not_ready')
    expect(troubles).toEqual([expect.stringContaining(`delta.zip: ${why}, for six hours: carry that again, or run`)])
    copyFileSync(full.files[0] ?? '', join(box, 'full.zip'))
    await look()
    await look()
    expect(settled.map(({ file }) => file)).toEqual(['full.zip', 'delta.zip'])
    expect(inbox.status()).toMatchObject({ waiting: [], problem: null })
    await bench.close()
  })

  longTest('keeps what a wrong clock refuses, says why, and imports it in order once the clock is right', async () => {
    const bench = await above()
    const to = folder()
    const box = folder()
    const full = await carry(bench.dir, to, { expireDays: 90 })
    await change(bench)
    const delta = await carry(bench.dir, to, { since: '1', expireDays: 90 })
    copyFileSync(full.files[0] ?? '', join(box, 'full.zip'))
    copyFileSync(delta.files[0] ?? '', join(box, 'delta.zip'))
    let ahead = -365 * DAY
    const { inbox, settled, troubles, look } = watch(box, below(), { now: () => Date.now() + ahead })
    await look()
    await look()
    expect(settled).toEqual([])
    for (const { why } of inbox.status().waiting)
      expect(why).toMatch(/^waiting for the clock to be right: .* is dated in the future: /)
    expect(inbox.status().waiting).toHaveLength(2)
    expect(troubles).toHaveLength(2) // once for each
    ahead = 365 * DAY
    await look()
    expect(settled).toEqual([])
    ahead = 0
    await look()
    expect(settled.map(({ file, outcome }) => [file, outcome])).toEqual([
      ['full.zip', 'imported'],
      ['delta.zip', 'imported'],
    ])
    expect(inbox.status()).toMatchObject({ waiting: [], refused: 0 })
    await bench.close()
  })

  longTest('refuses an expired bundle when a newer one proves that its time is over', async () => {
    const bench = await above()
    const to = folder()
    const box = folder()
    const old = await carry(bench.dir, to, { now: () => Date.now() - 200 * DAY, expireDays: 90 })
    copyFileSync(old.files[0] ?? '', join(box, 'old.zip'))
    const { inbox, settled, look } = watch(box, below())
    await look()
    expect(inbox.status().waiting).toEqual([
      { file: 'old.zip', why: expect.stringMatching(/for the clock .* expired at /) as string },
    ])
    await change(bench)
    const next = await carry(bench.dir, to)
    copyFileSync(next.files[0] ?? '', join(box, 'next.zip'))
    await look()
    await look()
    expect(settled.map(({ file, outcome }) => [file, outcome])).toEqual([
      ['next.zip', 'imported'],
      ['old.zip', 'refused'],
    ])
    await bench.close()
  })

  test('waits for a bundle that is half-copied, in one file or in parts', async () => {
    const bench = await above()
    const to = folder()
    const box = folder()
    const { files } = await carry(bench.dir, to, { split: 4000 })
    const whole = Buffer.concat(files.slice(0, -1).map((file) => readFileSync(file)))
    writeFileSync(join(box, 'half.zip'), whole.subarray(0, whole.length / 2))
    for (const file of files) if (!file.endsWith('.002')) copyFileSync(file, join(box, basename(file)))
    const { inbox, settled, look } = watch(box, below())
    await look()
    expect(inbox.status().waiting.map(({ why }) => why.slice(0, 10))).toEqual(['incomplete', 'incomplete'])
    copyFileSync(files[1] ?? '', join(box, basename(files[1] ?? '')))
    await look()
    expect(settled.map(({ outcome }) => outcome)).toEqual(['imported'])
    expect(readdirSync(join(box, 'done')).sort()).toEqual(files.map((file) => basename(file)).sort())
    writeFileSync(join(box, 'half.zip'), whole)
    await look()
    expect(settled.at(-1)).toMatchObject({ file: 'half.zip', outcome: 'superseded' })
    await bench.close()
  })

  longTest('refuses an unsigned, foreign or damaged bundle, and writes the reason beside it', async () => {
    const box = folder()
    const other = keyPair(scratch(), 'other')
    await writeBundle(join(box, 'unsigned.zip'), [])
    await writeBundle(join(box, 'foreign.zip'), [other])
    await writeBundle(join(box, 'damaged.zip'), [signer()], undefined, { expiresAt: null })
    const bytes = readFileSync(join(box, 'damaged.zip'))
    bytes[40] = (bytes[40] ?? 0) ^ 1
    writeFileSync(join(box, 'damaged.zip'), bytes)
    writeFileSync(join(box, 'note.txt'), 'mine')
    const { inbox, look } = watch(box, below())
    await look()
    expect(inbox.status()).toMatchObject({ waiting: [], imported: 0, refused: 3 })
    expect(faultsBy(BOXES, { inbox: inbox.status(), outbox: null })).toEqual([])
    expect(readdirSync(join(box, 'refused')).sort()).toEqual([
      'damaged.zip',
      'damaged.zip.txt',
      'foreign.zip',
      'foreign.zip.txt',
      'unsigned.zip',
      'unsigned.zip.txt',
    ])
    expect(readFileSync(join(box, 'refused', 'unsigned.zip.txt'), 'utf8')).toContain('not signed')
    expect(readdirSync(box).sort()).toEqual(['note.txt', 'refused'])
    const left: (string | undefined)[] = []
    for (let i = 0; i < 4; i++) {
      const file = inbox.status().lastRefused?.file
      left.push(file)
      if (file !== undefined) rmSync(join(box, file))
      await look()
    }
    expect(left.toSorted()).toEqual(['refused/damaged.zip', 'refused/foreign.zip', 'refused/unsigned.zip', undefined])
    expect(inbox.status()).toMatchObject({ refused: 3, lastRefused: null })
  })

  test('does not call refused what is taken away while it is read', async () => {
    const box = folder()
    const { dir } = below()
    await writeBundle(join(box, 'a.zip'), [signer()])
    const settled: unknown[] = []
    const tries = {
      begin: () => [rmSync(join(box, 'a.zip'))].length > 0,
      end: () => undefined,
      takeBack: () => undefined,
    }
    const trust = { keys: [signer()], revoked: new Set<string>(), now: Date.now }
    const apply = () => Promise.reject(new Error('nothing is left to apply'))
    const onSettled = (one: unknown): void => void settled.push(one)
    const inbox = createInboxImporter({ folder: box, dataDir: dir, trust, apply, tries, now: Date.now, onSettled })
    for (let i = 0; i < 3; i++) await inbox.look()
    expect([settled, readdirSync(box)]).toEqual([[], []])
    expect(inbox.status()).toMatchObject({ waiting: [], refused: 0, lastRefused: null })
  })

  test('on a read-only medium imports each bundle once', async () => {
    const bench = await above()
    const to = folder()
    const box = folder()
    const { files } = await carry(bench.dir, to)
    copyFileSync(files[0] ?? '', join(box, 'full.zip'))
    writeFileSync(join(box, 'done'), 'a file where the folder would be') // so nothing can be moved there
    const { inbox, settled, look } = watch(box, below())
    await look()
    await look()
    expect(settled.map(({ outcome }) => outcome)).toEqual(['imported'])
    expect(inbox.status().waiting).toEqual([])
    expect(existsSync(join(box, 'full.zip'))).toBe(true)
    await bench.close()
  })

  test('leaves a bundle in place after a local error, and tries again later', async () => {
    const box = folder()
    await writeBundle(join(box, 'full.zip'), [signer()], undefined, { expiresAt: null })
    let elapsed = 0
    let tries = 0
    const inbox = createInboxImporter({
      folder: box,
      dataDir: box,
      now: Date.now,
      onSettled: () => undefined,
      elapsed: () => elapsed,
      trust: { keys: [signer()], revoked: new Set(), now: null },
      apply() {
        tries++
        return Promise.reject(new MirrorError(tries === 1 ? 'locked' : 'storage', 'no'))
      },
    })
    const looks: (string | undefined)[] = []
    for (const minutes of [0, 0, 0, 0, 6, 0]) {
      elapsed += minutes * 60_000
      await inbox.look()
      looks.push(`${tries} ${inbox.status().waiting[0]?.why}`)
    }
    expect(looks).toEqual([
      '0 still arriving',
      '1 a sync is running',
      '2 failed: storage',
      '2 failed: storage',
      '3 failed: storage',
      '3 failed: storage',
    ])
    expect(readdirSync(box)).toEqual(['full.zip'])
  })

  longTest('refuses a bundle with an extra byte, and waits for a truncated one', async () => {
    const bench = await above()
    const to = folder()
    const box = folder()
    const whole = readFileSync((await carry(bench.dir, to)).files[0] ?? '')
    const stray = Buffer.from('x')
    const end = whole.length - 22
    const damaged = {
      behind: Buffer.concat([whole, stray]),
      before: Buffer.concat([stray, whole]),
      within: Buffer.concat([whole.subarray(0, 5_000), stray, whole.subarray(5_000)]),
      lost: Buffer.concat([whole.subarray(0, 5_000), whole.subarray(5_001)]),
      end: Buffer.concat([whole.subarray(0, end), stray, whole.subarray(end + 1)]),
    }
    for (const [name, bytes] of Object.entries(damaged)) writeFileSync(join(box, `${name}.zip`), bytes)
    const { inbox, settled, look } = watch(box, below())
    await look()
    expect(settled.map(({ file, outcome }) => `${file} ${outcome}`).sort()).toEqual(
      Object.keys(damaged)
        .map((name) => `${name}.zip refused`)
        .sort(),
    )
    expect(inbox.status().waiting).toEqual([])
    const cut = join(to, 'cut.zip')
    const whom = { keys: [signer()], revoked: new Set<string>(), allowUnsigned: false, now: null }
    for (let left = 1; left < whole.length; left += left < 400 ? 1 : 1_499) {
      writeFileSync(cut, whole.subarray(0, whole.length - left))
      const error: unknown = await openBundle([cut], whom).catch((thrown: unknown) => thrown)
      expect([left, refusalOf(error)]).toEqual([left, { kind: 'incomplete' }])
    }
  })

  test('logs once that it ignores links, pipes and folders', async () => {
    const box = folder()
    symlinkSync('/nowhere', join(box, 'link.zip'))
    mkdirSync(join(box, 'media'))
    mkdirSync(join(box, 'done'))
    const { troubles, look } = watch(box, below())
    await look()
    await look()
    expect(troubles).toEqual([
      expect.stringMatching(/"link\.zip", "media" are links, pipes or folders and are ignored/),
    ])
    symlinkSync('/nowhere', join(box, 'other.zip'))
    await look()
    expect(troubles.slice(1)).toEqual([
      expect.stringMatching(/"other\.zip" is a link, a pipe or a folder and is ignored/),
    ])
  })

  test('names a bundle that its name hides once in the log, and in the status until it is renamed', async () => {
    const box = folder()
    await writeBundle(join(box, 'whole.zip.part'), [signer()])
    const bytes = readFileSync(join(box, 'whole.zip.part'))
    writeFileSync(join(box, 'OTHER.ZIP'), bytes)
    writeFileSync(join(box, 'README.txt'), 'what lies here')
    writeFileSync(join(box, 'patchmirror-1.need'), 'a receipt')
    writeFileSync(join(box, '.whole.zip.Xy12'), bytes)
    const { troubles, look, inbox } = watch(box, below())
    await inbox.look()
    writeFileSync(join(box, 'OTHER.ZIP'), bytes.subarray(0, 300)) // it still arrives
    await inbox.look()
    await look()
    await look()
    expect(troubles).toEqual([
      expect.stringMatching(/^inbox: "whole\.zip\.part": not read, .*: rename it/),
      expect.stringMatching(/^inbox: "OTHER\.ZIP": not read/),
    ])
    const told = () => inbox.status().waiting.map(({ file, why }) => [file, why.slice(0, 8)])
    expect(told().sort()).toEqual([
      ['OTHER.ZIP', 'not read'],
      ['whole.zip.part', 'not read'],
    ])
    rmSync(join(box, 'OTHER.ZIP'))
    renameSync(join(box, 'whole.zip.part'), join(box, 'whole.zip'))
    await look()
    await look()
    // It is read now: by the clock here it has expired.
    expect(inbox.status().waiting).toEqual([
      { file: 'whole.zip', why: expect.stringContaining('waiting for the clock') as string },
    ])
  })

  test('has one line in the log for any number of links, pipes and folders', async () => {
    const box = folder()
    for (let n = 0; n < 300; n++) symlinkSync('/nowhere', join(box, `link-${n}.zip`))
    const { troubles, look } = watch(box, below())
    await look()
    expect(troubles).toEqual([expect.stringMatching(/^inbox: .+ and 297 more are links, pipes/)])
  })

  test('logs once that a bundle has been half-copied for a day that elapsed, whatever the clock does', async () => {
    const box = folder()
    await writeBundle(join(box, '.whole'), [signer()])
    writeFileSync(join(box, 'junk.zip'), readFileSync(join(box, '.whole')).subarray(0, 100))
    let now = Date.now()
    let elapsed = 0
    const troubles: string[] = []
    const inbox = createInboxImporter({
      folder: box,
      dataDir: box,
      now: () => now,
      onSettled: () => undefined,
      elapsed: () => elapsed,
      trust: { keys: [signer()], revoked: new Set(), now: null },
      apply: () => Promise.reject(new Error('there is nothing to apply')),
      onTrouble: (one) => troubles.push(one),
    })
    for (const hours of [0, 0, 23]) {
      elapsed += hours * 3_600_000
      now += 400 * DAY
      await inbox.look()
    }
    expect(troubles).toEqual([])
    for (const hours of [2, 30]) {
      elapsed += hours * 3_600_000
      await inbox.look()
    }
    expect(troubles).toEqual([expect.stringMatching(/junk\.zip has been incomplete for a day/)])
    expect(inbox.status().waiting[0]?.why).toMatch(/^incomplete for over a day/)
  })

  test('refuses at once what cannot become a zip, and waits for one whose space is only reserved', async () => {
    const box = folder()
    writeFileSync(join(box, 'note.zip'), 'this is a text, not a bundle')
    writeFileSync(join(box, 'reserved.zip'), Buffer.alloc(10_000))
    writeFileSync(join(box, 'begun.zip'), 'PK')
    const { inbox, settled, look } = watch(box, below())
    await look()
    expect(settled).toMatchObject([{ file: 'note.zip', outcome: 'refused' }])
    expect(settled[0]?.detail).toContain('it is not a zip')
    expect(inbox.status().waiting.map(({ file }) => file)).toEqual(['begun.zip', 'reserved.zip'])
    const { lastRefused } = inbox.status()
    expect(lastRefused?.file).toBe('refused/note.zip')
    const restarted = watch(box, below())
    await restarted.look()
    expect(restarted.inbox.status().lastRefused).toEqual(lastRefused)
    rmSync(join(box, 'refused', 'note.zip'))
    await restarted.look()
    expect(restarted.inbox.status().lastRefused).toBeNull()
  })

  test('that does not exist is reported until it does', async () => {
    const box = join(folder(), 'not-mounted')
    const { inbox, troubles, look } = watch(box, below())
    await look()
    expect(inbox.status().problem).toBe('ENOENT')
    expect(troubles).toEqual([`the inbox ${box} cannot be read (ENOENT): mount its medium, or make the folder`])
    mkdirSync(box)
    await look()
    expect(inbox.status().problem).toBeNull()
  })
})
