import type { Db } from '../database/sqlite.ts'
import { queries } from '../database/query.ts'
import { createRecordTags } from './record-tags.ts'
import { createTagList, type OtherTag } from './tag-list.ts'

/** Numbers of findings; a finding is a record about a package in a version. Those that VEX rules out are only in `suppressed`. */
export interface FindingCounts {
  readonly findings: number
  /** Findings whose record names a fixed version, or that the service has patched. */
  readonly fixable: number
  readonly critical: number
  readonly high: number
  /** Findings that VEX rules out. */
  readonly suppressed: number
}

/** What is known of a tag. */
export interface TagFindings extends FindingCounts, OtherTag {
  /** Of which platforms of its image they say nothing, in words; null: of none. */
  readonly platformGap: string | null
  readonly packages: number
  /** Packages that are not judged, or not completely. */
  readonly notJudged: number
  /** Other packages that no record is about, in whatever version. */
  readonly unrecorded: number
  /** Packages of which it is not known who they are: they are among those that are not judged. */
  readonly unidentified: number
  /** Packages judged by the records of all releases of their distribution: their own is not known. */
  readonly allReleases: number
}

/** Up to where the tags are judged. */
export interface FindingsState {
  /** Random; another one begins another log. */
  readonly instance: string
  /** Rules by which findings and views were made. */
  readonly form: string
  readonly osv: string
  /** Upstream's date of it, as `judgedAt` Unix milliseconds. */
  readonly osvAsOf: number
  readonly generation: string
  /** The catalog's snapshot whose tags are all judged; null: not yet. */
  readonly catalog: string | null
  /** When that was so for the first time: the log has what changed since. */
  readonly beganAt: number | null
  readonly judgedAt: number | null
}

/**
 * Why a finding is gone: upstream removed its record; the record is not mirrored any more for another reason, was withdrawn, does not
 * cover the version any more, or cannot be compared with it any more; VEX rules it out; the tag has another SBOM.
 */
export type GoneReason = 'removed' | 'left' | 'withdrawn' | 'cleared' | 'uncompared' | 'vex' | 'sbom'

/**
 * What happened to a finding: it is new, gone, has a fix now, or has none any more; its record, package and version, and
 * whether it has a fix (1), or had one.
 */
export type FindingChange = readonly [
  change: 'new' | 'gone' | 'fix' | 'fix gone',
  record: string,
  name: string,
  version: string,
  fixable: 0 | 1,
  /** The source package by whose name it was found; empty: by its own name. */
  source: string,
  /** Of one that is gone. */
  why?: GoneReason | undefined,
]

/** How many findings of a tag came and went. */
export interface FindingChangeCounts {
  readonly found: number
  /** Of these, how many have a fix. */
  readonly foundFixable: number
  readonly gone: number
  /** Of these, how many had a fix. */
  readonly goneFixable: number
  /** Findings that have a fix now and had none, or are new and have one. */
  readonly fixes: number
  /** Findings that have no fix any more, or are gone and had one. */
  readonly fixesGone: number
}

/** Numbers of findings that are new or gone, and that have a fix now, or none any more: as `FindingChangeCounts`. */
export interface ChangeNumbers {
  newFindings: number
  newFixable: number
  goneFindings: number
  goneFixable: number
  newFixes: number
  goneFixes: number
}

/** How many tags changed, and what that adds up to. */
type FindingsSums = Readonly<ChangeNumbers> & { readonly tags: number }

/**
 * What changes findings. `scope`: other records are mirrored by the settings; `rollback`: older data are; `unknown`: it is `records` or
 * `scope`. What is gone by these is not known to be fixed.
 */
export const CAUSES = ['records', 'scope', 'rollback', 'unknown', 'sbom', 'vex', 'patches'] as const

/** A change of a tag's findings. */
export interface LoggedFindings extends FindingChangeCounts {
  readonly seq: number
  /** Unix milliseconds. */
  readonly at: number
  readonly owner: string
  readonly name: string
  readonly cause: (typeof CAUSES)[number]
  /** The snapshot that caused it: OSV's for records, else the catalog's. */
  readonly snapshot: string
  /** Of the tag after it. */
  readonly findings: number
  readonly fixable: number
  /** The first of them. */
  readonly details: readonly FindingChange[]
}

/** Follows the catalog's snapshot in the name of a state in which some documents of it could not be read. */
export const UNREAD = ' unread'

const TAG = `id, owner, name, sbom, subjects, refusal, sbom_gap AS sbomGap, platform_gap AS platformGap, packages, not_judged AS notJudged, unrecorded, unidentified,
  all_releases AS allReleases, binary_only AS binaryNameOnly, findings, fixable, critical, high, suppressed`
const LOG = `seq, at, owner, name, cause, snapshot, found, found_fixable AS foundFixable, gone, gone_fixable AS goneFixable,
  fixes, fixes_gone AS fixesGone, findings, fixable, details`

type LogRow = Omit<LoggedFindings, 'details'> & { readonly details: string }

/** Creates reads of the findings of tags. */
export function createFindingsReads(db: Db) {
  const { all, exists, one, value } = queries(db)
  const tags = db.prepare<[string, string, number], TagFindings>(
    `SELECT ${TAG} FROM tag WHERE (name, owner) > (?, ?) ORDER BY name, owner LIMIT ?`,
  )
  const withoutVex = db.prepare<[], string>("SELECT state FROM followed WHERE name = 'withoutVex'").pluck()
  const counts = db.prepare<[], { tags: number; judged: number }>(
    'SELECT count(*) AS tags, count(*) - count(refusal) AS judged FROM tag',
  )
  return {
    /** Whether SBOMs or VEX of the catalog were damaged when they were to be read. */
    hasUnread: exists<[]>(
      `SELECT 1 FROM state s JOIN followed f ON f.name IN ('tags', 'vex') AND f.state = s.catalog || '${UNREAD}'`,
    ),
    /** Whether nothing of the catalog in the state is left to do; false while another one is followed. */
    isWhole: exists<[]>(
      `SELECT 1 FROM state s JOIN followed t ON t.name = 'tags' JOIN followed v ON v.name = 'vex'
       WHERE t.state IN (s.catalog, s.catalog || '${UNREAD}') AND v.state IN (s.catalog, s.catalog || '${UNREAD}')
         AND NOT EXISTS (SELECT 1 FROM tag WHERE vex_stale = 1)`,
    ),
    /** By what VEX counts beside the catalog (`readVexMark`); null before the first judgement. */
    readSignatures: value<[], string>("SELECT state FROM followed WHERE name = 'signatures'"),
    /** Ids of the tags of whose own VEX some was damaged or missing when they were judged. */
    listTagsWithoutVex: (): string[] => JSON.parse(withoutVex.get() ?? '[]') as string[],
    /** Null before the first judgement. */
    readState: one<[], FindingsState>(
      `SELECT instance, form, osv, osv_as_of AS osvAsOf, generation, catalog, began_at AS beganAt,
         judged_at AS judgedAt FROM state`,
    ),
    readTag: one<[owner: string], TagFindings>(`SELECT ${TAG} FROM tag WHERE owner = ?`),
    /** Tags of a name, the first two. */
    listTagsNamed: all<[name: string], TagFindings>(`SELECT ${TAG} FROM tag WHERE name = ? LIMIT 2`),
    /** Tags in the order of their names, after a name and an id; '' for the first. */
    listTags: (name: string, owner: string, limit: number): TagFindings[] => tags.all(name, owner, limit),
    /** Judged tags, those with the most findings that have a fix first. */
    listTagsToFix: all<[limit: number], TagFindings>(
      `SELECT ${TAG} FROM tag WHERE refusal IS NULL ORDER BY fixable DESC, findings DESC, name, owner LIMIT ?`,
    ),
    /** Tags that are not judged, and why. */
    listRefused: all<[], { owner: string; refusal: string }>(
      'SELECT owner, refusal FROM tag WHERE refusal IS NOT NULL',
    ),
    /** Tags, and those of them whose SBOM was read. */
    countTags: (): { tags: number; judged: number } => counts.get() ?? { tags: 0, judged: 0 },
    /** JSON: for each SBOM of a tag the further names of what it describes. */
    readTagImages: value<[id: number], string>('SELECT images FROM tag WHERE id = ?'),
    /** The tags with a record among their findings. */
    listTagsWith: createRecordTags(db),
    ...createTagList(db),
    ...createFindingsLog(db),
  }
}

export type FindingsReads = ReturnType<typeof createFindingsReads>

function createFindingsLog(db: Db) {
  const { list, value, count } = queries(db)
  const after = db.prepare<[number, number], LogRow>(`SELECT ${LOG} FROM log WHERE seq > ? ORDER BY seq LIMIT ?`)
  const afterOfTag = db.prepare<[string, number, number], LogRow>(
    `SELECT ${LOG} FROM log WHERE owner = ? AND seq > ? ORDER BY seq LIMIT ?`,
  )
  const ofTag = db.prepare<[string, number], LogRow>(`SELECT ${LOG} FROM log WHERE owner = ? ORDER BY seq DESC LIMIT ?`)
  const before = db.prepare<[number, number], LogRow>(`SELECT ${LOG} FROM log WHERE seq < ? ORDER BY seq DESC LIMIT ?`)
  const sum = db.prepare<[number], FindingsSums>(
    `SELECT count(DISTINCT owner) AS tags, coalesce(sum(found), 0) AS newFindings,
       coalesce(sum(found_fixable), 0) AS newFixable, coalesce(sum(gone), 0) AS goneFindings,
       coalesce(sum(gone_fixable), 0) AS goneFixable, coalesce(sum(fixes), 0) AS newFixes,
       coalesce(sum(fixes_gone), 0) AS goneFixes FROM log WHERE seq > ?`,
  )
  return {
    /** Changes after a position, in order; `owner`: of one tag. */
    listLog(seq: number, limit: number, owner: string | null = null): LoggedFindings[] {
      const rows = owner === null ? after.all(seq, limit) : afterOfTag.all(owner, seq, limit)
      return rows.map(toLogged)
    },
    /** The changes of a tag, newest first. */
    listLogOf: (owner: string, limit: number): LoggedFindings[] => ofTag.all(owner, limit).map(toLogged),
    /** Ids of the tags that had a name when they changed, which may be gone; the latest two. */
    listOwnersLogged: list<[name: string], string>(
      'SELECT owner FROM log WHERE name = ? GROUP BY owner ORDER BY max(seq) DESC LIMIT 2',
    ),
    /** Changes before a position, newest first. */
    listLogBefore: (seq: number, limit: number): LoggedFindings[] => before.all(seq, limit).map(toLogged),
    /** The position of the newest change, also when it was deleted; 0: there was none. */
    lastLog: count<[]>("SELECT seq FROM sqlite_sequence WHERE name = 'log'"),
    /** The position of the oldest change that is kept; null: there is none. */
    firstLog: value<[], number>('SELECT min(seq) FROM log'),
    /** What the changes after a position add up to. */
    sumLog: (seq: number): FindingsSums | undefined => sum.get(seq),
    /** The position of the first change at or after a time (Unix milliseconds); null: there is none. */
    findLogSince: value<[at: number], number>('SELECT min(seq) FROM log WHERE at >= ?'),
  }
}

function toLogged(row: LogRow): LoggedFindings {
  return { ...row, details: JSON.parse(row.details) as FindingChange[] }
}
