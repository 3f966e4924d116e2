import { copyFileSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { fillOutbox } from '../../../../src/features/bundles/boxes/outbox.ts'
import { writeReceipt } from '../../../../src/features/bundles/boxes/receipts.ts'
import { createBench } from '../../../support/mirror.ts'
import { below, folder, signer } from '../air-gap.ts'
import { watch } from '../watched-inbox.ts'

const HOUR = 3_600_000

/** A mirror with an outbox, one below with an inbox, and the ways between them, which carry what a test has them carry. */
async function link() {
  let now = Date.now() - 1_000 * HOUR
  const bench = await createBench({ sandbox: { records: 400, service: false, now: () => now } })
  onTestFinished(() => bench.close())
  const there = below()
  const [out, inbox] = [folder(), folder()]
  const troubles: string[] = []
  const { look, settled, inbox: importer } = watch(inbox, there, { receipts: inbox })
  const fill = async (hours = 1): Promise<string | null> => {
    now += hours * HOUR
    await bench.run('osv')
    const shipped = await fillOutbox({
      settings: { keep: 5, fullDays: 7, expireDays: 0 },
      folder: out,
      dataDir: bench.dir,
      keys: [signer()],
      trustRoot: [],
      program: 'patchmirror/test',
      now: () => now,
      onTrouble: (message) => troubles.push(message),
    })
    return shipped && `${shipped.sequence} ${shipped.file.replace(/^.*?-\d{8}-|\.dated-[^.]+/g, '')}`
  }
  return {
    out,
    inbox,
    there,
    troubles,
    settled,
    importer,
    fill,
    change(count = 3): Promise<string | null> {
      bench.sandbox.feed.change(count)
      return fill()
    },
    /** Carries the newest file down, and what is in the inbox is imported. */
    async down(): Promise<void> {
      const newest = readdirSync(out)
        .filter((name) => name.startsWith('patchmirror-') && !name.endsWith('.need'))
        .sort((a, b) => statSync(join(out, a)).mtimeMs - statSync(join(out, b)).mtimeMs)
        .at(-1)
      if (newest !== undefined) copyFileSync(join(out, newest), join(inbox, newest))
      await look()
    },
    /** Carries the receipts up. */
    up(): void {
      for (const name of receiptsIn(inbox)) copyFileSync(join(inbox, name), join(out, name))
    },
    isEqual: () => bench.store.carried.digestSources().digest === there.digest(),
  }
}

function receiptsIn(path: string): string[] {
  return readdirSync(path).filter((name) => name.endsWith('.need'))
}

test('an outbox with a receipt of what it sent last sends thin deltas, and whole ones without', async () => {
  const { fill, change, down, up, inbox, isEqual, settled } = await link()
  expect(await fill()).toBe('1 full.bundle.zip')
  await down()
  expect(receiptsIn(inbox)).toHaveLength(1)
  expect(await change()).toBe('2 delta.bundle.zip') // no receipt has come up
  await down()
  up()
  expect(await change()).toBe('3 delta.bundle.thin')
  await down()
  expect(isEqual()).toBe(true)
  up()
  expect(await fill(7)).toBe('3 delta.bundle.thin') // a later date alone
  await down()
  expect(await change()).toBe('4 delta.bundle.thin')
  await down()
  expect(isEqual()).toBe(true)
  expect(settled.map(({ outcome }) => outcome)).toEqual(Array.from({ length: 5 }, () => 'imported'))
})

test('what a lost thin delta had is made good by the next one, which is whole', async () => {
  const { fill, change, down, up, isEqual } = await link()
  await fill()
  await down()
  up()
  expect(await change()).toBe('2 delta.bundle.thin') // lost
  up()
  expect(await change()).toBe('3 delta.bundle.zip')
  await down()
  expect(isEqual()).toBe(true)
  up()
  expect(await change()).toBe('4 delta.bundle.thin')
  await down()
  expect(isEqual()).toBe(true)
  up()
  expect(await fill(8 * 24)).toBe('4 full.bundle.zip')
})

test('a receipt of another state, or one that cannot be read, lets the outbox send whole deltas', async () => {
  const { fill, change, down, up, out, inbox, troubles } = await link()
  await fill()
  await down()
  up()
  const [receipt = ''] = receiptsIn(out)
  copyFileSync(join(out, receipt), join(out, 'of-another-mirror.need'))
  expect(await change()).toBe('2 delta.bundle.thin')
  await down()
  up() // of one mirror alone
  expect(await change()).toBe('3 delta.bundle.zip')
  rmSync(join(out, 'of-another-mirror.need'))
  await down()
  up()
  writeFileSync(join(out, receipt), readFileSync(join(inbox, receipt)).subarray(0, 40))
  expect(troubles).toEqual([])
  expect(await change()).toBe('4 delta.bundle.zip')
  expect(troubles).toEqual([
    expect.stringMatching(/^outbox: the receipt .*\.need cannot be read \(.+\): remove it, or bring it again$/),
  ])
})

test('a mirror with more than the bundle, or a read-only inbox, writes no receipt', async () => {
  const { fill, down, inbox, there } = await link()
  await fill()
  await down()
  for (const name of receiptsIn(inbox)) rmSync(join(inbox, name))
  const last = there.store.ledger.readLastImport()
  const report = { digest: last?.digest ?? '', held: last?.digest ?? '' }
  expect(writeReceipt(inbox, there.store, { ...report, held: 'of more' })).toBe(false)
  expect(writeReceipt(join(inbox, 'done', 'none'), there.store, report)).toBe(false)
  expect(receiptsIn(inbox)).toEqual([])
  expect(writeReceipt(inbox, there.store, report)).toBe(true)
})
