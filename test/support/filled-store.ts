import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { SourceName } from '../../src/base/domain/sources.ts'
import type { RunKind } from '../../src/base/reports/runs.ts'
import { createChangeWriter } from '../../src/store/changes/log-writes.ts'
import { createChangeTracker } from '../../src/store/changes/tracker.ts'
import { deflatedOf } from '../../src/base/gzip/member.ts'
import { packContent } from '../../src/store/database/gzip.ts'
import { derivedDir, openWriter } from '../../src/store/database/open.ts'
import { createDatesWriter } from '../../src/store/dates/writes.ts'
import { createDocumentWriter } from '../../src/store/feeds/documents.ts'
import { createOsvWriter } from '../../src/store/osv/writes.ts'
import { type RunEnd, createRunWriter } from '../../src/store/runs/runs.ts'
import { createSnapshotWriter } from '../../src/store/runs/snapshots.ts'
import { createSummer, digestOfParts, startsPart } from '../../src/archive/parts.ts'
import { crc32c } from '../../src/archive/zip/crc32c.ts'
import type { ArchivePart } from '../../src/store/osv/archive-parts.ts'
import { deflate } from '../../src/base/gzip/member.ts'
import { createZipWriter } from '../../src/archive/zip/writer.ts'

/** 2026-07-01T00:00:00Z, unix milliseconds: when the stores of these tests were filled. */
export const FILLED_AT = Date.UTC(2026, 6, 1)

/** Content by id or path; null for a document that upstream does not have. */
export interface Contents {
  records: Readonly<Record<string, string | Buffer>>
  feeds: Readonly<Record<string, string | Buffer | null>>
}

/** Writes data folders the way a sync does: one transaction per snapshot, through the store's own writers. */
export interface FilledStore {
  readonly dir: string
  /** Publishes these records as the OSV snapshot: index, archive file, tombstones for what is gone. */
  publishOsv(records: Contents['records'], at?: number): { archive: Buffer; index: string }
  publishFeeds(feeds: Contents['feeds'], at?: number): void
  /** Leaves a row in the run log; without an end it stays running. */
  addRun(source: SourceName, startedAt: number, end?: Partial<RunEnd>, kind?: RunKind): number
  /** Runs SQL as a fault would change the file. */
  damage(sql: string): void
  close(): void
}

export function openFilledStore(dir: string): FilledStore {
  const db = openWriter(dir)
  const notes = createChangeTracker()
  const osv = createOsvWriter(db, notes)
  const documents = createDocumentWriter(db, notes)
  const snapshots = createSnapshotWriter(db, notes, createChangeWriter(db))
  const runs = createRunWriter(db)
  const dates = createDatesWriter(db)

  const writeDocument = (source: SourceName, path: string, text: string | Buffer | null, at: number) => {
    const content = text === null ? null : Buffer.from(text)
    documents.replaceDocument({
      path,
      source,
      body: content === null ? null : packContent(content, deflate),
      size: content?.length ?? 0,
      sha256: sha256(content ?? ''),
      changed: at / 1000,
      entries: 0,
    })
  }
  const publish = (source: SourceName, runId: number, id: string, at: number, records: number) => {
    const change = snapshots.replaceSnapshot({
      source,
      id,
      runId,
      publishedAt: at,
      asOf: at,
      records,
      whole: true,
    })
    if (source === 'osv') dates.noteDates(change, at)
    const end = { state: 'complete', code: null, message: null, facts: {} } as const
    runs.endRun(runId, { ...end, endedAt: at, asOf: at, snapshot: id })
  }

  return {
    dir,
    publishOsv(records, at = FILLED_AT) {
      const ids = Object.keys(records).sort()
      const index = JSON.stringify(ids.map((id) => ({ id, modified: modifiedAt(at) })))
      const { archive, parts, digest } = archiveOf(records, ids)
      const file = `osv-${digest.slice(0, 32)}.zip`
      writeFileSync(join(derivedDir(dir), file), archive)
      db.transaction(() => {
        const runId = runs.startRun({
          source: 'osv',
          kind: 'sync',
          trigger: 'start',
          startedAt: at,
        })
        for (const [gone] of [...osv.eachPair()]) if (!(gone in records)) osv.removeRecord(gone, runId, at)
        for (const id of ids) {
          const content = Buffer.from(records[id] ?? '')
          if (osv.readEntry(id)?.crc32 === crc32(content)) continue
          osv.updateRecord(
            {
              id,
              modified: modifiedAt(at),
              crc32: crc32(content),
              sha256: sha256(content),
              size: content.length,
              body: packContent(content, deflate),
              asOf: at,
            },
            at / 1000,
          )
        }
        const archiveInfo = { file, size: archive.length, crc32c: crc32c(archive), sha256: digest }
        osv.replaceArchive({ ...archiveInfo, changed: at / 1000 })
        osv.replaceParts(parts)
        writeDocument('osv', '/external/osv/all.json', index, at)
        publish('osv', runId, digest, at, ids.length)
      })()
      return { archive, index }
    },
    publishFeeds(feeds, at = FILLED_AT) {
      db.transaction(() => {
        const runId = runs.startRun({
          source: 'feeds',
          kind: 'sync',
          trigger: 'start',
          startedAt: at,
        })
        for (const [path, text] of Object.entries(feeds)) writeDocument('feeds', path, text, at)
        const id = sha256(JSON.stringify(feeds)).toString('hex')
        publish('feeds', runId, id, at, Object.keys(feeds).length)
      })()
    },
    addRun(source, startedAt, end, kind = 'sync') {
      const id = runs.startRun({ source, kind, trigger: 'schedule', startedAt })
      const unknown = { asOf: null, snapshot: null, code: null, message: null, facts: {} }
      if (end !== undefined) runs.endRun(id, { ...unknown, state: 'complete', endedAt: startedAt + 1000, ...end })
      return id
    },
    damage: (sql) => void db.exec(sql),
    close: () => void db.close(),
  }
}

/** Returns the archive that a run makes of these records, its parts and its digest. */
function archiveOf(records: Contents['records'], ids: readonly string[]) {
  const chunks: Uint8Array[] = []
  const summer = createSummer()
  const writer = createZipWriter(
    (chunk) => chunks.push(Buffer.from(chunk)),
    (bytes) => summer.update(bytes),
  )
  const parts: ArchivePart[] = []
  let part = { first: '', members: 0 }
  const end = (): void => {
    writer.show()
    parts.push({ ...part, ...summer.take() })
  }
  for (const id of ids) {
    if (id !== part.first && startsPart(id)) {
      end()
      part = { first: id, members: 0 }
    }
    const content = Buffer.from(records[id] ?? '')
    const deflated = deflatedOf(packContent(content, deflate))
    writer.add({ name: `${id}.json`, crc32: crc32(content), size: content.length, deflated })
    part.members++
  }
  end()
  writer.finish()
  return { archive: Buffer.concat(chunks), parts, digest: digestOfParts(parts, summer.take()) }
}

function sha256(content: string | Buffer): Buffer {
  return createHash('sha256').update(content).digest()
}

function modifiedAt(at: number): string {
  return new Date(at).toISOString().replace('.000Z', 'Z')
}
