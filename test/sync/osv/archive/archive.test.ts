import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import AdmZip from 'adm-zip'
import { describe, expect } from 'vitest'
import { type Bench, differences } from '../../../support/mirror.ts'
import { derivedDir } from '../../../../src/store/database/open.ts'
import { archiveOf, expectSound, synced } from '../../fixtures.ts'
import { bothTest, LONG, longTest, test } from '../../../support/tables.ts'

const UNZIP = spawnSync('unzip', ['-v']).status === 0

/** What two mirrors serve, in short. */
function state(made: Bench) {
  const id = made.store.snapshots.readSnapshot('osv')?.id
  return { id, archive: archiveOf(made), index: made.index() }
}

test('a superseded archive that cannot be deleted costs no snapshot, and other files stay', async () => {
  const made = await synced()
  const derived = derivedDir(made.dir)
  mkdirSync(join(derived, 'osv-0.zip')) // in place of a file
  const left = `dropped-osv-${'1'.repeat(32)}.zip`
  for (const name of [left, `${'x'.repeat(246)}.zip`]) writeFileSync(join(derived, name), '')
  made.sandbox.feed.change(3)
  const { state: end, facts } = await made.run('osv')
  expect([end, facts['notDeleted']]).toEqual(['complete', expect.stringContaining('osv-0.zip')])
  expect(archiveOf(made)).not.toBeNull()
  await expectSound(made.dir)
  expect(readdirSync(derived)).not.toContain(left)
  expect(readdirSync(derived)).toContain(`${'x'.repeat(246)}.zip`)
})

describe('the derived archive', () => {
  bothTest('is accepted by other programs, member for member', async () => {
    const made = await synced({ sandbox: { records: LONG ? 300 : 60 } })
    made.sandbox.feed.put('ü/漢字 100%', '{"id":"ü/漢字 100%","modified":"2026-05-01T00:00:00Z"}')
    await made.run('osv')
    const zip = new AdmZip(archiveOf(made) ?? undefined)
    expect(zip.getEntries().map(({ entryName }) => entryName)).toEqual(
      made.sandbox.feed
        .ids()
        .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
        .map((id) => `${id}.json`),
    )
    for (const entry of zip.getEntries())
      expect(entry.getData()).toEqual(made.sandbox.feed.record(entry.entryName.slice(0, -5)))
  })

  bothTest.skipIf(!UNZIP)('passes the test of unzip', async () => {
    const made = await synced({ sandbox: { records: LONG ? 300 : 60 } })
    const path = join(made.dir, 'derived', made.store.osv.readArchive()?.file ?? '')
    expect(execFileSync('unzip', ['-tq', path]).toString()).toContain('No errors detected')
  })

  longTest('is the same on two mirrors with the same history', async () => {
    const sandbox = { records: 150, now: () => Date.UTC(2026, 5, 1) }
    const now = sandbox.now
    const one = await synced({ sandbox, now })
    const two = await synced({ sandbox, now })
    for (const made of [one, two]) {
      made.sandbox.feed.change(7)
      await made.run('osv')
      made.sandbox.feed.changeSilently(7)
      await made.run('osv', { kind: 'reconcile' })
      made.sandbox.feed.remove(3)
      await made.run('osv')
      expect(differences(made)).toEqual([])
    }
    expect(state(one)).toEqual(state(two))
  })

  longTest('is the same for the same snapshot id, whatever happened between', async () => {
    const made = await synced({ sandbox: { records: 60, large: 0 } })
    const [id = ''] = made.sandbox.feed.ids()
    const content = made.sandbox.feed.record(id)
    const stamp = made.sandbox.feed.modified(id)
    const seen = new Map<string, Buffer | null>()
    for (let i = 0; i < 3; i++) {
      made.sandbox.feed.put(id, content, stamp)
      await made.run('osv', { kind: 'reconcile' })
      const { id: snapshot } = made.store.snapshots.readSnapshot('osv') ?? { id: '' }
      const archive = archiveOf(made)
      if (seen.has(snapshot)) expect(archive).toEqual(seen.get(snapshot))
      seen.set(snapshot, archive)
      made.sandbox.feed.put(id, `{"id":${JSON.stringify(id)},"n":${i}}`, stamp)
      await made.run('osv', { kind: 'reconcile' })
      expect(differences(made)).toEqual([])
    }
    expect(seen.size).toBeLessThan(3)
  })

  test('has a number that increases with each change and only then', async () => {
    const made = await synced({ sandbox: { records: 60, large: 0 } })
    const first = made.store.snapshots.readSnapshot('osv')
    await made.run('osv', { full: true })
    expect(made.store.snapshots.readSnapshot('osv')?.sequence).toBe(first?.sequence)
    made.sandbox.feed.change(1)
    await made.run('osv')
    expect(made.store.snapshots.readSnapshot('osv')?.sequence).toBe((first?.sequence ?? 0) + 1)
  })
})
