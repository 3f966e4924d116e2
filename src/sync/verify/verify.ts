import { hash } from 'node:crypto'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { type Db, derivedDir } from '../../store/database/open.ts'
import { contentOf } from '../../store/database/gzip.ts'
import { type Reads, createReads } from '../../store/reads.ts'
import { OSV_INDEX } from '../../upstream/osv.ts'
import { digestOfFeeds } from '../feeds/documents.ts'
import { faultOfArchive } from '../../archive/check.ts'
import { listedStamp, parseIndex } from '../osv/index-parser.ts'
import { faultOfStored } from '../osv/publish.ts'
import { type CatalogVerdict, NO_CATALOG, verifyCatalog } from './catalog.ts'

/** What a verification found. Empty lists: everything held is what was verified when it came in. */
export interface VerifyReport {
  /** SQLite's own complaints about the file's structure; these are not mended record by record. */
  structure: string[]
  /** Records whose bytes are not the ones that were stored. */
  damagedRecords: string[]
  /** Paths of documents whose bytes are not the ones that were stored. */
  damagedDocuments: string[]
  /** Index and records do not say the same, or index, archive and feeds are not what was published. */
  disagreements: string[]
  records: number
  catalog: CatalogVerdict
}

/** Reads everything held once and checks it against the digests taken when it was stored. */
export async function verifyStore(db: Db, dataDir: string): Promise<VerifyReport> {
  const reads = createReads(db)
  const verdict: VerifyReport = {
    structure: structureOf(db),
    damagedRecords: [],
    damagedDocuments: [],
    disagreements: [],
    records: 0,
    catalog: NO_CATALOG,
  }
  const held = new Map<string, string>()
  for (const [id, crc, size, sha256, body, modified, bodyCrc] of reads.eachSum()) {
    verdict.records++
    held.set(id, modified)
    const member = bodyCrc === null || body === null || crc32(body) === bodyCrc
    if (!member || !isSound(body, size, sha256, crc)) verdict.damagedRecords.push(id)
  }
  checkDocuments(reads, held, verdict)
  checkSnapshots(reads, verdict)
  await checkArchive(reads, dataDir, verdict)
  verdict.catalog = verifyCatalog(reads, (what) => verdict.disagreements.push(what))
  return verdict
}

/** Whether nothing at all was found wrong. */
export function isSoundVerdict(verdict: VerifyReport): boolean {
  const { structure, damagedRecords, damagedDocuments, disagreements } = verdict
  const found = [structure, damagedRecords, damagedDocuments, disagreements]
  return found.every(({ length }) => length === 0) && !isCatalogDamaged(verdict)
}

/** Which sources have anything to be fetched again; the identity surface counts as catalog. */
export function damagedSources(verdict: VerifyReport): {
  osv: boolean
  feeds: boolean
  catalog: boolean
} {
  const { damagedRecords, damagedDocuments, disagreements } = verdict
  const feeds = disagreements.filter((what) => what === FEEDS_DISAGREE).length
  const catalog = disagreements.filter(isOfCatalog).length
  return {
    osv:
      damagedRecords.length > 0 ||
      damagedDocuments.includes(OSV_INDEX) ||
      disagreements.length > feeds + catalog,
    feeds: feeds > 0 || damagedDocuments.some((path) => path !== OSV_INDEX),
    catalog: isCatalogDamaged(verdict),
  }
}

const FEEDS_DISAGREE = 'the feeds are not the ones published'

function isOfCatalog(what: string): boolean {
  return what.startsWith('what is held of the ')
}

function isCatalogDamaged({ catalog, disagreements }: VerifyReport): boolean {
  const { answers, lists, documents } = catalog
  if (answers.length + lists.length + documents.length > 0) return true
  return disagreements.some(isOfCatalog)
}

function structureOf(db: Db): string[] {
  const rows = db.pragma('integrity_check(20)') as { integrity_check: string }[]
  return rows.map((row) => row.integrity_check).filter((line) => line !== 'ok')
}

function isSound(body: Buffer | null, size: number, sha256: Buffer, crc?: number): boolean {
  if (body === null) return false
  try {
    const content = contentOf(body, size)
    if (crc !== undefined && crc32(content) !== crc) return false
    return hash('sha256', content, 'buffer').equals(sha256)
  } catch {
    return false // a damaged gzip member does not inflate: that is the finding
  }
}

function checkDocuments(
  reads: Reads,
  held: ReadonlyMap<string, string>,
  verdict: VerifyReport,
): void {
  for (const { path, present } of [
    ...reads.listDocuments('feeds'),
    ...reads.listDocuments('osv'),
  ]) {
    const document = reads.readDocument(path)
    if (!present || document === null) continue
    if (isSound(document.body, document.size, document.sha256)) {
      if (path === OSV_INDEX && document.body !== null) {
        compareIndex(contentOf(document.body, document.size), held, verdict)
      }
    } else verdict.damagedDocuments.push(path)
  }
}

function compareIndex(
  bytes: Buffer,
  held: ReadonlyMap<string, string>,
  verdict: VerifyReport,
): void {
  const index = parseIndex(bytes)
  const lost = [...index.ids.ids()].filter((id) => !held.has(id))
  const extra = [...held.keys()].filter((id) => index.ids.get(id) === undefined)
  const stamped = [...held].filter(([id, stamp]) => {
    return index.ids.get(id) !== undefined && listedStamp(index, id) !== stamp
  })
  if (lost.length > 0) verdict.disagreements.push(`${lost.length} listed records are not stored`)
  if (extra.length > 0) verdict.disagreements.push(`${extra.length} stored records are not listed`)
  if (stamped.length > 0)
    verdict.disagreements.push(`${stamped.length} stored records have another date than listed`)
  verdict.damagedRecords.push(...lost)
}

function checkSnapshots(reads: Reads, verdict: VerifyReport): void {
  const fault = faultOfStored(reads)
  if (fault !== null) verdict.disagreements.push(fault)
  const published = reads.readSnapshot('feeds')?.id
  if (published !== undefined && digestOfFeeds(reads.listDocuments('feeds')) !== published)
    verdict.disagreements.push(FEEDS_DISAGREE)
}

async function checkArchive(reads: Reads, dataDir: string, verdict: VerifyReport): Promise<void> {
  const info = reads.readArchive()
  if (info === null) return
  const fault = await faultOfArchive(join(derivedDir(dataDir), info.file), info, reads.listParts())
  if (fault !== null) verdict.disagreements.push(`${info.file} ${fault}`)
}
