import { systemCode, messageOf } from '../../base/errors.ts'
import { OSV_INDEX } from '../../base/domain/feed-paths.ts'
import { type SourceName, activeSources, isPrivateSource } from '../../base/domain/sources.ts'
import { toIso } from '../../base/time.ts'
import type { Config } from '../../config/schema.ts'
import { noteVerification, readLastVerification } from '../../store/notes.ts'
import type { RunTrigger } from '../../store/runs/runs.ts'
import type { RunRequest } from '../context.ts'

/** Findings of a verification. Empty lists: everything stored equals what was verified when it was stored. */
export interface VerifyReport {
  /** SQLite's reports on the file's structure; records cannot be repaired one by one then. */
  structure: string[]
  /** Ids of records whose bytes differ from the stored digests. */
  damagedRecords: string[]
  /** Superseded versions of records whose bytes are damaged or lost: only differences are described from them. */
  damagedVersions: { id: string; log: number }[]
  /** Paths of documents whose bytes differ from the stored digests. */
  damagedDocuments: string[]
  /** Differences between index and records, or between index, archive or feeds and the published snapshot. */
  disagreements: string[]
  records: number
  /** The sources that have a snapshot: nothing of the others was there to verify. */
  sources: SourceName[]
  catalog: CatalogReport
}

/** Findings of a verification of the catalog; empty lists: no damage. */
export interface CatalogReport {
  /** Canonical paths of answers and lists whose bytes differ from the stored digests. */
  answers: string[]
  lists: string[]
  /** Digests of documents that are damaged, or linked but missing. */
  documents: string[]
  /** Numbers of checked answers, entries and documents. */
  checked: { answers: number; entries: number; documents: number }
}

/** A verification without checks and findings. */
export const NO_CATALOG: CatalogReport = {
  answers: [],
  lists: [],
  documents: [],
  checked: { answers: 0, entries: 0, documents: 0 },
}

/** Returns the report about a database that is too damaged to be read at all. Throws what says anything else. */
export function reportOfUnread(error: unknown): VerifyReport {
  if (systemCode(error) !== 'corrupt') throw error
  const inner = error instanceof Error && error.cause !== undefined ? error.cause : error
  return {
    structure: [messageOf(inner)],
    damagedRecords: [],
    damagedVersions: [],
    damagedDocuments: [],
    disagreements: [],
    records: 0,
    sources: [],
    catalog: NO_CATALOG,
  }
}

/** Returns whether the report has no findings about what is served. */
export function isSoundVerdict(report: VerifyReport): boolean {
  const { structure, damagedRecords, damagedDocuments, disagreements } = report
  const found = [structure, damagedRecords, damagedDocuments, disagreements]
  return found.every(({ length }) => length === 0) && !isCatalogDamaged(report)
}

/** What is said of feeds that differ. */
export const FEEDS_DISAGREE = 'the stored feeds differ from the published snapshot'

/**
 * Returns the runs that fetch again what is damaged; none without an upstream, and where the database itself is damaged. What is
 * damaged of the catalog or the identity surface is invalidated by the first run of the two.
 */
export function repairRequests(report: VerifyReport, config: Config, trigger: RunTrigger): RunRequest[] {
  const { structure, damagedRecords, damagedDocuments, disagreements } = report
  const active = activeSources(config)
  if (structure.length > 0 || active.length === 0) return []
  const ofRecords = disagreements.some((what) => what !== FEEDS_DISAGREE && !isOfCatalog(what))
  const osv = ofRecords || damagedRecords.length > 0 || damagedDocuments.includes(OSV_INDEX)
  const feeds = disagreements.includes(FEEDS_DISAGREE) || damagedDocuments.some((path) => path !== OSV_INDEX)
  const common = { kind: 'repair', trigger } as const
  const requests: RunRequest[] = []
  if (osv) requests.push({ ...common, source: 'osv', full: true, suspectIds: damagedRecords })
  if (feeds) requests.push({ ...common, source: 'feeds', full: true })
  if (!isCatalogDamaged(report)) return requests
  const [first, ...others] = active.filter(isPrivateSource)
  if (first !== undefined) requests.push({ ...common, source: first, damaged: report.catalog })
  for (const source of others) requests.push({ ...common, source })
  return requests
}

const CATALOG_DISAGREES = /^the stored (catalog|identity) differs/

function isOfCatalog(what: string): boolean {
  return CATALOG_DISAGREES.test(what)
}

/** Returns whether anything of the catalog or the identity surface is damaged. */
export function isCatalogDamaged({ catalog, disagreements }: VerifyReport): boolean {
  const { answers, lists, documents } = catalog
  if (answers.length + lists.length + documents.length > 0) return true
  return disagreements.some(isOfCatalog)
}

/** The beginning of what is said of the archive: the name of its file. */
const OF_ARCHIVE = /^osv-\S+\.zip /

/** Returns whether the archive is damaged, which is made of the records. */
export function isArchiveDamaged({ disagreements }: VerifyReport): boolean {
  return disagreements.some((what) => OF_ARCHIVE.test(what))
}

/** Returns whether nothing of what is served is damaged but the archive. */
export function isArchiveAlone(report: VerifyReport): boolean {
  const others = report.disagreements.filter((what) => !OF_ARCHIVE.test(what))
  return isArchiveDamaged(report) && isSoundVerdict({ ...report, disagreements: others })
}

/** Returns everything that is damaged by a report, in words. */
export function damageIn(report: VerifyReport): string[] {
  const { structure, damagedRecords, damagedVersions, damagedDocuments, disagreements } = report
  const { answers, lists, documents } = report.catalog
  return [
    ...structure.map((line) => `database: ${line}`),
    ...damagedRecords.map((id) => `record ${id}`),
    ...damagedVersions.map(({ id, log }) => `superseded version of record ${id} (entry ${log})`),
    ...[...damagedDocuments, ...answers, ...lists],
    ...documents.map((digest) => `document ${digest}`),
    ...disagreements,
  ]
}

/** What of the damage is noted in words. */
const NAMED = 20

/** Notes that everything stored was verified, and what is damaged; `healed`: what was damaged before and is sound now. */
export function noteVerified(
  dataDir: string,
  damaged: readonly string[],
  now: number,
  healed: string | null = null,
): void {
  const endedAt = toIso(now)
  noteVerification(dataDir, {
    endedAt,
    since: readLastVerification(dataDir)?.since ?? endedAt,
    damaged: damaged.slice(0, NAMED),
    damagedCount: damaged.length,
    healed,
  })
}
