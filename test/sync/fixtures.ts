import { NO_CATALOG, type VerifyReport } from '../../src/sync/verify/report.ts'
import { verifyStore } from '../../src/sync/verify/verify.ts'
import { createHash } from 'node:crypto'
import { createReadStream, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import AdmZip from 'adm-zip'
import Database from 'better-sqlite3'
import { expect, onTestFinished } from 'vitest'
import { openReader } from '../../src/store/database/open.ts'
import { contentOf } from '../../src/store/database/gzip.ts'
import type { Reads } from '../../src/store/reads.ts'
import type { Fault } from '../sandbox/faults/fault.ts'
import type { Run } from '../../src/store/runs/runs.ts'
import type { RunRequest } from '../../src/sync/context.ts'
import { copyFilledFolder } from '../support/filled-folder.ts'
import { type Bench, type BenchOptions, createBench, differences } from '../support/mirror.ts'

export const INDEX = '/external/osv/all.json'
export const ARCHIVE = '/external/osv/all.zip'
export const RECORDS = /\/external\/osv\/(?!all\.)[^/]+\.json$/
export const PATCH_FEED = '/external/patch_feed'
export const CVE_FEED = '/external/cve_feed'
export const MATRIX = '/external/globals/sys_matrix'

/** A bench that is closed when the test ends. */
export async function bench(options: BenchOptions = {}): Promise<Bench> {
  const made = await createBench(options)
  onTestFinished(() => made.close())
  return made
}

/**
 * A bench whose first sync is done; its request log is empty. With a clock of its own, that sync runs for it; else it gets a
 * copy of the folder that such a sync left earlier in this process.
 */
export async function synced(options: BenchOptions = {}): Promise<Bench> {
  const { now, dir, onProgress: _progress, limits: _limits, ...origin } = options
  if (now === undefined && dir === undefined) return bench({ ...options, dir: await copyFilledFolder(origin, ['osv']) })
  const made = await bench(options)
  expect(await made.run('osv')).toMatchObject({ state: 'complete' })
  expect(differences(made)).toEqual([])
  made.sandbox.requests.clear()
  return made
}

/**
 * A run that meets `fault`. Only a stall needs a short deadline, which `timeoutMs` then sets for this run alone: ample,
 * where the run has other requests that must succeed on a machine under load.
 */
export function runMeeting(
  made: Bench,
  source: RunRequest['source'],
  fault: Fault,
  { timeoutMs = 300, retries = 0 } = {},
): Promise<Run> {
  if (fault.kind !== 'stall') return made.run(source)
  const env = {
    LIMIT_UPSTREAM_REQUEST_TIMEOUT_MS: String(timeoutMs),
    LIMIT_UPSTREAM_RETRIES: String(retries),
  }
  return made.runWith(env, source)
}

/** A clock for `now` that changes only by `pass`. Unix milliseconds. */
export function createClock(start = Date.UTC(2026, 5, 1)) {
  let time = start
  return {
    now: () => time,
    pass: (ms: number) => {
      time += ms
    },
  }
}

export const DAY = 86_400_000

/** A digest of every table but the run log and the dates of confirmations: equal means that nothing else was written. */
export function contentsOf(dir: string): Record<string, string> {
  const db = new Database(join(dir, 'mirror.db'), { readonly: true })
  try {
    const names = db
      .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
      .pluck()
      .all()
    const digests: Record<string, string> = {}
    for (const name of names.filter((table) => table !== 'run' && !table.startsWith('sqlite_'))) {
      const digest = createHash('sha256')
      const columns = db
        .prepare<[string], string>("SELECT name FROM pragma_table_info(?) WHERE name <> 'confirmed_at'")
        .pluck()
        .all(name)
      const sql = `SELECT ${columns.map((one) => `"${one}"`).join(', ')} FROM ${name} ORDER BY 1`
      for (const row of db.prepare(sql).raw().iterate())
        for (const value of row as unknown[]) digest.update(Buffer.isBuffer(value) ? value : String(value)).update('\0')
      digests[name] = digest.digest('hex')
    }
    return digests
  } finally {
    db.close()
  }
}

/** Runs SQL on a connection of its own, as someone with a shell would. */
export function tamper(dir: string, sql: string, ...values: unknown[]): void {
  const db = new Database(join(dir, 'mirror.db'))
  db.prepare(sql).run(...values)
  db.close()
}

export async function verify(dir: string): Promise<VerifyReport> {
  const db = openReader(dir)
  if (db === null) throw new Error('there is no database')
  try {
    return await verifyStore(db, dir)
  } finally {
    db.close()
  }
}

export async function expectSound(dir: string): Promise<void> {
  const { records: _count, sources: _sources, ...findings } = await verify(dir)
  expect(findings).toEqual({
    structure: [],
    damagedRecords: [],
    damagedVersions: [],
    damagedDocuments: [],
    catalog: NO_CATALOG,
    disagreements: [],
  })
}

/** The derived archive's bytes; null before the first publication. */
export function archiveOf({ store, dir }: Pick<Bench, 'store' | 'dir'>): Buffer | null {
  const info = store.osv.readArchive()
  return info === null ? null : readFileSync(join(dir, 'derived', info.file))
}

/** Returns how index, records and archive of one snapshot disagree; the archive is read by another program's reader. */
export function disagreements(reads: Reads, dir: string): string[] {
  const document = reads.feeds.readDocument(INDEX)
  const info = reads.osv.readArchive()
  const snapshot = reads.snapshots.readSnapshot('osv')
  const body = document?.body ?? null
  if (document === null || body === null || info === null || snapshot === null) {
    return reads.osv.countRecords() === 0 ? [] : ['records without an index']
  }
  const path = join(dir, 'derived', info.file)
  if (!existsSync(path)) return [`${info.file} is gone`]
  const index = contentOf(body, document.size).toString()
  const listed = new Map((JSON.parse(index) as { id: string; modified: string }[]).map((e) => [e.id, e.modified]))
  const found: string[] = []
  const members = new AdmZip(path).getEntries()
  if (members.length !== listed.size || reads.osv.countRecords() !== listed.size)
    found.push(`${listed.size} listed, ${reads.osv.countRecords()} stored, ${members.length} members`)
  if (snapshot.records !== listed.size) found.push('the snapshot counts otherwise')
  for (const member of members) {
    const id = member.entryName.replace(/\.json$/, '')
    const record = reads.osv.readRecord(id)
    if (!listed.has(id)) found.push(`${id} is not listed`)
    if (record === null || !contentOf(record.body, record.size).equals(member.getData())) found.push(`${id} differs`)
    if (reads.osv.readEntry(id)?.modified !== listed.get(id)) found.push(`${id} has another date`)
  }
  return found
}

/** Checks that the stored index, records and archive agree. */
export function expectAgreement({ store, dir }: Bench): void {
  expect(disagreements(store, dir)).toEqual([])
}

export async function digestOf(path: string): Promise<string> {
  const digest = createHash('sha256')
  for await (const chunk of createReadStream(path)) digest.update(chunk as Buffer)
  return digest.digest('hex')
}

/** The parts of a report that a test compares. */
export function told({ state, code }: Run): { state: string; code: string | null } {
  return { state, code }
}
