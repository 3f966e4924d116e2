import { expect, test } from 'vitest'
import { VEX_ARCHIVE, VEX_MANIFEST } from '../../../src/features/scanners/routes/vex.ts'
import { openViews } from '../../../src/features/scanners/store/reads.ts'
import { generationDir, readCurrentViews } from '../../../src/features/scanners/store/generations.ts'
import type { Writes } from '../../../src/store/writes.ts'
import { performTask } from '../../../src/features/scanners/views/task.ts'
import { catalogBench } from '../../support/catalog/mirror.ts'
import { type Reply, below, carry, comparable, folder, serveFolder } from '../../features/bundles/air-gap.ts'

/** Makes both kinds of views, as a daemon does after a snapshot. */
async function makeViews(dataDir: string): Promise<void> {
  for (const kind of ['osv', 'vex'] as const) await performTask({ dataDir, kind, vendors: ['Root'], rebuild: false })
}

/** Every path at which a mirror has something for scanners, and some at which it has nothing. */
function pathsOf(dataDir: string, store: Pick<Writes, 'osv'>): string[] {
  const views = openViews(generationDir(dataDir, readCurrentViews(dataDir, 'osv')?.name ?? ''))
  const ids = [...store.osv.eachPair()].map(([id]) => id)
  const paths = views.listViews().flatMap(({ name }) => {
    const held = ids.filter((id) => views.readViewRecord(name, id) !== null)
    const files = ['all.zip', 'modified_id.csv', ...held.map((id) => `${id}.json`), 'none.json']
    return files.map((file) => `/osv/${encodeURIComponent(name)}/${file}`)
  })
  views.close()
  const whole = ['ecosystems.txt', 'modified_id.csv', 'all.zip', 'ROOT/all.zip']
  return [...whole.map((name) => `/osv/${name}`), ...paths, VEX_ARCHIVE]
}

test('the views for scanners are equal on the source and target mirror, after a full bundle and after a delta', async () => {
  const bench = await catalogBench({ images: 2, tags: 4, packages: 3, tickets: 5 })
  for (const source of ['osv', 'catalog'] as const) await bench.run(source)
  await makeViews(bench.dir)
  const there = below()
  const box = folder()
  const same = async (): Promise<number> => {
    await makeViews(there.dir)
    const up = await serveFolder(bench.dir, bench.config)
    const down = await serveFolder(there.dir, there.config)
    const paths = pathsOf(bench.dir, bench.store)
    expect(pathsOf(there.dir, there.store)).toEqual(paths)
    for (const path of paths)
      for (const coding of ['gzip', 'identity']) {
        const one = await up(path, { 'accept-encoding': coding })
        const other = await down(path, { 'accept-encoding': coding })
        expect(one.status, path).toBe(/\/(ROOT\/|none\.)/.test(path) ? 404 : 200)
        expect(shown(other), path).toEqual(shown(one))
      }
    const manifest = await up(VEX_MANIFEST)
    const theirs = await down(VEX_MANIFEST)
    const withoutPort = ({ body }: Reply): string => body.toString().replace(/:\d+\//, '/')
    expect(withoutPort(theirs)).toBe(withoutPort(manifest))
    return paths.length
  }
  const full = await carry(bench.dir, box)
  await there.take(full.files)
  const before = await same()
  expect(before).toBeGreaterThan(20)
  bench.sandbox.feed.change(2)
  bench.sandbox.feed.remove(1)
  bench.sandbox.feed.add(2)
  await bench.run('osv')
  await makeViews(bench.dir) // goes on from the generation before
  const delta = await carry(bench.dir, box, { since: String(full.manifest.sequence) })
  expect(delta.manifest.kind).toBe('delta')
  await there.take(delta.files)
  expect(await same()).toBeGreaterThan(20)
})

function shown(reply: Reply): object {
  return { ...comparable(reply), derived: reply.headers['x-mirror-derived'] }
}
