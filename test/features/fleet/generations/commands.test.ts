import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { countChanges } from '../../../../src/features/fleet/generations/format/change-rows.ts'
import type { AdoptedRow } from '../../../../src/store/changes/log-adoption.ts'
import { beginRollback } from '../../../../src/features/fleet/generations/rollback-state.ts'
import { createFolderStore } from '../../../../src/features/fleet/objects/folder-store.ts'
import { keyPair } from '../../bundles/fixtures.ts'
import { folder } from '../../bundles/air-gap.ts'
import { commandHost } from '../../../support/hosted.ts'
import { createBench } from '../../../support/mirror.ts'
import { publish } from './nodes.ts'
import { longTest, test } from '../../../support/tables.ts'

const run = commandHost()

longTest('the commands of a fleet list its generations, go back, release and collect', async () => {
  const home = folder()
  const key = keyPair(home, 'key')
  const shared = join(home, 'store')
  mkdirSync(shared)
  const url = `file://${shared}`
  const store = createFolderStore(url)
  const bench = await createBench({
    dir: join(home, 'data'),
    sandbox: { records: 3, service: false },
  })
  const trust = { keys: [key], revoked: new Set<string>(), allowUnsigned: false, now: Date.now }
  const made = (isThin = false) =>
    publish(store, bench.dir, { keys: [key], trust, canTakeThin: () => Promise.resolve(isThin) })
  await bench.run('osv')
  await made()
  bench.sandbox.feed.change(1)
  await bench.run('osv')
  await made()
  bench.sandbox.feed.change(1)
  await bench.run('osv')
  await made(true)
  bench.sandbox.feed.change(2)
  await bench.run('osv') // never published: it is no difference of the rollback
  await bench.close()
  const env = {
    PATCHMIRROR_DATA_DIR: bench.dir,
    PATCHMIRROR_FLEET_URL: url,
    PATCHMIRROR_FLEET_ROLE: 'writer',
    PATCHMIRROR_BUNDLE_SIGNING_KEYS: key.path,
  }
  const command = async (...words: string[]): Promise<unknown> => {
    const { code, out, err } = await run(['fleet', ...words, '--json'], env, home)
    expect([code, err]).toEqual([0, ''])
    return JSON.parse(out)
  }
  expect((await run(['fleet', 'status', '--log'], env, home)).out).toMatch(
    /^generation +published +kind +names that differ .*\n3 +\S+Z +thin +\+0 -0 ~1 .*\n2 +\S+Z +delta +\+0 -0 ~1 .* \S+ \([\da-f]{8}\) \(epoch 1\)\n1 +\S+Z +full/,
  )
  expect(await command('rollback', '1')).toMatchObject({ generation: 4, reason: 'rollback', to: 1 })
  expect(existsSync(join(bench.dir, 'fleet', 'rollback.json'))).toBe(false)
  expect(await command('status', '--log', '--limit', '3')).toMatchObject({
    generations: [
      { generation: 4, kind: 'rollback', counts: { added: 0, removed: 0, changed: 2 } },
      { generation: 3, kind: 'thin', thin: [{ base: expect.any(String) as string }] },
      { generation: 2, kind: 'delta' },
    ],
  })
  expect(await command('rollback', '--end')).toEqual({ generation: 4, released: true })
  expect(await command('rollback', '--end')).toEqual({ generation: 4, released: false })
  beginRollback(bench.dir, 1) // as a killed command leaves it
  const ended = await run(['fleet', 'rollback', '--end'], env, home)
  expect(ended.out).toBe('the rollback that was begun here, and is not published, is given up\n')
  expect(await command('check', '--gc', '--dry-run')).toMatchObject({ deleted: [], planned: [], kept: 8 })
  const wrong = await run(['fleet', 'rollback', '7'], env, home)
  expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining('the newest is 4')])
})

test('the differences of a generation are counted once for each name, between its ends', () => {
  const row = (at: number, ...names: AdoptedRow['names']): AdoptedRow => ({
    id: at,
    source: 'osv',
    snapshot: `a${at}`,
    previous: `a${at - 1}`,
    sequence: at,
    publishedAt: 1,
    asOf: 1,
    records: 9,
    added: 9,
    changed: 9,
    removed: 9,
    complete: true,
    names,
  })
  const rows = [
    row(1, ['new', 'added'], ['both', 'added'], ['twice', 'changed'], ['gone', 'changed']),
    row(2, ['new', 'changed'], ['both', 'removed'], ['twice', 'changed'], ['gone', 'removed']),
  ]
  expect(countChanges(rows)).toEqual({ added: 1, removed: 1, changed: 1 })
  const back = { ...row(3, ['new', 'removed']), snapshot: 'a0' }
  expect(countChanges([...rows, back])).toEqual({ added: 0, removed: 0, changed: 0 })
  expect(countChanges([...rows, { ...row(3), complete: false }])).toBeNull()
})
