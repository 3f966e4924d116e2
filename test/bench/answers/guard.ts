import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { databasePath } from '../../../src/store/database/open.ts'
import { type DaemonProcess, startDaemon } from '../world/daemon.ts'
import type { SandboxProcess } from '../world/processes.ts'

/** Records that change in each round. */
export const CHANGED = 100
const ROUNDS = 8

/** The processor time of the same syncs with and without the guard, milliseconds, and what the first folder then stores. */
export interface Guarded {
  readonly onMs: number
  readonly offMs: number
  readonly stored: Stored
}

/** Bytes in `mirror.db`, and of how many superseded versions and records. */
export interface Stored {
  readonly versions: number
  readonly versionBytes: number
  readonly records: number
  readonly dateBytes: number
}

/** Nothing but the sync uses the processor. */
const SYNC_ALONE = {
  PATCHMIRROR_VIEWS_SERVE: ',',
}

/** Syncs the same changes into a mirror with the guard and one without, in turn. */
export async function compareGuard(sandbox: SandboxProcess): Promise<Guarded> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-guard-'))
  const on = await startDaemon(sandbox.url, join(dir, 'on'), SYNC_ALONE)
  const off = await startDaemon(sandbox.url, join(dir, 'off'), {
    ...SYNC_ALONE,
    PATCHMIRROR_GUARD_MODE: 'off',
  })
  try {
    await on.run('osv')
    await off.run('osv')
    let onMs = 0
    let offMs = 0
    for (let round = 0; round <= ROUNDS; round++) {
      await sandbox.command('change', CHANGED)
      const isFirst = round % 2 === 0
      const before = isFirst ? await cost(on) : 0
      const without = await cost(off)
      const guarded = isFirst ? before : await cost(on)
      if (round === 0) continue // loads what the first changes need
      onMs += guarded
      offMs += without
    }
    return { onMs: onMs / ROUNDS, offMs: offMs / ROUNDS, stored: storedIn(join(dir, 'on')) }
  } finally {
    await on.stop()
    await off.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Processor time of one sync, milliseconds: not a number where the system does not say it. */
async function cost(daemon: DaemonProcess): Promise<number> {
  const before = daemon.usage()?.cpuMs ?? Number.NaN
  await daemon.run('osv')
  return (daemon.usage()?.cpuMs ?? Number.NaN) - before
}

function storedIn(dir: string): Stored {
  const db = new Database(databasePath(dir), { readonly: true })
  const pages = (table: string): number =>
    Number(
      db
        .prepare('SELECT sum(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_schema WHERE tbl_name = ?)')
        .pluck()
        .get(table),
    )
  const number = (sql: string): number => Number(db.prepare(sql).pluck().get())
  try {
    const bodies = number('SELECT sum(length(bytes)) FROM osv_body WHERE rowid IN (SELECT body FROM osv_superseded)')
    return {
      versions: number('SELECT count(*) FROM osv_superseded'),
      versionBytes: bodies + pages('osv_superseded'),
      records: number('SELECT count(*) FROM osv_dates'),
      dateBytes: pages('osv_dates'),
    }
  } finally {
    db.close()
  }
}
