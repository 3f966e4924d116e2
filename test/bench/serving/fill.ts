import { createChangeWriter } from '../../../src/store/changes/log-writes.ts'
import { createHash } from 'node:crypto'
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { generateRecord } from '../../sandbox/feed/generate.ts'
import { openWriter } from '../../../src/store/database/open.ts'
import { packContent } from '../../../src/store/database/gzip.ts'
import { createChangeTracker } from '../../../src/store/changes/tracker.ts'
import { createOsvWriter } from '../../../src/store/osv/writes.ts'
import { createRunWriter } from '../../../src/store/runs/runs.ts'
import { createSnapshotWriter } from '../../../src/store/runs/snapshots.ts'
import { deflate } from '../../../src/base/gzip/member.ts'

/** What was stored: the ids, and bytes per record on average. */
export interface Filled {
  ids: string[]
  content: number
  member: number
}

/**
 * Stores the sandbox's first `records` records in a new data folder. With `filesDir`, also as files (`{id}.json` and
 * `{id}.json.gz`) for a plain web server.
 */
export function fillStore(dir: string, records: number, filesDir: string | null): Filled {
  const db = openWriter(dir)
  const notes = createChangeTracker()
  const osv = createOsvWriter(db, notes)
  const filled: Filled = { ids: [], content: 0, member: 0 }
  if (filesDir !== null) mkdirSync(filesDir, { recursive: true })
  db.transaction(() => {
    const at = Date.now()
    const runId = createRunWriter(db).startRun({
      source: 'osv',
      kind: 'sync',
      trigger: 'command',
      startedAt: at,
    })
    for (let i = 0; i < records; i++) {
      const { id, modified, bytes } = generateRecord({ seed: 7 }, i)
      const body = packContent(bytes, deflate)
      const sums = { crc32: crc32(bytes), sha256: createHash('sha256').update(bytes).digest() }
      osv.insertRecord({ id, modified, ...sums, size: bytes.length, body, asOf: at }, Math.floor(at / 1000))
      if (filesDir !== null) writeFiles(filesDir, id, bytes, body)
      filled.ids.push(id)
      filled.content += bytes.length / records
      filled.member += body.length / records
    }
    const snapshot = { source: 'osv' as const, id: 'b'.repeat(64), runId, records, whole: true }
    createSnapshotWriter(db, notes, createChangeWriter(db)).replaceSnapshot({
      ...snapshot,
      publishedAt: at,
      asOf: at,
    })
  })()
  db.close()
  return filled
}

function writeFiles(dir: string, id: string, content: Buffer, member: Buffer): void {
  for (const [name, bytes] of [
    [`${id}.json`, content],
    [`${id}.json.gz`, member],
  ] as const) {
    const descriptor = openSync(join(dir, name), 'w')
    writeSync(descriptor, bytes)
    closeSync(descriptor)
  }
}
