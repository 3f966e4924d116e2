import { copyFileSync, cpSync, existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import { join } from 'node:path'
import { expect } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { performFindings } from '../../../src/features/findings/task.ts'
import { derivedVendors } from '../../../src/features/scanners/views/osv/ecosystems.ts'
import { performTask } from '../../../src/features/scanners/views/task.ts'
import { findingsPath } from '../../../src/store/findings/database.ts'
import { announce } from '../../../src/store/changes/message.ts'
import { commandHost } from '../../support/hosted.ts'
import { below, carry, folder } from '../bundles/air-gap.ts'
import { affecting, openFindingsBench, readFindings } from './fixtures.ts'

const run = commandHost()
const HOUR_MS = 3_600_000
const OLDER = ' (the mirror went back to older data)'

const sbomOf = (...purls: readonly string[]): string => {
  const components = purls.map((purl) => ({ type: 'library', name: 'a', purl }))
  return JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.6', components })
}

const logOf = (dir: string) =>
  readFindings(dir, (reads) => reads.listLog(0, 100)).map(({ cause, found, gone }) => [cause, found, gone])

/** A mirror with one tag, and what brings it to another state: the records, and the packages of its SBOM. */
async function openTag() {
  const bench = await openFindingsBench({ images: 1, tags: 1 })
  const [tag = ''] = bench.sandbox.service.ids('tags')
  const list = async (...purls: readonly string[]): Promise<void> => {
    bench.sandbox.service.writeArtifact('tag', tag, 'sbom', sbomOf(...purls))
    await bench.crawl()
  }
  await list('pkg:npm/one@1.0.0')
  await bench.publish({ 'T-1': affecting('npm', 'one', '9.0.0'), 'T-2': affecting('npm', 'two', '9.0.0') })
  return { bench, list }
}

longTest(
  'findings that go by the import of an older bundle are of the cause rollback, whether by records or an SBOM',
  async () => {
    const { bench, list } = await openTag()
    const older = await carry(bench.dir, folder())
    await bench.publish({ 'T-3': affecting('npm', 'one', '9.0.0') })
    await list('pkg:npm/one@1.0.0', 'pkg:npm/two@1.0.0')
    const newer = await carry(bench.dir, folder())
    const there = below()
    const { dir, config } = there
    const bring = async ({ files }: typeof older, allowRollback = false): Promise<void> => {
      await there.take(files, { allowRollback })
      await performTask({ dataDir: dir, kind: 'osv', vendors: derivedVendors(config.views), rebuild: false })
    }
    const judge = () => performFindings({ dataDir: dir, served: null, keepDays: 30 })
    const ask = async (...words: string[]) => (await run(words, { PATCHMIRROR_DATA_DIR: dir }, dir)).out
    await bring(newer)
    await judge()
    expect(await ask('changes')).not.toContain('older data')

    await bring(older, true)
    expect(await ask('list', 'findings')).toContain('; another snapshot is mirrored')
    const row = there.store.changes.readLatestLogged('osv')
    expect(row && announce(there.store, row).left).toEqual({ count: 1, cause: 'rollback' })
    await judge()
    expect(logOf(dir)).toEqual([
      ['rollback', 0, 1],
      ['rollback', 0, 1],
    ])
    const findings = await ask('changes', '--findings')
    expect(findings.match(/1 finding gone.*/g)).toEqual([`1 finding gone${OLDER}`, `1 finding gone${OLDER}`])
    const records = await ask('changes')
    expect(records).toContain('\nthe mirror went back to older data: what is removed or undone here is not known')
    expect(records).toMatch(/T-3\n? .*record removed from this mirror: it went back to older data/s)

    await bring(newer)
    await judge()
    expect(logOf(dir).slice(2)).toEqual([
      ['records', 1, 0],
      ['sbom', 1, 0],
    ])
    expect(await ask('changes')).not.toContain('older data')
  },
)

test('findings that go by a backup, restored beside the findings of newer data, are of the cause rollback', async () => {
  const { bench } = await openTag()
  const dir = folder()
  bench.store.checkpoint()
  const db = new Database(join(bench.dir, 'mirror.db'))
  db.prepare('VACUUM INTO ?').run(join(dir, 'mirror.db'))
  db.close()
  cpSync(join(bench.dir, 'derived'), join(dir, 'derived'), { recursive: true })
  await bench.judge()
  await bench.publish({ 'T-3': affecting('npm', 'one', '9.0.0') })
  await bench.judge()
  const restored = new Database(join(dir, 'mirror.db'))
  restored.prepare('UPDATE snapshot SET as_of = as_of - ?').run(HOUR_MS) // made an hour before
  restored.close()
  for (const name of ['findings.db', 'findings.db-wal'].filter((one) => existsSync(join(bench.dir, 'derived', one))))
    copyFileSync(join(bench.dir, 'derived', name), join(dir, 'derived', name))
  const vendors = derivedVendors(bench.config.views)
  await performTask({ dataDir: dir, kind: 'osv', vendors, rebuild: true })
  await performFindings({ dataDir: dir, served: null, keepDays: 30 })
  expect(logOf(dir)).toEqual([
    ['records', 1, 0],
    ['rollback', 0, 1],
  ])
})

longTest('a fix that goes because the list of patches is an older one is of the cause rollback', async () => {
  const { bench } = await openTag()
  const { dir, sandbox } = bench
  const ticket = sandbox.service.addTicket()
  const set = async (status: string): Promise<void> => {
    const about = { cve_id: 'CVE-2026-1', ecosystem: 'npm', package_src_name: 'one', ticket_status: status }
    sandbox.service.change('tickets', ticket, about)
    await bench.crawl()
  }
  await bench.publish({ 'CVE-2026-1': affecting('npm', 'one', null) })
  await set('done')
  await bench.judge()
  const db = new Database(findingsPath(dir))
  const later = db.prepare("UPDATE followed SET state = state + ? WHERE name = 'catalogAsOf'").run(HOUR_MS)
  db.pragma('application_id = 0') // as long as it is being written
  db.close()
  expect(later.changes).toBe(1)
  await set('in_progress')
  await bench.judge()
  const logged = readFindings(dir, (reads) => reads.listLog(0, 100))
  expect(logged).toMatchObject([{ cause: 'rollback', fixesGone: 1 }])
})
