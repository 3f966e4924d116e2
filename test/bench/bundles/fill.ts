import { createChangeWriter } from '../../../src/store/changes/log-writes.ts'
import { createHash, randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { openWriter } from '../../../src/store/database/open.ts'
import { createChangeTracker } from '../../../src/store/changes/tracker.ts'
import { createRunWriter } from '../../../src/store/runs/runs.ts'
import { createSnapshotWriter } from '../../../src/store/runs/snapshots.ts'

const CHUNK = 1_048_576
const CHUNKS = 20

/**
 * Puts documents of 20 MB into a data folder, as a crawl would have left them, until they have `bytes` as they are stored.
 * Their content is random: no compression makes the bytes fewer than they are called.
 */
export function fillCatalog(dir: string, bytes: number): void {
  const db = openWriter(dir)
  const answer = db.prepare(
    `INSERT INTO catalog_answer (path, resource, owner, owner_sha, status, body, size, sha256, changed, etag, links, mentions)
     VALUES (?, 'tags', ?, ?, 200, ?, ?, ?, 1, NULL, ?, '[]')`,
  )
  const document = db.prepare("INSERT INTO catalog_document VALUES (?, ?, ?, 'application/json', 1)")
  const chunk = db.prepare('INSERT INTO catalog_chunk VALUES (?, ?, ?)')
  const add = db.transaction((number: number) => {
    const whole = createHash('sha256')
    const chunks: Buffer[] = []
    for (let i = 0; i < CHUNKS; i++) {
      const content = randomBytes(CHUNK)
      whole.update(content)
      chunks.push(gzipSync(content, { level: 0 }))
    }
    const digest = whole.digest('hex')
    for (const [i, stored] of chunks.entries()) chunk.run(digest, i, stored)
    const stored = chunks.reduce((sum, one) => sum + one.length, 0)
    document.run(digest, CHUNKS * CHUNK, stored)
    const body = Buffer.from(JSON.stringify({ sbom: `/documents/${digest}` }))
    const sha = createHash('sha256').update(body).digest()
    const path = `/v1/tags/${number}/sbom`
    const links = JSON.stringify([{ at: ['sbom'], digest }])
    answer.run(path, `tags/${number}`, sha.subarray(0, 16), gzipSync(body), body.length, sha, links)
    return stored
  })
  let done = 0
  let number = 0
  while (done < bytes) done += add(++number)
  const runs = createRunWriter(db)
  const runId = runs.startRun({
    source: 'catalog',
    kind: 'sync',
    trigger: 'command',
    startedAt: Date.now(),
  })
  const id = createHash('sha256').update(`catalog ${number}`).digest('hex')
  const at = { publishedAt: Date.now(), asOf: Date.now() }
  createSnapshotWriter(db, createChangeTracker(), createChangeWriter(db)).replaceSnapshot({
    source: 'catalog',
    id,
    runId,
    records: number,
    whole: true,
    ...at,
  })
  db.pragma('wal_checkpoint(TRUNCATE)')
  db.close()
}
