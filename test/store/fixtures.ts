import { MirrorError } from '../../src/base/errors.ts'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import Database from 'better-sqlite3'
import { onTestFinished } from 'vitest'
import { MIRROR_SCHEMA } from '../../src/store/database/schema/mirror.ts'
import type { Schema } from '../../src/store/database/schema/schema.ts'
import { packContent } from '../../src/store/database/gzip.ts'
import type { RecordToStore } from '../../src/store/osv/reads.ts'
import { type PinnedReads, openPinnedReads } from '../../src/store/reads.ts'
import type { Quarantine } from '../../src/store/runs/quarantine.ts'
import type { RunEnd, RunStart } from '../../src/store/runs/runs.ts'
import type { PublishedSnapshot } from '../../src/store/runs/snapshots.ts'
import { type Writes, openWrites } from '../../src/store/writes.ts'
import { deflate } from '../../src/base/gzip/member.ts'

/** 2026-05-01T00:00:00Z, unix milliseconds. */
export const NOW = Date.UTC(2026, 4, 1)

/** A folder that is gone when the test ends. */
export function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), 'patchmirror-store-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** The writing side of a data folder, closed when the test ends. */
export function writes(dir = scratch()): Writes & { dir: string } {
  const store = openWrites(dir)
  onTestFinished(() => store.close())
  return { ...store, dir }
}

/** The reading side of a data folder, closed when the test ends. */
export function reads(dir: string): PinnedReads {
  const opened = openPinnedReads(dir)
  if (opened === null) throw new Error('there is no database')
  onTestFinished(() => opened.close())
  return opened
}

export function record(id: string, text = `{"id":"${id}"}`): RecordToStore {
  const content = Buffer.from(text)
  return {
    id,
    modified: '2026-05-01T00:00:00Z',
    crc32: crc32(content),
    sha256: sha256(content),
    size: content.length,
    body: packContent(content, deflate),
    asOf: NOW,
  }
}

export function sha256(content: string | Buffer): Buffer {
  return createHash('sha256').update(content).digest()
}

export const START: RunStart = { source: 'osv', kind: 'sync', trigger: 'schedule', startedAt: NOW }

export function runEnd(more: Partial<RunEnd> = {}): RunEnd {
  const nothing = { asOf: null, snapshot: null, code: null, message: null, facts: {} }
  return { state: 'complete', endedAt: NOW + 1000, ...nothing, ...more }
}

export function snapshot(more: Partial<PublishedSnapshot> = {}): PublishedSnapshot {
  const times = { publishedAt: NOW, asOf: NOW }
  return { source: 'osv', id: 'aa', runId: 1, ...times, records: 1, whole: true, ...more }
}

export function quarantine(runId: number, text = '[]'): Omit<Quarantine, 'decision'> {
  const content = Buffer.from(text)
  return {
    runId,
    source: 'osv',
    path: '/external/osv/all.json',
    reason: 'too many removals',
    sha256: sha256(content),
    body: packContent(content, deflate),
    etag: '"e"',
    lastModified: null,
    asOf: NOW,
  }
}

/** Gives the program of this process a further step of a schema until the test ends: a database that was made before is then an older one. */
export function addStep(schema: Schema = MIRROR_SCHEMA): void {
  const steps = schema.steps as string[]
  steps.push('CREATE TABLE added (id INTEGER PRIMARY KEY) STRICT')
  onTestFinished(() => void steps.pop())
}

/** Gives a database another number of its schema. */
export function setSchema(path: string, number: number): void {
  const db = new Database(path)
  db.pragma(`user_version = ${number}`)
  db.close()
}

/** Returns the error with which work is refused; fails where it is not. */
export function refusal(work: () => unknown): MirrorError {
  try {
    work()
  } catch (error) {
    if (error instanceof MirrorError) return error
    throw error
  }
  throw new Error('it was not refused')
}
