/**
 * The bare loop that an ingest is measured against: read each member, inflate, parse, insert, in one
 * transaction. No checks, no network, no archive of its own. `bare.ts ARCHIVE DATABASE`
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { inflateRawSync } from 'node:zlib'
import Database from 'better-sqlite3'
import { peakMemory } from '../../world/peak.ts'
import { locateDirectory } from '../../../../src/archive/zip/directory.ts'

const [archive = '', database = ''] = process.argv.slice(2)
const started = performance.now()
const fd = openSync(archive, 'r')
const { size } = fstatSync(fd)
const read = (position: number, length: number): Buffer => {
  const buffer = Buffer.allocUnsafe(length)
  readSync(fd, buffer, 0, length, position)
  return buffer
}
const tail = Math.min(size, 70_000)
const location = locateDirectory(read(size - tail, tail), size)
const directory = read(location.offset, location.size)
const db = new Database(database)
db.pragma('journal_mode = WAL')
db.pragma('synchronous = NORMAL')
db.exec('CREATE TABLE record (id TEXT PRIMARY KEY, modified TEXT, body BLOB)')
const insert = db.prepare('INSERT INTO record VALUES (?, ?, ?)')
db.exec('BEGIN')
for (let i = 0, at = 0; i < location.count; i++) {
  const packed = directory.readUInt32LE(at + 20)
  const unpacked = directory.readUInt32LE(at + 24)
  const name = directory.readUInt16LE(at + 28)
  const member = read(directory.readUInt32LE(at + 42), 30 + name + packed)
  at += 46 + name + directory.readUInt16LE(at + 30)
  const deflated = member.subarray(30 + name)
  const content = inflateRawSync(deflated, { chunkSize: Math.max(64, unpacked + 16) })
  const record = JSON.parse(content.toString()) as { id: string; modified: string }
  insert.run(record.id, record.modified, deflated)
}
db.exec('COMMIT')
db.close()
closeSync(fd)
const ms = performance.now() - started
process.stdout.write(`${JSON.stringify({ ms, peak: peakMemory() })}\n`)
