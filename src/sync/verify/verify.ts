import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { createHash } from 'node:crypto'
import { sha256Of } from '../../base/digest.ts'
import { counted } from '../../base/text.ts'
import { type Db, derivedDir } from '../../store/database/open.ts'
import { missingPart } from '../../store/database/own-schema.ts'
import { MIRROR_SCHEMA } from '../../store/database/schema/mirror.ts'
import { contentOf, soundContent } from '../../store/database/gzip.ts'
import { type Reads, createReads } from '../../store/reads.ts'
import { OSV_INDEX } from '../../base/domain/feed-paths.ts'
import { SOURCES } from '../../base/domain/sources.ts'
import { digestOfFeeds } from '../feeds/documents.ts'
import { faultOfArchive } from '../../archive/check.ts'
import { type CatalogDocument, chunkContent } from '../../store/catalog/documents.ts'
import { parseIndex } from '../osv/index-parser.ts'
import { faultOfStored } from '../osv/outcome.ts'
import { digestOfCatalog } from '../catalog/digest.ts'
import { type CatalogReport, FEEDS_DISAGREE, NO_CATALOG, type VerifyReport } from './report.ts'

/** Reads everything that is stored once, and checks it against the digests taken when it was stored. */
export async function verifyStore(db: Db, dataDir: string): Promise<VerifyReport> {
  const reads = createReads(db)
  const report: VerifyReport = {
    structure: structureOf(db),
    damagedRecords: [],
    damagedVersions: [],
    damagedDocuments: [],
    disagreements: [],
    records: 0,
    sources: SOURCES.filter((source) => reads.snapshots.readSnapshot(source) !== null),
    catalog: NO_CATALOG,
  }
  const stored = new Map<string, string>()
  for (const [id, crc, size, sha256, body, modified, bodyCrc] of reads.osv.eachSum()) {
    report.records++
    stored.set(id, modified)
    const isMember = body !== null && crc32(body) === bodyCrc
    if (!isMember || !isSound(body, size, sha256, crc)) report.damagedRecords.push(id)
  }
  for (const { id, log, size, sha256, body } of reads.osv.eachSuperseded())
    if (!isSound(body, size, sha256)) report.damagedVersions.push({ id, log })
  checkDocuments(reads, stored, report)
  checkSnapshots(reads, report)
  await checkArchive(reads, dataDir, report)
  report.catalog = verifyCatalog(reads, (what) => report.disagreements.push(what))
  return report
}

function structureOf(db: Db): string[] {
  const rows = db.pragma('integrity_check(20)') as { integrity_check: string }[]
  const faults = rows.map((row) => row.integrity_check).filter((line) => line !== 'ok')
  const missing = missingPart(db, MIRROR_SCHEMA)
  return missing === null ? faults : [...faults, missing]
}

function isSound(body: Buffer | null, size: number, sha256: Buffer, crc?: number): boolean {
  const content = soundContent({ body, size, sha256 })
  return content !== null && (crc === undefined || crc32(content) === crc)
}

function checkDocuments(reads: Reads, stored: ReadonlyMap<string, string>, report: VerifyReport): void {
  for (const { path, present } of [...reads.feeds.listDocuments('feeds'), ...reads.feeds.listDocuments('osv')]) {
    const document = reads.feeds.readDocument(path)
    if (!present || document === null) continue
    if (isSound(document.body, document.size, document.sha256)) {
      if (path === OSV_INDEX && document.body !== null) {
        compareIndex(contentOf(document.body, document.size), stored, report)
      }
    } else report.damagedDocuments.push(path)
  }
}

function compareIndex(bytes: Buffer, stored: ReadonlyMap<string, string>, report: VerifyReport): void {
  const index = parseIndex(bytes)
  const lost = [...index.ids.ids()].filter((id) => !stored.has(id))
  const extra = [...stored.keys()].filter((id) => index.ids.get(id) === undefined)
  const stamped = [...stored].filter(
    ([id, stamp]) => index.ids.get(id) !== undefined && !index.unstamped.has(id) && index.ids.stamp(id) !== stamp,
  )
  if (lost.length > 0)
    report.disagreements.push(`${counted(lost.length, 'listed record is', 'listed records are')} not stored`)
  if (extra.length > 0)
    report.disagreements.push(`${counted(extra.length, 'stored record is', 'stored records are')} not listed`)
  if (stamped.length > 0)
    report.disagreements.push(
      `${counted(stamped.length, 'stored record has', 'stored records have')} another date than listed`,
    )
  report.damagedRecords.push(...lost)
}

function checkSnapshots(reads: Reads, report: VerifyReport): void {
  const fault = faultOfStored(reads)
  if (fault !== null) report.disagreements.push(fault)
  const published = reads.snapshots.readSnapshot('feeds')?.id
  if (published !== undefined && digestOfFeeds(reads.feeds.listDocuments('feeds')) !== published)
    report.disagreements.push(FEEDS_DISAGREE)
}

async function checkArchive(reads: Reads, dataDir: string, report: VerifyReport): Promise<void> {
  const info = reads.osv.readArchive()
  if (info === null) return
  const fault = await faultOfArchive(join(derivedDir(dataDir), info.file), info, reads.osv.listParts())
  if (fault !== null) report.disagreements.push(`${info.file} ${fault}`)
}

/**
 * Reads every answer, item and document once and checks it against its digest. Calls `disagree` for a source that
 * differs from its published snapshot.
 */
function verifyCatalog(reads: Reads, disagree: (what: string) => void): CatalogReport {
  const report: CatalogReport = {
    answers: [],
    lists: [],
    documents: [],
    checked: { answers: 0, entries: 0, documents: 0 },
  }
  const named = new Set<string>()
  for (const { path } of [...reads.catalog.eachStoredAnswer()]) {
    report.checked.answers++
    if (!isAnswerSound(reads, path, named)) report.answers.push(path)
  }
  for (const { id, path, entries } of reads.catalog.listLists()) {
    let count = 0
    let sound = true
    for (const { body, sha } of reads.catalog.eachEntry(id)) {
      count++
      sound &&= sha256Of(body).subarray(0, sha.length).equals(sha)
    }
    report.checked.entries += count
    if (!sound || count !== entries) report.lists.push(path)
  }
  for (const digest of named) {
    report.checked.documents++
    if (!isDocumentSound(reads, digest)) report.documents.push(digest)
  }
  for (const source of ['catalog', 'identity'] as const) {
    const published = reads.snapshots.readSnapshot(source)?.id
    if (published !== undefined && published !== digestOfCatalog(reads, source))
      disagree(`the stored ${source} differs from the published snapshot`)
  }
  return report
}

function isAnswerSound(reads: Reads, path: string, named: Set<string>): boolean {
  try {
    const answer = reads.catalog.readAnswer(path)
    if (answer === null) return false
    for (const { digest } of answer.links) named.add(digest)
    if (answer.body === null) return true // a 404, or a document that is the answer itself
    const content = contentOf(answer.body, answer.size)
    return sha256Of(content).equals(answer.sha256)
  } catch {
    return false // bytes that do not inflate or parse are the finding
  }
}

function isDocumentSound(reads: Reads, digest: string): boolean {
  const document = reads.catalog.readDocument(digest)
  return document !== null && digestOf(reads, document) === digest
}

function digestOf(reads: Reads, { digest, size }: CatalogDocument): string | null {
  const content = createHash('sha256')
  let bytes = 0
  try {
    for (let number = 0; ; number++) {
      const chunk = reads.catalog.readChunk(digest, number)
      if (chunk === null) break
      const part = chunkContent(chunk)
      content.update(part)
      bytes += part.length
    }
  } catch {
    return null // a damaged gzip member does not inflate: this is the finding
  }
  return bytes === size ? content.digest('hex') : null
}
