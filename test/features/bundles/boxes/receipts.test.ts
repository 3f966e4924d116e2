import { copyFileSync, cpSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { expect, onTestFinished } from 'vitest'
import { longTest, test } from '../../../support/tables.ts'
import type { Status } from '../../../../src/base/reports/status.ts'
import { BOXES, type BoxesStatus } from '../../../../src/base/reports/transfer.ts'
import { describeBoxes } from '../../../../src/cli/mirror/status/lines.ts'
import { type OutboxFile, fillOutbox, keptFiles } from '../../../../src/features/bundles/boxes/outbox.ts'
import { writeReceipt } from '../../../../src/features/bundles/boxes/receipts.ts'
import { startBoxesThread } from '../../../../src/features/bundles/boxes/thread.ts'
import { acquireLock } from '../../../../src/store/database/lock.ts'
import { openWriter } from '../../../../src/store/database/open.ts'
import { loadQuick } from '../../../support/limits.ts'
import { createBench } from '../../../support/mirror.ts'
import { faultsBy } from '../../../support/openapi.ts'
import { below, folder, signer } from '../air-gap.ts'
import { watch } from '../watched-inbox.ts'

const HOUR = 3_600_000

/** A mirror with an outbox, one below with an inbox, and the ways between them, which carry what a test has them carry. */
async function link() {
  let now = Date.now() - 1_000 * HOUR
  const bench = await createBench({ sandbox: { records: 400, service: false, now: () => now } })
  onTestFinished(() => bench.close())
  const there = below()
  const out = folder()
  const inbox = folder()
  const troubles: string[] = []
  const receipts: (string | null)[] = []
  const files: string[] = []
  /** Hours by which the clock of the outbox is wrong. */
  const clock = { ahead: 0 }
  const { look, settled, inbox: importer } = watch(inbox, there, { receipts: inbox })
  /** Runs when the outbox is read, before an export. */
  const meanwhile = { run: (): void => undefined }
  const sync = async (hours = 1): Promise<void> => {
    now += hours * HOUR
    await bench.run('osv')
  }
  const fill = async (hours = 1): Promise<string | null> => {
    await sync(hours)
    const shipped = await fillOutbox({
      settings: { keep: 5, fullDays: 7, expireDays: 0 },
      folder: out,
      dataDir: bench.dir,
      keys: [signer()],
      trustRoot: [],
      program: 'patchmirror/test',
      now: () => {
        meanwhile.run()
        return now + clock.ahead * HOUR
      },
      onTrouble: (message) => troubles.push(message),
    })
    if (shipped !== null) {
      files.push(shipped.file)
      receipts.push(shipped.receipts)
    }
    return shipped && `${shipped.sequence} ${shipped.file.replace(/^patchmirror-[\da-f]{8}-\d{8}-|\.dated-[^.]+/g, '')}`
  }
  return {
    out,
    inbox,
    there,
    troubles,
    receipts,
    files,
    clock,
    meanwhile,
    dir: bench.dir,
    settled,
    importer,
    fill,
    change: (): Promise<string | null> => {
      bench.sandbox.feed.change(3)
      return fill()
    },
    /** Changes what is mirrored, and fills no outbox. */
    changeAlone: (): Promise<void> => {
      bench.sandbox.feed.change(3)
      return sync()
    },
    /** Carries the newest file down, and what is in the inbox is imported. */
    down: async (looking = look): Promise<void> => {
      const newest = readdirSync(out)
        .filter((name) => name.startsWith('patchmirror-') && !name.endsWith('.need'))
        .sort((a, b) => statSync(join(out, a)).mtimeMs - statSync(join(out, b)).mtimeMs)
        .at(-1)
      if (newest !== undefined) copyFileSync(join(out, newest), join(inbox, newest))
      await looking()
    },
    /** Carries the receipts up. */
    up: (): void => {
      for (const name of receiptsIn(inbox)) copyFileSync(join(inbox, name), join(out, name))
    },
    isEqual: () => bench.store.carried.digestSources().digest === there.digest(),
  }
}

/** Returns a copy of a data folder. */
function copyOf(dir: string): string {
  const copy = join(folder(), 'copy')
  cpSync(dir, copy, { recursive: true })
  return copy
}

/** Returns what the first receipt in a folder says. */
function headerOf(path: string): { readonly digest: string } {
  const [receipt = ''] = receiptsIn(path)
  return JSON.parse(gunzipSync(readFileSync(join(path, receipt))).toString()) as { digest: string }
}

function receiptsIn(path: string): string[] {
  return readdirSync(path).filter((name) => name.endsWith('.need'))
}

longTest('an outbox with a receipt of what it sent last sends thin deltas, and whole ones without', async () => {
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

longTest('what a lost thin delta had is made good by the next one, which is whole', async () => {
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

longTest('a receipt of another state, or one that cannot be read, lets the outbox send whole deltas', async () => {
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

longTest('a receipt with the right digest decides nothing else, and one without sources is none', async () => {
  const { fill, change, down, up, out, troubles, isEqual } = await link()
  await fill()
  await down()
  up()
  const [receipt = ''] = receiptsIn(out)
  const forge = (more: object): void => {
    writeFileSync(join(out, receipt), gzipSync(`${JSON.stringify({ ...headerOf(out), ...more })}\n`))
  }
  forge({ sources: {}, brief: false })
  expect(await change()).toBe('2 delta.bundle.thin')
  await down()
  expect(isEqual()).toBe(true)
  up()
  forge({ sources: null })
  expect(await change()).toBe('3 delta.bundle.zip')
  expect(troubles).toEqual([expect.stringContaining('its first line is incomplete')])
})

/** Changes the database of a mirror as another process does. */
function alter(dir: string, sql: string): void {
  const db = openWriter(dir)
  try {
    db.exec(sql)
  } finally {
    db.close()
  }
}

longTest('a thin delta whose base is forgotten meanwhile is replaced by a whole one in the same attempt', async () => {
  const { fill, change, down, up, dir, meanwhile, troubles } = await link()
  await fill()
  await down()
  await change()
  await down()
  up()
  meanwhile.run = () => alter(dir, 'UPDATE bundle_export SET summary = NULL WHERE sequence = 2')
  expect(await change()).toBe('3 delta.bundle.zip')
  meanwhile.run = () => undefined
  expect(troubles).toEqual([
    expect.stringMatching(/^outbox: bundle 3 is whole: a thin one could not be made: 2 was exported, but/),
  ])
  expect(await change()).toBe('4 delta.bundle.zip')
  expect(troubles).toHaveLength(1)
})

longTest('a document that is damaged is in no delta of any form, and the failure names it', async () => {
  const { fill, change, down, up, dir, out, meanwhile, troubles } = await link()
  await fill()
  await down()
  up()
  meanwhile.run = () =>
    alter(dir, `UPDATE document SET body = X'${Buffer.from('no gzip'.padEnd(40, '\0')).toString('hex')}'`)
  await expect(change()).rejects.toThrow(
    '/external/osv/all.json is damaged on this mirror and is not exported: run "patchmirror doctor --data --repair"',
  )
  expect(troubles).toEqual([])
  expect(readdirSync(out).filter((name) => name.startsWith('.'))).toEqual([])
})

longTest('what fails a delta of any form stays the failure of its export', async () => {
  const { fill, change, down, up, dir, out, troubles } = await link()
  await fill()
  await down()
  up()
  const lock = acquireLock(dir, 'export')
  await expect(change()).rejects.toMatchObject({ code: 'locked' })
  lock.release()
  expect(troubles).toEqual([])
  expect(readdirSync(out).filter((name) => name.includes('delta'))).toEqual([])
  expect(await fill()).toBe('2 delta.bundle.thin')
})

/** Runs the thread of the daemon until it has filled an outbox; returns what it says of it. */
async function runThread(dir: string, out: string): Promise<BoxesStatus> {
  const { path: key } = signer() // another one would bring a full bundle
  const named = { PATCHMIRROR_DATA_DIR: dir, PATCHMIRROR_BUNDLE_OUTBOX: out, PATCHMIRROR_BUNDLE_SIGNING_KEYS: key }
  const env = { ...named, PATCHMIRROR_BUNDLE_FULL_DAYS: '90' } // the sandbox is weeks behind
  const none = (): void => undefined
  const told = { onSettled: none, onShipped: none, onFault: none }
  const thread = startBoxesThread({
    config: loadQuick({ cwd: dir, env }).config,
    version: 'test',
    offline: true,
    ...told,
  })
  await expect.poll(() => thread.status().outbox?.last ?? null).not.toBeNull()
  await thread.close()
  return thread.status()
}

longTest('the status says what receipts made of the last delta, and which of them', async () => {
  const { fill, change, changeAlone, down, up, out, inbox, dir, receipts, troubles } = await link()
  await fill()
  await down()
  await change()
  up()
  const [receipt = ''] = receiptsIn(out)
  copyFileSync(join(out, receipt), join(out, 'gone.need'))
  await change()
  await down()
  up()
  await change()
  for (const name of ['a', 'b', 'c']) copyFileSync(join(out, receipt), join(out, `${name}.need`))
  await change()
  rmSync(join(out, 'gone.need'))
  await down()
  for (const name of [receipt, 'a.need', 'b.need', 'c.need']) copyFileSync(join(inbox, receipt), join(out, name))
  await change()
  const other = { ...headerOf(out), digest: '0'.repeat(64) }
  writeFileSync(join(out, 'a.need'), gzipSync(`${JSON.stringify(other)}\n`))
  await change()
  expect(receipts).toEqual([
    null, // a full bundle
    null, // no receipt
    `whole: bundle 2 was sent last; the receipt gone.need names bundle 1, the receipt ${receipt} names bundle 1`,
    'whole: bundle 3 was sent last; the receipt gone.need names bundle 1',
    expect.stringMatching(/^whole: bundle 4 .+; the receipt gone\.need names bundle 1, .+ names bundle 3 and 2 more$/),
    'thin: 4 receipts name bundle 5, which was sent last',
    expect.stringMatching(/^whole: bundle 6 .+; the receipt a\.need names an unknown state, .+ bundle 5 and 1 more$/),
  ])
  expect(troubles).toEqual([])
  writeFileSync(join(out, 'a.need'), 'no receipt')
  await changeAlone()
  const boxes = await runThread(dir, out)
  expect(faultsBy(BOXES, boxes)).toEqual([])
  const [line = ''] = describeBoxes({ boxes } as Status)
  expect(line).toMatch(
    /^outbox: bundle 8 \(delta\) on .+, whole: the receipt \[outbox\]\/a\.need cannot be read \(.+\): remove it/,
  )
})

longTest('a target that was restored says so by its receipt, and gets a whole delta', async () => {
  const { fill, change, down, up, there, inbox } = await link()
  await fill()
  await down()
  up()
  there.store.checkpoint()
  const restored = below(copyOf(there.dir))
  await change()
  await down()
  up()
  const later = headerOf(inbox)
  expect(await fill(7)).toBe('2 delta.bundle.thin')
  const { look, inbox: importer } = watch(inbox, restored, { receipts: inbox })
  await down(look)
  expect(importer.status().waiting.map(({ why }) => why)).toEqual(['waiting for bundle 2, or a full one'])
  expect(headerOf(inbox)).not.toMatchObject({ digest: later.digest })
  up()
  expect(await fill(7)).toBe('2 delta.bundle.zip')
  await down(look)
  expect(restored.digest()).toBe(later.digest)
})

longTest(
  'an inbox that cannot be written to gets no receipt, and one of a mirror with more says what that has',
  async () => {
    const { fill, down, inbox, there } = await link()
    await fill()
    await down()
    const digest = there.store.ledger.readLastImport()?.digest ?? ''
    expect(headerOf(inbox)).toMatchObject({ digest, brief: true })
    for (const name of receiptsIn(inbox)) rmSync(join(inbox, name))
    expect(writeReceipt(join(inbox, 'done', 'none'), there.store, { digest, held: digest })).toBe(false)
    expect(writeReceipt(inbox, there.store, { digest, held: 'of more' })).toBe(true)
    expect(headerOf(inbox)).toMatchObject({ digest: there.digest() })
  },
)

longTest.each([20, 60, 300])('a clock that was %i hours ahead leaves an outbox that is filled again', async (ahead) => {
  const { fill, change, down, out, clock, files, isEqual } = await link()
  await fill()
  await down()
  clock.ahead = ahead
  await fill(7)
  clock.ahead = 0
  for (let i = 0; i < 2; i++) {
    expect(await fill(7)).toMatch(/^1 /)
    expect(readdirSync(out)).toContain(files.at(-1))
    await down()
  }
  expect(await fill(1)).toBeNull()
  await change()
  await down()
  expect(isEqual()).toBe(true)
  expect(new Set(files).size).toBe(files.length)
})

longTest('a clock that is far behind removes nothing from an outbox, and what it wrote is replaced', async () => {
  const { fill, change, down, out, clock, files, isEqual } = await link()
  await fill()
  await down()
  await change()
  const before = readdirSync(out)
  clock.ahead = -5_000
  await fill(7)
  expect(readdirSync(out)).toEqual(expect.arrayContaining(before))
  clock.ahead = 0
  await change()
  expect(readdirSync(out)).toContain(files.at(-1))
  await down()
  expect(isEqual()).toBe(true)
})

test('what leads to a thin delta that is kept is kept as well', () => {
  const file = (sequence: number, kind: 'full' | 'delta', isWhole = true): OutboxFile => {
    return { name: `${sequence}-${kind}${isWhole ? '' : '-thin'}`, sequence, kind, dated: '', isWhole }
  }
  const thin = [4, 5, 6].map((sequence) => file(sequence, 'delta', false))
  const files = [file(1, 'full'), file(2, 'delta'), file(3, 'delta'), ...thin]
  const kept = keptFiles(files, 1).map(({ name }) => name)
  expect(kept).toEqual(['1-full', '3-delta', '4-delta-thin', '5-delta-thin', '6-delta-thin'])
})
