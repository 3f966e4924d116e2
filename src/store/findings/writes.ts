import { randomUUID } from 'node:crypto'
import { DAY_MS } from '../../base/time.ts'
import type { Db } from '../database/sqlite.ts'
import { queries } from '../database/query.ts'
import { createVexStore } from './vex.ts'
import {
  type FindingCounts,
  type FindingsState,
  type LoggedFindings,
  type TagFindings,
  createFindingsReads,
} from './reads.ts'

/** A package in a version. */
export interface FindingComponent {
  readonly id: number
  readonly ecosystem: string
  readonly name: string
  readonly version: string
  /**
   * JSON: the package URLs that SBOMs list of it, each with the number of the SBOM where a tag has several, else null, and with name
   * and version of the source package where the SBOM names it beside.
   */
  readonly packages: string
  /** JSON: what the records are asked beside its name; empty: nothing. */
  readonly asked: string
  /** Why it is not judged, or not completely. */
  readonly gap: ComponentGap
}

/** 0: it is judged; 1: not compared with all records; 2: there are no records of its ecosystem or release; 3: it is ambiguous. */
export type ComponentGap = 0 | 1 | 2 | 3

/** A finding of a component. */
export interface StoredFinding {
  readonly record: string
  /** 1: the record names a fixed version. */
  readonly fixable: number
  /** 1: the service has patched it. */
  readonly patched: number
  /** Severity: 0 critical, 1 high, 2 any other. */
  readonly level: number
  /** The source package by whose name it was found; empty: by its own name. */
  readonly source: string
}

/** A finding of a tag, and its package. */
export type TagFinding = StoredFinding & FindingComponent

/** Most changes that are kept. */
const MAX_LOG = 200_000

/** Creates reads and writes of the findings of tags; `inOne` makes several of them one transaction. */
export function createFindingsStore(db: Db) {
  return {
    ...createFindingsReads(db),
    ...createComponents(db),
    ...createTags(db),
    ...createTagComponents(db),
    ...createStateWrites(db),
    ...createVexStore(db),
    /** Does the work in one transaction: none of its writes is there when it throws. */
    async inOne<T>(work: () => Promise<T>): Promise<T> {
      db.exec('BEGIN IMMEDIATE')
      try {
        const made = await work()
        db.exec('COMMIT')
        return made
      } catch (error) {
        if (db.inTransaction) db.exec('ROLLBACK')
        throw error
      }
    },
  }
}

export type FindingsStore = ReturnType<typeof createFindingsStore>

const COMPONENT = 'id, name, ecosystem, version, packages, asked, gap'

function createComponents(db: Db) {
  const query = queries(db)
  const one = db
    .prepare<[string, string, string, string, string], number>(
      `SELECT id FROM component
       WHERE name = ? AND ecosystem = ? AND version = ? AND packages = ? AND asked = ?`,
    )
    .pluck()
  const judgedBy = db.prepare<{ record: string }, FindingComponent>(
    `SELECT ${COMPONENT} FROM component WHERE id IN (
       SELECT component FROM finding WHERE record = @record UNION SELECT component FROM uncompared WHERE record = @record)`,
  )
  const all = db.prepare<[string, string, string, string, string, number], FindingComponent>(
    `SELECT ${COMPONENT} FROM component WHERE (name, ecosystem, version, packages, asked) > (?, ?, ?, ?, ?)
     ORDER BY name, ecosystem, version, packages, asked LIMIT ?`,
  )
  const add = db.prepare(
    'INSERT INTO component (name, ecosystem, version, packages, asked, gap) VALUES (?, ?, ?, ?, ?, ?)',
  )
  const addName = db.prepare('INSERT OR IGNORE INTO component_name (name, component) VALUES (?, ?)')
  return {
    ...createGapStore(db),
    ...createFindingRows(db),
    /** Components that records are asked about by a name: their own, or that of their source package. */
    listComponentsNamed: query.all<[name: string], FindingComponent>(
      `SELECT ${COMPONENT} FROM component WHERE id IN (SELECT component FROM component_name WHERE name = ?)`,
    ),
    listComponentsWith: query.all<[record: string], FindingComponent>(
      `SELECT ${COMPONENT} FROM component WHERE id IN (SELECT component FROM finding WHERE record = ?)`,
    ),
    /** Components with a finding of a record, and those that cannot be compared with it. */
    listComponentsJudgedBy: (record: string): FindingComponent[] => judgedBy.all({ record }),
    /** Components after one, the versions of a package one after the other; null: from the first. */
    listComponents: (after: FindingComponent | null, limit: number): FindingComponent[] =>
      all.all(
        after?.name ?? '',
        after?.ecosystem ?? '',
        after?.version ?? '',
        after?.packages ?? '',
        after?.asked ?? '',
        limit,
      ),
    readComponent: query.one<[id: number], FindingComponent>(`SELECT ${COMPONENT} FROM component WHERE id = ?`),
    findComponent(of: Omit<FindingComponent, 'id' | 'gap'>): number | null {
      return one.get(of.name, of.ecosystem, of.version, of.packages, of.asked) ?? null
    },
    /** `names`: by which records are asked about it, as the views' index has them. */
    addComponent(of: Omit<FindingComponent, 'id'>, names: readonly string[]): number {
      const { name, ecosystem, version, packages, asked, gap } = of
      const id = Number(add.run(name, ecosystem, version, packages, asked, gap).lastInsertRowid)
      for (const one of names) addName.run(one, id)
      return id
    },
  }
}

function createFindingRows(db: Db) {
  const { all, run } = queries(db)
  const put = db.prepare(
    `INSERT INTO finding (component, record, fixable, patched, level, source) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET fixable = excluded.fixable, patched = excluded.patched, level = excluded.level,
       source = excluded.source`,
  )
  const patched = db.prepare<[], { component: number; record: string }>(
    'SELECT component, record FROM finding WHERE patched = 1',
  )
  return {
    listFindings: all<[component: number], StoredFinding>(
      'SELECT record, fixable, patched, level, source FROM finding WHERE component = ?',
    ),
    putFinding(component: number, finding: StoredFinding): void {
      const { record, fixable, patched, level, source } = finding
      put.run(component, record, fixable, patched, level, source)
    },
    /** Findings that the service has patched. */
    eachPatched: () => patched.iterate(),
    dropFinding: run<[component: number, record: string]>('DELETE FROM finding WHERE component = ? AND record = ?'),
  }
}

/** A component that is judged and has no finding. `unrecorded`: 1, where no record was about it when that was looked for last. */
interface ClearComponent extends Pick<FindingComponent, 'id' | 'ecosystem' | 'name' | 'version' | 'asked'> {
  readonly unrecorded: number
}

function createGapStore(db: Db) {
  const { all, run } = queries(db)
  const put = db.prepare('UPDATE component SET gap = ? WHERE id = ?')
  const clear = db.prepare('DELETE FROM uncompared WHERE component = ?')
  const add = db.prepare('INSERT INTO uncompared (record, component) VALUES (?, ?)')
  return {
    putGap: (component: number, gap: ComponentGap): void => void put.run(gap, component),
    /** Stores the records that cannot be compared with the version of a component. */
    replaceUncompared(component: number, records: Iterable<string>): void {
      clear.run(component)
      for (const record of records) add.run(record, component)
    },
    /** Counts the packages of a tag that are not judged, or not completely; null: of every tag. */
    countNotJudged: run<[tag: number | null]>(
      `UPDATE tag SET not_judged = unidentified + (
         SELECT count(*) FROM tag_component t JOIN component c ON c.id = t.component WHERE t.tag = tag.id AND c.gap > 0)
       WHERE id = coalesce(?, id)`,
    ),
    /** Judged components without a finding, after one: their number, and what is stored of them. */
    listClear: all<[after: number, limit: number], ClearComponent>(
      `SELECT id, ecosystem, name, version, asked, unrecorded FROM component
       WHERE id > ? AND gap = 0 AND NOT EXISTS (SELECT 1 FROM finding WHERE component = component.id) ORDER BY id LIMIT ?`,
    ),
    /** Stores whether no record is about a component (1), in whatever version. */
    putUnrecorded: run<[unrecorded: 0 | 1, component: number]>('UPDATE component SET unrecorded = ? WHERE id = ?'),
    /** Counts the packages of each tag that no record is about. */
    countUnrecorded: run<[]>(
      `UPDATE tag SET unrecorded = (
         SELECT count(*) FROM tag_component t JOIN component c ON c.id = t.component
         WHERE t.tag = tag.id AND c.unrecorded = 1 AND c.gap = 0
           AND NOT EXISTS (SELECT 1 FROM finding f WHERE f.component = c.id))`,
    ),
  }
}

/** What is known of a tag when it is judged; what no record is about is counted when all tags are. */
type JudgedTag = Omit<TagFindings, 'id' | 'unrecorded' | 'platformGap'>

/** A tag, and whether VEX about it changed (1) since it was judged. */
type KnownTag = Pick<TagFindings, 'id' | 'owner' | 'name' | 'sbom'> & { readonly vexStale: number }

function createTags(db: Db) {
  const { all, run } = queries(db)
  const put = db.prepare<JudgedTag>(
    `INSERT INTO tag (owner, name, sbom, subjects, refusal, sbom_gap, packages, not_judged, unidentified, all_releases, binary_only,
       findings, fixable, critical, high, suppressed, vex_stale)
     VALUES (@owner, @name, @sbom, @subjects, @refusal, @sbomGap, @packages, @notJudged, @unidentified, @allReleases,
       @binaryNameOnly, @findings, @fixable, @critical, @high, @suppressed, 0)
     ON CONFLICT (owner) DO UPDATE SET name = @name, sbom = @sbom, subjects = @subjects, refusal = @refusal, sbom_gap = @sbomGap,
       packages = @packages, not_judged = @notJudged, unidentified = @unidentified, all_releases = @allReleases,
       binary_only = @binaryNameOnly, findings = @findings, fixable = @fixable, critical = @critical,
       high = @high, suppressed = @suppressed, vex_stale = 0`,
  )
  const rename = db.prepare('UPDATE tag SET name = ? WHERE id = ?')
  const count = db.prepare<FindingCounts & { id: number }>(
    `UPDATE tag SET findings = findings + @findings, fixable = fixable + @fixable,
       critical = critical + @critical, high = high + @high, suppressed = suppressed + @suppressed WHERE id = @id`,
  )
  const byId = db.prepare<[number], Pick<TagFindings, 'owner' | 'name' | 'findings' | 'fixable'>>(
    'SELECT owner, name, findings, fixable FROM tag WHERE id = ?',
  )
  const idOf = db.prepare<[string], number>('SELECT id FROM tag WHERE owner = ?').pluck()
  return {
    /** Adds a tag, or replaces what is known of it; returns its number. */
    putTag(tag: JudgedTag): number {
      put.run(tag)
      return idOf.get(tag.owner) ?? 0
    },
    renameTag: (id: number, name: string): void => void rename.run(name, id),
    /** Adds to the counts of a tag; returns it as it is now. */
    countTag(id: number, change: FindingCounts) {
      count.run({ id, ...change })
      return byId.get(id) ?? null
    },
    listOwners: all<[], KnownTag>('SELECT id, owner, name, sbom, vex_stale AS vexStale FROM tag'),
    /** Also those that VEX rules out. */
    listTagFindings: all<[tag: number], TagFinding>(
      `SELECT f.record, f.fixable, f.patched, f.level, f.source, c.id, c.ecosystem, c.name, c.version, c.packages, c.asked, c.gap
       FROM tag_component t JOIN finding f ON f.component = t.component JOIN component c ON c.id = t.component
       WHERE t.tag = ?`,
    ),
    dropTag: run<[id: number]>('DELETE FROM tag WHERE id = ?'),
  }
}

function createTagComponents(db: Db) {
  const { list } = queries(db)
  const components = db.prepare<[number], number>('SELECT component FROM tag_component WHERE tag = ?').pluck()
  const unlink = db.prepare('DELETE FROM tag_component WHERE tag = ?')
  const link = db.prepare('INSERT INTO tag_component (tag, component) VALUES (?, ?)')
  const isUsed = db.prepare<[number], number>('SELECT 1 FROM tag_component WHERE component = ? LIMIT 1').pluck()
  const dropFindings = db.prepare('DELETE FROM finding WHERE component = ?')
  const unsuppress = db.prepare('DELETE FROM suppressed WHERE component = ? AND tag = ?')
  const dropPlaces = db.prepare('DELETE FROM vex_place WHERE kind = 0 AND owner = ?')
  const dropNames = db.prepare('DELETE FROM component_name WHERE component = ?')
  const dropUncompared = db.prepare('DELETE FROM uncompared WHERE component = ?')
  const dropComponent = db.prepare('DELETE FROM component WHERE id = ?')
  return {
    listTagsOf: list<[component: number], number>('SELECT tag FROM tag_component WHERE component = ?'),
    /** Replaces the components of a tag; those that no tag has any more are deleted with their findings. */
    replaceComponents(tag: number, next: readonly number[]): void {
      const before = components.all(tag)
      unlink.run(tag)
      for (const component of next) link.run(tag, component)
      for (const component of before) {
        unsuppress.run(component, tag)
        if (isUsed.get(component) !== undefined) continue
        dropFindings.run(component)
        dropPlaces.run(component)
        dropNames.run(component)
        dropUncompared.run(component)
        dropComponent.run(component)
      }
    },
  }
}

function createStateWrites(db: Db) {
  const put = db.prepare(
    `INSERT INTO state (only, instance, form, osv, osv_as_of, generation)
     VALUES (1, @instance, @form, @osv, @osvAsOf, @generation)
     ON CONFLICT (only) DO UPDATE SET form = @form, osv = @osv, osv_as_of = @osvAsOf, generation = @generation`,
  )
  const finish = db.prepare(
    'UPDATE state SET catalog = @catalog, began_at = coalesce(began_at, @now), judged_at = @now',
  )
  const log = db.prepare(
    `INSERT INTO log (at, owner, name, cause, snapshot, found, found_fixable, gone, gone_fixable, fixes, fixes_gone,
       findings, fixable, details)
     VALUES (@at, @owner, @name, @cause, @snapshot, @found, @foundFixable, @gone, @goneFixable, @fixes, @fixesGone,
       @findings, @fixable, @details)`,
  )
  const prune = db.prepare(
    `DELETE FROM log WHERE seq < max(
       (SELECT coalesce(max(seq), 0) FROM log
        WHERE seq < coalesce((SELECT min(seq) FROM log WHERE at >= @before), 9223372036854775807)),
       (SELECT coalesce(max(seq), 0) FROM log) - @most + 1)`,
  )
  return {
    /** Stores what all findings are of now. */
    putRecordState(state: Omit<FindingsState, 'instance' | 'catalog' | 'beganAt' | 'judgedAt'>): void {
      put.run({ instance: randomUUID(), ...state })
    },
    /** Stores that all tags of a snapshot of the catalog are judged. */
    finishJudging: (catalog: string, now: number): void => void finish.run({ catalog, now }),
    addLog(entry: Omit<LoggedFindings, 'seq'>): void {
      log.run({ ...entry, details: JSON.stringify(entry.details) })
    },
    /**
     * Deletes the changes before the first that is not older by a time (`timeOfAges`), and those above the most that are kept.
     * The newest that is older stays: it shows that nothing was forgotten after it.
     */
    pruneLog: (days: number, time: number): void => void prune.run({ before: time - days * DAY_MS, most: MAX_LOG }),
  }
}
