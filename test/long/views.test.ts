import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { generateRecord } from '../sandbox/feed/generate.ts'
import { createRandom } from '../sandbox/feed/random.ts'
import { createReads } from '../../src/store/reads.ts'
import { openReader } from '../../src/store/database/open.ts'
import { readCurrentViews, generationDir } from '../../src/features/scanners/store/generations.ts'
import { openViews } from '../../src/features/scanners/store/reads.ts'
import { FILLED_AT } from '../support/filled-store.ts'
import { run, start } from '../support/command.ts'
import { assetsOf, closeBenches, openBench } from '../features/scanners/views/fixtures.ts'

afterEach(closeBenches)

const ROUNDS = 20
const DAY = 86_400_000

/** A feed of some thousand records, of which a few differ each day. */
function feedOf(day: number): Record<string, Buffer> {
  const records: Record<string, Buffer> = {}
  for (let i = 0; i < 3000; i++) {
    const at = i % 97 === day % 97 ? FILLED_AT + day * DAY : FILLED_AT
    const { id, bytes } = generateRecord({ seed: 5, at }, i)
    records[id] = bytes
  }
  return records
}

test('killed at any moment, the making of views leaves whole ones of one snapshot, and goes on', async () => {
  const random = createRandom(11, 1)
  const bench = openBench()
  const target = mkdtempSync(join(tmpdir(), 'patchmirror-killed-'))
  const env = { PATCHMIRROR_DATA_DIR: bench.dir }
  const command = ['export-db', 'osv-scanner', target]
  const published = new Set<string>()
  for (let round = 0; round < ROUNDS; round++) {
    bench.store.publishOsv(feedOf(round), FILLED_AT + round * DAY)
    published.add(snapshotOf(bench.dir))
    const { child, finished } = start(command, env, target)
    await setTimeout(200 + random.int(1500)) // anywhere between its start and its end
    child.kill('SIGKILL')
    await finished
    const current = readCurrentViews(bench.dir, 'osv')
    if (current === null) continue
    const views = openViews(generationDir(bench.dir, current.name))
    expect(published).toContain(views.info.snapshot)
    expect(Object.values(assetsOf(views))).not.toContain('missing')
    views.close()
  }
  expect(await run(command, env, target)).toMatchObject({ code: 0 })
  const whole = openBench()
  whole.store.publishOsv(feedOf(ROUNDS - 1), FILLED_AT + (ROUNDS - 1) * DAY)
  await whole.make()
  const other = assetsOf(whole.open())
  expect(assetsOf(bench.open())).toEqual(other)
  expect((await run(command, env, target)).out).toMatch(/: 0 written, \d+ as they were, 0 removed/)
  rmSync(target, { recursive: true, force: true })
}, 300_000)

function snapshotOf(dir: string): string {
  const db = openReader(dir)
  const id = db === null ? '' : (createReads(db).snapshots.readSnapshot('osv')?.id ?? '')
  db?.close()
  return id
}
