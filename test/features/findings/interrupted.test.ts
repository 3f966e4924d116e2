import { renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { createViewsInUse } from '../../../src/features/scanners/routes/generation.ts'
import { sha256Hex } from '../../../src/base/digest.ts'
import type { DuringReads } from '../../../src/features/findings/judge/during.ts'
import { createPatched, followPatches } from '../../../src/features/findings/judge/patches.ts'
import { changedRecords, followRecords } from '../../../src/features/findings/judge/records.ts'
import { followTags } from '../../../src/features/findings/judge/tags.ts'
import { followVex } from '../../../src/features/findings/judge/vex-documents.ts'
import { createVexRules } from '../../../src/features/findings/judge/vex.ts'
import { Database } from '../../../src/store/database/sqlite.ts'
import { openFindings } from '../../../src/store/findings/database.ts'
import { createFindingsStore } from '../../../src/store/findings/writes.ts'
import { openShortReads } from '../../../src/store/reads.ts'
import {
  type FindingsBench,
  affecting,
  expectAgreement,
  openFindingsBench,
  readFindings,
  sbomOf,
  vexAbout,
} from './fixtures.ts'
import { longTest, test } from '../../support/tables.ts'

const PURL = 'pkg:npm/interrupted@1.0.0'
const CVE = 'CVE-2026-77001'
const RECORD = { ...affecting('npm', 'interrupted', null), aliases: [CVE] }
const RULED_OUT = vexAbout(CVE, [{ '@id': PURL }], 'not_affected')
const ELSEWHERE = vexAbout(CVE, [{ '@id': 'pkg:npm/other@1' }], 'not_affected')

/** A mirror whose tags with VEX have one package, about which there is a record. */
async function opened(vex: string) {
  const bench = await openFindingsBench()
  const { service } = bench.sandbox
  const tags = service.ids('tags').filter((id) => service.documents('tag', id, 'vex').length > 0)
  for (const tag of tags) {
    service.writeArtifact('tag', tag, 'sbom', sbomOf('app', PURL))
    service.writeArtifact('tag', tag, 'vex', vex)
  }
  await bench.crawl()
  await bench.publish({ 'T-1': RECORD })
  await bench.judge()
  return { bench, tags, service }
}

/** Judges with something done between the records and the tags. */
async function judgeWith({ dir }: FindingsBench, between: () => Promise<void>): Promise<void> {
  const reads = openShortReads(dir)
  if (reads === null) throw new Error('no database')
  const db = openFindings(dir, () => undefined)
  const inUse = createViewsInUse(dir, null, null)
  onTestFinished(() => [reads, db, inUse].forEach((one) => one.close()))
  const store = createFindingsStore(db)
  const now = Date.now()
  const views = inUse.current()
  const during: DuringReads = (work) => reads.during(() => work(reads.reads, reads.vex))
  const catalog = (await followVex({ store, during })) ?? ''
  const age = { isBack: false }
  const followed = { store, during, catalog, age, now }
  await followPatches(followed)
  const generation = basename(views.folder)
  const rules = createVexRules(followed)
  const input = { ...followed, views, generation, scope: null, rules, isPatched: createPatched(followed) }
  const changedBetween = (from: string, to: string) => during((one) => changedRecords(one, from, to))
  const isBackFrom = (): boolean => false
  const whyNotStored = () => null
  await followRecords({ ...input, changedBetween, isBackFrom, whyNotStored })
  await between()
  await followTags(input)
}

const suppressedIn = ({ dir }: FindingsBench, tag: string) =>
  readFindings(dir, (reads) => reads.readTag(tag)?.suppressed)
const isWhole = ({ dir }: FindingsBench) => readFindings(dir, (reads) => reads.isWhole())

test('VEX and patches of a catalog that is published during a judgement are applied by the next', async () => {
  const { bench, service, tags } = await opened(ELSEWHERE)
  const [tag = ''] = tags
  const [ticket = ''] = service.ids('tickets')
  await bench.publish({ 'T-2': RECORD })
  const publish = async (): Promise<void> => {
    service.writeArtifact('tag', tag, 'vex', RULED_OUT)
    const about = { cve_id: CVE, ecosystem: 'npm', package_src_name: 'interrupted' }
    service.change('tickets', ticket, { ...about, ticket_status: 'done' })
    await bench.crawl()
  }
  service.change('tickets', ticket, { ticket_status: 'open' })
  await bench.crawl()
  await expect(judgeWith(bench, publish)).rejects.toMatchObject({ code: 'locked' })
  await bench.judge()
  expect([suppressedIn(bench, tag), isWhole(bench)]).toEqual([2, true])
  await expectAgreement(bench)
})

longTest('a catalog that comes back after a judgement of the next one ended early is judged again', async () => {
  const { bench, service, tags } = await opened(ELSEWHERE)
  const { dir } = bench
  const database = join(dir, 'mirror.db')
  const before = new Database(database)
  before.exec(`VACUUM INTO '${database}.before'`)
  before.close()
  for (const tag of tags) service.writeArtifact('tag', tag, 'vex', RULED_OUT)
  await bench.crawl()
  const stop = () => Promise.reject(new Error('stopped'))
  await expect(judgeWith(bench, stop)).rejects.toThrow('stopped')
  expect(isWhole(bench)).toBe(false)
  for (const suffix of ['-wal', '-shm']) rmSync(database + suffix, { force: true })
  renameSync(`${database}.before`, database)
  await bench.judge()
  expect([suppressedIn(bench, tags[0] ?? ''), isWhole(bench)]).toEqual([0, true])
  await expectAgreement(bench)
})

longTest('a VEX document that is damaged for a time rules nothing out until it can be read again', async () => {
  const { bench, service, tags } = await opened(RULED_OUT)
  const [tag = ''] = tags
  expect(suppressedIn(bench, tag)).toBe(1)
  const db = new Database(join(bench.dir, 'mirror.db'))
  onTestFinished(() => void db.close())
  db.exec('CREATE TEMP TABLE kept AS SELECT * FROM catalog_chunk')
  const some = `digest = '${sha256Hex(RULED_OUT)}'`
  db.exec(`UPDATE catalog_chunk SET bytes = x'00' WHERE ${some}`)
  await bench.publish({ 'T-2': RECORD })
  await bench.judge()
  expect([suppressedIn(bench, tag), isWhole(bench)]).toEqual([0, true])
  await expectAgreement(bench)
  db.exec(`UPDATE catalog_chunk SET bytes = (SELECT k.bytes FROM kept k WHERE k.digest = catalog_chunk.digest
    AND k.number = catalog_chunk.number) WHERE ${some}`)
  service.addTicket()
  await bench.crawl()
  await bench.judge()
  expect(suppressedIn(bench, tag)).toBe(2)
  await expectAgreement(bench)
})
