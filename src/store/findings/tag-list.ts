import type { Db } from '../database/sqlite.ts'
import { queries } from '../database/query.ts'
import type { StoredDocument } from './vex.ts'

/** A package in a version, as `FindingComponent` has it. */
interface ListedComponent {
  readonly ecosystem: string
  readonly name: string
  readonly version: string
  readonly asked: string
  readonly gap: number
}

/** A finding of a tag in its list, as `TagFinding` has it. */
export interface ListedFinding extends ListedComponent {
  readonly component: number
  readonly packages: string
  readonly record: string
  readonly fixable: number
  readonly patched: number
  readonly level: number
  readonly source: string
  /** 1: VEX rules it out. */
  readonly suppressed: 0 | 1
  /** JSON: the aliases of the record, and what it is derived from. */
  readonly names: string
  /** Number of findings of the tag that fit, as this one does. */
  readonly fitting: number
}

/** A package that a tag lists. */
export interface TagComponent extends ListedComponent {
  readonly tag: number
  readonly id: number
}

/** What is known of a tag, as far as it decides what can be said of its packages. */
export interface OtherTag {
  readonly id: number
  /** Its id in the service's list, and what people call it. */
  readonly owner: string
  readonly name: string
  /** SHA-256 of its SBOMs, separated by spaces; empty: none is stored. */
  readonly sbom: string
  /** JSON: for each SBOM the package URLs of what it describes. */
  readonly subjects: string
  /** Why it is not judged; null: it is. */
  readonly refusal: string | null
  /** Why its SBOMs may not list all of it, in words; null: nothing says so. */
  readonly sbomGap: string | null
  /** Packages judged by their own name only, though records name source packages: their own is not known. */
  readonly binaryNameOnly: number
}

/** Creates the reads of the findings of one tag, and of what other tags have of them. Numbers and names of packages and records are JSON. */
export function createTagList(db: Db) {
  const { all, exists } = queries(db)
  const page = db.prepare<{ tag: number; text: string; limit: number; offset: number }, ListedFinding>(
    `SELECT f.record, f.fixable, f.patched, f.level, f.source, f.component, c.ecosystem, c.name, c.version, c.packages,
       c.asked, c.gap, coalesce(r.names, '[]') AS names, s.tag IS NOT NULL AS suppressed, count(*) OVER () AS fitting
     FROM tag_component t JOIN component c ON c.id = t.component JOIN finding f ON f.component = c.id
       LEFT JOIN record r ON r.id = f.record
       LEFT JOIN suppressed s ON s.component = c.id AND s.tag = t.tag AND s.record = f.record
     WHERE t.tag = @tag AND instr(lower(concat_ws(' ', f.record, r.names, c.name, f.source, c.version)), lower(@text)) > 0
     ORDER BY suppressed, f.level, f.fixable | f.patched DESC, c.name, c.version, f.record, c.id
     LIMIT @limit OFFSET @offset`,
  )
  return {
    /**
     * Those that count before those that VEX rules out, then the worst first, then those with a fix. `text`: their ids, package,
     * source package or version contain it; '' for all.
     */
    listFindingsPage: (tag: number, text: string, limit: number, offset: number): ListedFinding[] =>
      page.all({ tag, text, limit, offset }),
    /** When findings of a tag came, as far as changes name them: Unix milliseconds, the last time. */
    listNewOf: all<[owner: string], { record: string; name: string; at: number }>(
      `SELECT d.value ->> 1 AS record, d.value ->> 2 AS name, max(l.at) AS at FROM log l, json_each(l.details) d
       WHERE l.owner = ? AND d.value ->> 0 = 'new' GROUP BY 1, 2`,
    ),
    /** Tags whose names begin with that of a repository and a colon. */
    listTagsOfRepository: all<[from: string, to: string, limit: number], OtherTag>(
      `SELECT id, owner, name, sbom, subjects, refusal, coalesce(platform_gap, sbom_gap) AS sbomGap, binary_only AS binaryNameOnly FROM tag
       WHERE name >= ? AND name < ? ORDER BY name, owner LIMIT ?`,
    ),
    /** Packages that these tags list, and of which records are asked by these names: their own, or that of their source package. */
    listComponentsIn: all<[names: string, tags: string], TagComponent>(
      `WITH named AS MATERIALIZED (
         SELECT id, ecosystem, name, version, asked, gap FROM component WHERE id IN (
           SELECT component FROM component_name WHERE name IN (SELECT value FROM json_each(?))))
       SELECT l.tag, c.* FROM json_each(?) t CROSS JOIN tag_component l ON l.tag = t.value JOIN named c ON c.id = l.component`,
    ),
    /** The records of findings of these components. */
    listRecordsOf: all<[components: string], { id: string; names: string }>(
      `SELECT id, names FROM record WHERE id IN (
         SELECT record FROM finding WHERE component IN (SELECT value FROM json_each(?)))`,
    ),
    /** Which of these records are findings of these components. */
    listFindingsAmong: all<[components: string, records: string], { component: number; record: string }>(
      `SELECT component, record FROM finding WHERE component IN (SELECT value FROM json_each(?))
         AND record IN (SELECT value FROM json_each(?))`,
    ),
    /** Whether VEX rules out a finding of a component in a tag. */
    isSuppressed: exists<[component: number, tag: number, record: string]>(
      'SELECT 1 FROM suppressed WHERE component = ? AND tag = ? AND record = ?',
    ),
    /** VEX documents that may be about a tag or these packages of it, those of the tag itself first. */
    listVexOf: all<[{ tag: number; owner: string; components: string; limit: number }], StoredDocument>(
      `SELECT digest, tags, believed FROM vex_document WHERE id IN (
         SELECT document FROM vex_statement WHERE place = 0 OR place IN (
           SELECT place FROM vex_place WHERE (kind = 1 AND owner = @tag)
             OR (kind = 0 AND owner IN (SELECT value FROM json_each(@components)))))
       ORDER BY EXISTS (SELECT 1 FROM json_each(tags) WHERE value = @owner) DESC, digest LIMIT @limit`,
    ),
  }
}
