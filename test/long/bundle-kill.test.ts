import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createReads } from '../../src/store/reads.ts'
import { openReader } from '../../src/store/database/open.ts'
import { isSoundVerdict } from '../../src/sync/verify/report.ts'
import { verifyStore } from '../../src/sync/verify/verify.ts'
import { below, carry, folder, openBelow, signer } from '../features/bundles/air-gap.ts'
import { catalogBench } from '../support/catalog/mirror.ts'
import { run, start } from '../support/command.ts'

const LOOPS = 40

test('killed at any moment, an import has done nothing or all of it, and the next one completes', async () => {
  const above = await catalogBench({ images: 6, tags: 30, packages: 10, tickets: 20 }, { sandbox: { records: 3000 } })
  for (const source of ['feeds', 'osv', 'catalog'] as const) await above.run(source)
  const media = folder()
  const first = await carry(above.dir, media)
  const { feed, service } = above.sandbox
  feed.change(800)
  feed.remove(100)
  feed.add(100)
  for (const tag of service.ids('tags').slice(0, 10)) service.rotateArtifact('tag', tag, 'sbom')
  service.addTag()
  for (const source of ['osv', 'catalog'] as const) await above.run(source)
  const delta = await carry(above.dir, media, { since: '1' })
  const full = await carry(above.dir, media)
  const held = below()
  await held.take(first.files)
  held.store.close()
  const work = join(media, 'work')
  const env = { PATCHMIRROR_DATA_DIR: work, PATCHMIRROR_BUNDLE_TRUSTED_KEYS: signer().line }
  const states = new Set<string>()
  let killed = 0
  let whole = Infinity // the shortest complete import so far, milliseconds
  const completed = (begun: number): void => void (whole = Math.min(whole, performance.now() - begun))
  for (let loop = 0; loop < LOOPS; loop++) {
    const before = loop % 4 === 3 ? null : first
    const { files, manifest } = loop % 2 ? full : delta
    rmSync(work, { recursive: true, force: true })
    if (before !== null) cpSync(held.dir, work, { recursive: true })
    if (loop === 0) {
      const begun = performance.now()
      expect((await run(['bundle', 'import', ...files], env, media)).code).toBe(0)
      completed(begun)
    } else {
      const { child, finished } = start(['bundle', 'import', ...files], env, media)
      await pause(whole * (0.1 + 0.9 * Math.random()))
      if (child.kill('SIGKILL')) killed++
      await finished
    }
    const digest = digestIn(work)
    states.add(digest === manifest.digest ? 'all of it' : 'nothing')
    expect([manifest.digest, before?.manifest.digest ?? 'none']).toContain(digest)
    const begun = performance.now()
    const again = await run(['bundle', 'import', '--json', ...files], env, media)
    if (digest !== manifest.digest) completed(begun)
    expect(again.code, again.err).toBe(0)
    expect(digestIn(work)).toBe(manifest.digest)
    const db = openReader(work)
    if (db === null) throw new Error('no database')
    expect(isSoundVerdict(await verifyStore(db, work))).toBe(true)
    expect(createReads(db).runs.readLatestRun('osv')?.state).toBe('complete')
    db.close()
  }
  expect(killed).toBeGreaterThan(LOOPS / 3)
  expect([...states].sort()).toEqual(['all of it', 'nothing'])
})

/** What a reader finds; `none` where nothing is held. */
function digestIn(dir: string): string {
  const db = openReader(dir)
  db?.close()
  if (db === null) return 'none'
  const { store, ...there } = openBelow(dir)
  const digest = store.carried.listStoredSources().length === 0 ? 'none' : there.digest()
  store.close()
  return digest
}
