import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createFolderStore } from '../../../src/fleet/objects/folder-store.ts'
import { keyPair } from '../../bundle/fixtures.ts'
import { folder } from '../../bundle/air-gap.ts'
import { commandHost } from '../../support/hosted.ts'
import { createBench } from '../../support/mirror.ts'
import { publish } from './nodes.ts'

const run = commandHost()

test('the commands of a fleet list its generations, go back, release and collect', async () => {
  const home = folder()
  const key = keyPair(home, 'key')
  const shared = join(home, 'store')
  mkdirSync(shared)
  const url = `file://${shared}`
  const store = createFolderStore(url)
  const bench = await createBench({
    ...{ dir: join(home, 'data'), sandbox: { records: 3, service: false } },
  })
  const trust = { keys: [key], revoked: new Set<string>(), allowUnsigned: false, now: Date.now }
  const made = () => publish(store, bench.dir, { keys: [key], trust })
  await bench.run('osv')
  await made()
  bench.sandbox.feed.change(1)
  await bench.run('osv')
  await made()
  await bench.close()
  const env = {
    ...{ PATCHMIRROR_DATA_DIR: bench.dir, PATCHMIRROR_FLEET_URL: url },
    ...{ PATCHMIRROR_FLEET_ROLE: 'writer', PATCHMIRROR_BUNDLE_SIGNING_KEYS: key.path },
  }
  const command = async (...words: string[]): Promise<unknown> => {
    const { code, out, err } = await run(['fleet', ...words, '--json'], env, home)
    expect([code, err]).toEqual([0, ''])
    return JSON.parse(out)
  }
  expect((await run(['fleet', 'log'], env, home)).out).toMatch(
    /^ {5}2 {2}\S+Z {2}delta {5}\+0 -0 ~1 .*epoch 1\)\n {5}1 {2}\S+Z {2}full/,
  )
  expect(await command('rollback', '1')).toMatchObject({ generation: 3, reason: 'rollback', to: 1 })
  expect(existsSync(join(bench.dir, 'fleet', 'rollback.json'))).toBe(false)
  expect(await command('log', '--limit', '2')).toMatchObject({
    generations: [
      { generation: 3, kind: 'rollback', counts: { added: 0, removed: 0, changed: 1 } },
      { generation: 2, kind: 'delta' },
    ],
  })
  expect(await command('release')).toEqual({ generation: 3, released: true })
  expect(await command('release')).toEqual({ generation: 3, released: false })
  expect(await command('gc', '--dry-run')).toMatchObject({ deleted: [], planned: [], kept: 6 })
  const wrong = await run(['fleet', 'rollback', '7'], env, home)
  expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('the newest is 3')])
})
