/**
 * The bare loop that a sync of a few changes is measured against: fetch the index, inflate, parse, compare with the stored stamps,
 * fetch what differs, insert, in one transaction on the disk. No proof, no archive, no digests but one of each record, nothing of a
 * removal. `changes.ts UPSTREAM DATABASE`, over the database of `bare.ts`; runs once for each message of its parent.
 */
import { createHash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import Database from 'better-sqlite3'
import { Pool } from 'undici'

const CONNECTIONS = 16 // as `osv.concurrency`
const [upstream = '', database = ''] = process.argv.slice(2)
const db = new Database(database)
db.pragma('synchronous = FULL')
db.exec('CREATE INDEX IF NOT EXISTS stamp ON record (id, modified)') // the stamps without the bytes beside them
const stamps = db.prepare<[], [string, string]>('SELECT id, modified FROM record').raw()
const replace = db.prepare('REPLACE INTO record VALUES (?, ?, ?)')
const pool = new Pool(upstream, { connections: CONNECTIONS })

interface Entry {
  readonly id: string
  readonly modified: string
}

async function fetchGzip(path: string): Promise<{ bytes: Buffer; content: Buffer }> {
  const headers = { 'accept-encoding': 'gzip' }
  const answer = await pool.request({ method: 'GET', path, headers })
  const bytes = Buffer.from(await answer.body.arrayBuffer())
  return { bytes, content: gunzipSync(bytes) }
}

/** `wireMs`: what it took to request and inflate the index, and to request, inflate, hash and parse the records. */
async function sync(): Promise<{ ms: number; wireMs: number; found: number }> {
  const started = performance.now()
  const index = await fetchGzip('/external/osv/all.json')
  const received = performance.now()
  const listed = JSON.parse(index.content.toString()) as Entry[]
  const stored = new Map(stamps.all())
  const due = listed.filter(({ id, modified }) => stored.get(id) !== modified)
  const rows: [string, string, Buffer][] = []
  const compared = performance.now()
  const next = due.values()
  const fetchRest = async (): Promise<void> => {
    for (const { id } of next) {
      const { bytes, content } = await fetchGzip(`/external/osv/${encodeURIComponent(id)}.json`)
      createHash('sha256').update(content).digest()
      rows.push([id, (JSON.parse(content.toString()) as Entry).modified, bytes])
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, fetchRest))
  const fetched = performance.now()
  db.exec('BEGIN')
  for (const row of rows) replace.run(...row)
  db.exec('COMMIT')
  const wireMs = received - started + fetched - compared
  return { ms: performance.now() - started, wireMs, found: due.length }
}

process.on('message', () => {
  void sync().then((done) => process.send?.(done))
})
process.on('disconnect', () => process.exit(0))
process.send?.('ready')
