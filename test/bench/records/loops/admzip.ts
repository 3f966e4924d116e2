/** The same by the obvious libraries: adm-zip reads, better-sqlite3 stores. `admzip.ts ARCHIVE DATABASE` */
import AdmZip from 'adm-zip'
import Database from 'better-sqlite3'
import { peakMemory } from '../../world/peak.ts'

const [archive = '', database = ''] = process.argv.slice(2)
const started = performance.now()
const db = new Database(database)
db.pragma('journal_mode = WAL')
db.pragma('synchronous = NORMAL')
db.exec('CREATE TABLE record (id TEXT PRIMARY KEY, modified TEXT, body BLOB)')
const insert = db.prepare('INSERT INTO record VALUES (?, ?, ?)')
db.exec('BEGIN')
for (const entry of new AdmZip(archive).getEntries()) {
  const content = entry.getData()
  const record = JSON.parse(content.toString()) as { id: string; modified: string }
  insert.run(record.id, record.modified, entry.getCompressedData())
}
db.exec('COMMIT')
db.close()
const ms = performance.now() - started
process.stdout.write(`${JSON.stringify({ ms, peak: peakMemory() })}\n`)
