import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { derivedDir } from '../../src/store/database/open.ts'
import { openWrites } from '../../src/store/writer.ts'
import { buildArchive } from '../../src/archive/build.ts'
import { type DaemonProcess, startDaemon, took } from './daemon.ts'
import type { Ingest } from './ingest.ts'
import type { SandboxProcess } from './processes.ts'
import { type Line, median, megabytes, ratioLine, seconds } from './table.ts'

/** What a run costs when nothing, little, or something silent has changed, on a mirror that holds it all. */
export async function benchChanges(sandbox: SandboxProcess, cold: Ingest): Promise<Line[]> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-changes-'))
  const daemon = await startDaemon(sandbox.url, dir)
  try {
    await daemon.run('feeds')
    await daemon.run('osv')
    const lines = [
      await unchanged(daemon),
      ...(await changed(sandbox, daemon, cold)),
      await reconcile(sandbox, daemon),
    ]
    await daemon.run('osv')
    const restarted = await restart(sandbox, daemon)
    return [...lines, restarted, await rebuild(dir)]
  } finally {
    await daemon.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Every row of every table but the run log, counted by what SQLite says has changed. */
async function unchanged(daemon: DaemonProcess): Promise<Line> {
  const before = digest(daemon.dir)
  const osv = await daemon.run('osv')
  const feeds = await daemon.run('feeds')
  const same = digest(daemon.dir) === before
  const requests = Number(osv.facts['requests']) + Number(feeds.facts['requests'])
  return {
    work: 'unchanged sync of osv and three feeds',
    against: '',
    figure: `${requests} requests, ${same ? '0' : 'some'} rows of data written, ${seconds(took(osv))}`,
    goal: '1 request per feed, 0 rows',
    met: requests === 4 && same,
  }
}

function digest(dir: string): string {
  const db = new Database(join(dir, 'mirror.db'), { readonly: true })
  try {
    const parts = [
      'snapshot',
      'document',
      'upstream_state',
      'osv_archive',
      'osv_tombstone',
      'quarantine',
    ].map((table) => db.prepare(`SELECT * FROM ${table}`).raw().all())
    const records = db
      .prepare('SELECT count(*), sum(changed), max(body) FROM osv_record')
      .raw()
      .get()
    return JSON.stringify([parts, records])
  } finally {
    db.close()
  }
}

async function changed(
  sandbox: SandboxProcess,
  daemon: DaemonProcess,
  cold: Ingest,
): Promise<Line[]> {
  const times: number[] = []
  let requests = 0
  for (let round = 0; round < 3; round++) {
    await sandbox.command('change', 100)
    const run = await daemon.run('osv')
    times.push(took(run))
    requests = Number(run.facts['requests'])
  }
  const ms = median(times)
  const detail = `${seconds(ms)} to ${seconds(cold.ms)}`
  const work = '100 changed of 100,000'
  return [
    ratioLine(work, 'the cold ingest', ms / cold.ms, 0.05, detail),
    { work, against: '', figure: `${requests} requests`, goal: '≤ 102', met: requests <= 102 },
  ]
}

async function reconcile(sandbox: SandboxProcess, daemon: DaemonProcess): Promise<Line> {
  await sandbox.command('change-silently', 100)
  const { facts } = await daemon.run('osv', 'reconcile')
  const whole = Number(facts['archiveBytes'])
  const fetched = whole - Number(facts['savedBytes'])
  const detail = `${megabytes(fetched)} of ${megabytes(whole)}, ${String(facts['silentChanges'])} found`
  return ratioLine(
    'reconcile with 100 silent changes in 100,000',
    "the archive's bytes",
    fetched / whole,
    0.12,
    detail,
  )
}

async function restart(sandbox: SandboxProcess, daemon: DaemonProcess): Promise<Line> {
  const { dir } = daemon
  await daemon.stop()
  const again = await startDaemon(sandbox.url, dir)
  const answer = await fetch(`${again.url}/-/ready`)
  await again.stop()
  return {
    work: 'start to ready with 100,000 records',
    against: '',
    figure: `${Math.round(again.startMs)} ms, ${answer.ok ? 'ready' : 'not ready'}`,
    goal: 'figure',
    met: null,
  }
}

/** In this process, as the sync thread does it, against reading the same rows. */
async function rebuild(dir: string): Promise<Line> {
  const store = openWrites(dir)
  try {
    const reading: number[] = []
    const building: number[] = []
    for (let round = 0; round < 5; round++) {
      let started = performance.now()
      let bytes = 0
      for (const [, , , body] of store.osv.eachContent()) bytes += body.length
      reading.push(performance.now() - started)
      if (bytes === 0) throw new Error('nothing was read')
      started = performance.now()
      await Promise.resolve(buildArchive(store.osv, derivedDir(dir), () => true))
      building.push(performance.now() - started)
    }
    const size = statSync(join(derivedDir(dir), store.osv.readArchive()?.file ?? '')).size
    const ratio = median(building) / median(reading)
    const detail = `${seconds(median(building))} to ${seconds(median(reading))}, ${megabytes(size)}`
    return ratioLine(
      'rebuild of all.zip, 100,000 records',
      'reading the stored bytes',
      ratio,
      2,
      detail,
    )
  } finally {
    store.close()
  }
}
