import { copyFileSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { fillOutbox, keptFiles } from '../../../../src/features/bundles/boxes/outbox.ts'
import { newIdentityCommand, showIdentity } from '../../../../src/features/bundles/cli/identity.ts'
import { type Bench, createBench } from '../../../support/mirror.ts'
import { forge } from '../forged.ts'
import { below, carry, folder, signer } from '../air-gap.ts'
import { spoken } from '../error-messages.ts'
import { watch } from '../watched-inbox.ts'
import { longTest, test } from '../../../support/tables.ts'

const HOUR = 3_600_000

async function above(now: () => number = Date.now): Promise<Bench> {
  const bench = await createBench({ sandbox: { records: 5, service: false, now } })
  onTestFinished(() => bench.close())
  await bench.run('osv')
  return bench
}

test('the date of an unchanged upstream crosses in a delta of its own, and replaces no other bundle', async () => {
  let now = Date.now() - 100 * HOUR
  const bench = await above(() => now)
  const box = folder()
  const settings = { keep: 2, fullDays: 7, expireDays: 90 }
  const fill = async (hours: number): Promise<string | null> => {
    now += hours * HOUR
    await bench.run('osv')
    const shipped = await fillOutbox({
      settings,
      folder: box,
      dataDir: bench.dir,
      keys: [signer()],
      trustRoot: [],
      program: 'patchmirror/test',
      now: () => now,
    })
    return shipped && `${shipped.sequence} ${shipped.kind}`
  }
  const there = below()
  const inbox = folder()
  const { settled, look } = watch(inbox, there)
  const cross = async (): Promise<void> => {
    for (const name of readdirSync(box)) copyFileSync(join(box, name), join(inbox, name))
    await look()
  }
  expect([await fill(0), await fill(5)]).toEqual(['1 full', null])
  await cross()
  const dates: number[] = [there.store.runs.readConfirmedAt('osv') ?? 0]
  const names: string[][] = []
  for (let i = 0; i < 3; i++) {
    expect([await fill(4), await fill(3)].filter((one) => one !== null)).toEqual(['1 delta'])
    names.push(readdirSync(box).filter((name) => name.includes('delta')))
    await cross()
    dates.push(there.store.runs.readConfirmedAt('osv') ?? 0)
    expect(there.store.ledger.readLastImport()?.asOf).toBe(dates.at(-1))
  }
  expect(names.flat()).toHaveLength(3) // the latest alone is kept
  expect(new Set(names.flat()).size).toBe(3)
  for (const [i, date] of dates.slice(1).entries()) expect(date - (dates[i] ?? 0)).toBeGreaterThan(5 * HOUR)
  expect(settled.filter(({ outcome }) => outcome === 'imported')).toHaveLength(4)
  const file = { name: '', sequence: 1, kind: 'full', dated: '', isWhole: true } as const
  const dated = { ...file, kind: 'delta', dated: '20260101T000000Z' } as const
  expect(keptFiles([file, dated, { ...dated, dated: '20260102T000000Z' }], 1)).toHaveLength(2)
})

/** Exports `count` states of a mirror, its upstream's clock an hour further for each. */
async function exportStates(bench: Bench, to: string, count: number, tick: () => void) {
  const states = [await carry(bench.dir, to)]
  while (states.length < count) {
    tick()
    bench.sandbox.feed.change(1)
    await bench.run('osv')
    states.push(await carry(bench.dir, to))
  }
  return states
}

longTest('bundles of a restored source mirror are refused until it has another identity', async () => {
  let now = Date.now() - 100 * HOUR
  const bench = await above(() => now)
  const to = folder()
  const box = folder()
  const there = below()
  const states = await exportStates(bench, to, 4, () => (now += HOUR))
  const [first, second, third, later] = states.map(({ files }) => files)
  for (const files of [first, third]) await there.take(files ?? [])
  // As backups of before the second and of before the third export count, and then export.
  for (const sequence of [1, 2]) {
    const [back = ''] = await forge(later ?? [], to, { head: () => ({ sequence }) })
    copyFileSync(back, join(box, `back-${sequence}.zip`))
  }
  copyFileSync(second?.[0] ?? '', join(box, 'late.zip'))
  const { inbox, settled, look } = watch(box, there)
  await look()
  const outcomes = settled.map(({ file, outcome }) => `${file} ${outcome}`)
  expect(outcomes.sort()).toEqual(['back-1.zip refused', 'back-2.zip refused', 'late.zip superseded'])
  expect(inbox.status().lastRefused?.file).toBe('refused/back-2.zip')
  const why = (name: string): string => readFileSync(join(box, 'refused', `${name}.txt`), 'utf8')
  expect(why('back-1.zip')).toMatch(
    /sequence of the source mirror went backwards.*same sequence 1 was imported.*"patchmirror bundle inspect --new-identity"/,
  )
  expect(why('back-2.zip')).toMatch(/went backwards.*lower sequence 2/)
  const env = { PATCHMIRROR_DATA_DIR: bench.dir }
  const before = await spoken(env, () => showIdentity({}))
  const after = await spoken(env, () => newIdentityCommand({ yes: true }))
  const mirror = states[0]?.manifest.mirror ?? ''
  expect(before.said.trim()).toBe(mirror)
  expect(after.said).toContain(`this mirror was ${mirror}`)
  const anew = await carry(bench.dir, to)
  expect(after.said.split('\n')[0]).toBe(anew.manifest.mirror)
  expect((await there.take(anew.files)).outcome).toBe('applied')
  expect(await there.refuses(first ?? [])).toMatch(/older than the stored data/)
})

longTest(
  'an outbox with more bundles than the mirror has recorded is not filled until the mirror has another identity',
  async () => {
    const bench = await above()
    const box = folder()
    const settings = { keep: 2, fullDays: 0, expireDays: 90 }
    const deps = { settings, folder: box, dataDir: bench.dir, keys: [signer()], trustRoot: [] }
    const fill = () => fillOutbox({ ...deps, program: 'patchmirror/test', now: Date.now })
    const first = await fill()
    expect(await fill()).toBeNull()
    const later = (first?.file ?? '').replace('00000001', '00000005')
    copyFileSync(join(box, first?.file ?? ''), join(box, later))
    await expect(fill()).rejects.toThrow(
      /last recorded export is 1: the mirror was restored.*"patchmirror bundle inspect --new-identity"/,
    )
    await spoken({ PATCHMIRROR_DATA_DIR: bench.dir }, () => newIdentityCommand({ yes: true }))
    expect(await fill()).toMatchObject({ kind: 'full' })
    expect(await fill()).toBeNull()
  },
)

longTest('a bundle imported with --allow-rollback is the base of the next delta', async () => {
  const bench = await above()
  const to = folder()
  const there = below()
  const first = await carry(bench.dir, to)
  bench.sandbox.feed.change(1)
  await bench.run('osv')
  const second = await carry(bench.dir, to)
  const [back = ''] = await forge(second.files, to, { head: () => ({ sequence: 1 }) })
  await there.take(first.files)
  expect(await there.refuses([back])).toMatch(/same sequence 1/)
  expect((await there.take([back], { allowRollback: true })).outcome).toBe('applied')
  expect((await there.take(second.files)).outcome).toBe('same')
})

longTest('bundles that were imported before a rollback are imported again after it', async () => {
  let now = Date.now() - 100 * HOUR
  const bench = await above(() => now)
  await bench.run('feeds')
  const to = folder()
  const there = below()
  const states = await exportStates(bench, to, 3, () => (now += HOUR))
  for (const { files } of states) await there.take(files)
  const [first] = states
  await there.take(first?.files ?? [], { allowRollback: true })
  for (const source of ['feeds', 'osv'] as const)
    expect(there.store.ledger.readLastImportOf(source)).toMatchObject({
      sequence: 1,
      rollback: true,
    })
  for (const run of there.store.runs.listRuns(2)) {
    expect(run.message).toContain('ROLLBACK to bundle 1')
    expect(run.facts).toMatchObject({ rollback: true })
  }
  for (const { files, manifest } of states.slice(1)) {
    expect((await there.take(files)).outcome).toBe('applied')
    expect(there.digest()).toBe(manifest.digest)
  }
  expect(there.store.ledger.readLastImport()).toMatchObject({ sequence: 3, rollback: false })
})

longTest('a rollback to the stored state sets the sequence', async () => {
  let now = Date.now() - 100 * HOUR
  const bench = await above(() => now)
  const to = folder()
  const there = below()
  const [first, second] = await exportStates(bench, to, 2, () => (now += HOUR))
  const createdAt = second?.manifest.createdAt ?? ''
  const head = () => ({ sequence: 3, createdAt })
  const [third = ''] = await forge(first?.files ?? [], to, { head })
  await there.take([third])
  expect(await there.take(first?.files ?? [])).toMatchObject({ outcome: 'same', renewed: false })
  expect(await there.refuses(second?.files ?? [])).toMatch(/has sequence 2, and 3 was imported/)
  const back = await there.take(first?.files ?? [], { allowRollback: true })
  expect(back).toMatchObject({ outcome: 'same', rollback: true, renewed: true })
  expect((await there.take(second?.files ?? [])).outcome).toBe('applied')
})

longTest('exports of one mirror have dates in their order, whatever its clock does', async () => {
  const bench = await above()
  const to = folder()
  const dates: number[] = []
  for (const behind of [0, 2 * HOUR, HOUR, -1]) {
    bench.sandbox.feed.change(1)
    await bench.run('osv')
    const made = await carry(bench.dir, to, { now: () => Date.now() - behind })
    dates.push(Date.parse(made.manifest.createdAt))
  }
  expect(new Set(dates).size).toBe(4)
  expect(dates).toEqual([...dates].sort((a, b) => a - b))
})

longTest(
  'a bundle whose content is stored already is recorded with its higher sequence, and is no rollback',
  async () => {
    let now = Date.now() - 100 * HOUR
    const bench = await above(() => now)
    const to = folder()
    const there = below()
    const states = await exportStates(bench, to, 2, () => (now += HOUR))
    const [first, second] = states.map(({ files }) => files)
    await there.take(second ?? [])
    await there.take(first ?? [], { allowRollback: true })
    expect(there.store.ledger.readLastImport()).toMatchObject({ sequence: 1, rollback: true })
    const [third = ''] = await forge(first ?? [], to, { head: () => ({ sequence: 3 }) })
    expect(await there.take([third])).toMatchObject({ outcome: 'same', renewed: true })
    expect(there.store.ledger.readLastImport()).toMatchObject({ sequence: 3, rollback: false })
    expect(await there.refuses(second ?? [])).toMatch(/has sequence 2, and 3 was imported/)
    expect(await there.take([third])).toMatchObject({ outcome: 'same', renewed: false })
  },
)
