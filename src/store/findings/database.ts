import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { MirrorError, systemCode } from '../../base/errors.ts'
import { fileMark, isPresent, makeFile, makeFolder } from '../../base/files.ts'
import { migrate, userVersion } from '../database/migrate.ts'
import { derivedDir } from '../database/open.ts'
import { namingFaults } from '../database/faults.ts'
import { refuseForeignSchema } from '../database/own-schema.ts'
import type { Schema } from '../database/schema/schema.ts'
import { type Db, connect } from '../database/sqlite.ts'
import { createOpenFindings } from './open-findings.ts'
import { createTagCount } from './record-tags.ts'
import { breakSeal, faultOfSeal, seal } from './seal.ts'
import { type FindingsReads, createFindingsReads } from './reads.ts'

/**
 * The database of the findings of mirrored tags: which packages their SBOMs name, what the records say about each of them,
 * and what changed. It is made from what is mirrored. One of another layout is made again.
 */
const TABLES = `
  CREATE TABLE state (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    instance TEXT NOT NULL,       -- random; another one begins another log
    form TEXT NOT NULL,           -- the rules by which findings and views were made
    osv TEXT NOT NULL,            -- the OSV snapshot that all findings are of, and upstream's date of it
    osv_as_of INTEGER NOT NULL,
    generation TEXT NOT NULL,     -- the generation of views that it was read from
    catalog TEXT,                 -- the snapshot whose tags are all judged; null: not yet
    began_at INTEGER,             -- when this was complete the first time: the log has what changed since
    judged_at INTEGER             -- and the last time
  ) STRICT;
  CREATE TABLE component (        -- a package in a version, once for all tags that list the same of it
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    ecosystem TEXT NOT NULL,
    version TEXT NOT NULL,
    packages TEXT NOT NULL,       -- JSON: the package URLs that SBOMs list of it, and in which of several SBOMs
    asked TEXT NOT NULL,          -- JSON: what the records are asked beside its name, such as its source package; empty: nothing
    gap INTEGER NOT NULL,         -- why it is not judged, or not completely: 0 it is, 1 not compared, 2 no records, 3 ambiguous
    unrecorded INTEGER NOT NULL DEFAULT 0, -- 1: it is judged, and no record is about it, in whatever version
    UNIQUE (name, ecosystem, version, packages, asked)
  ) STRICT;
  CREATE TABLE component_name (   -- the names by which records are asked about a component, as the views' index has them
    name TEXT NOT NULL,
    component INTEGER NOT NULL,
    PRIMARY KEY (name, component)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE tag (
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL UNIQUE,   -- its id in the service's list
    name TEXT NOT NULL,
    sbom TEXT NOT NULL,           -- SHA-256 of its SBOMs; empty: none is stored
    subjects TEXT NOT NULL,       -- JSON: for each SBOM the package URLs of what it describes, and its BOM-Link
    refusal TEXT,                 -- why it is not judged; null: it is
    sbom_gap TEXT,                -- why its SBOMs may not list all of it, in words; null: nothing says so
    platform_gap TEXT,            -- of which platforms of its image they say nothing, in words; null: of none
    packages INTEGER NOT NULL,
    unidentified INTEGER NOT NULL, -- packages of which it is not known who they are
    all_releases INTEGER NOT NULL, -- packages judged by the records of all releases
    binary_only INTEGER NOT NULL, -- packages judged by their own name only, though records name source packages
    not_judged INTEGER NOT NULL,  -- packages that are not judged, or not completely
    unrecorded INTEGER NOT NULL DEFAULT 0, -- others that no record is about
    findings INTEGER NOT NULL,
    fixable INTEGER NOT NULL,
    critical INTEGER NOT NULL,
    high INTEGER NOT NULL,
    suppressed INTEGER NOT NULL,  -- findings that VEX rules out; the other numbers are without them
    vex_stale INTEGER NOT NULL,   -- 1: VEX about it changed since
    images TEXT NOT NULL DEFAULT '[]' -- JSON: for each SBOM the further names of what it describes
  ) STRICT;
  CREATE INDEX tag_by_name ON tag (name);
  CREATE TABLE tag_component (
    tag INTEGER NOT NULL,
    component INTEGER NOT NULL,
    PRIMARY KEY (tag, component)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX tag_of_component ON tag_component (component);
  CREATE TABLE finding (
    component INTEGER NOT NULL,
    record TEXT NOT NULL,
    fixable INTEGER NOT NULL,     -- 1: the record names a fixed version
    patched INTEGER NOT NULL,     -- 1: the service has patched it, says its list of patches
    level INTEGER NOT NULL,       -- severity: 0 critical, then high, medium, low, none; 5 not known
    source TEXT NOT NULL,         -- the source package by whose name it was found; empty: by its own name
    PRIMARY KEY (component, record)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX finding_by_record ON finding (record);
  CREATE TABLE uncompared (       -- records about a component that cannot be compared with its version
    record TEXT NOT NULL,
    component INTEGER NOT NULL,
    PRIMARY KEY (record, component)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX uncompared_of_component ON uncompared (component);
  CREATE TABLE record (           -- those that findings are about
    id TEXT PRIMARY KEY,
    names TEXT NOT NULL           -- JSON: its aliases, and what it is derived from
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE suppressed (       -- findings of tags that VEX rules out
    component INTEGER NOT NULL,
    tag INTEGER NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (component, tag, record)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE vex_document (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,  -- SHA-256, hex
    tags TEXT NOT NULL,           -- JSON: the tags whose document it is, by their ids in the service's list
    believed TEXT NOT NULL        -- JSON: the tags for which it may rule anything out; null: its signature is not believed
  ) STRICT;
  CREATE TABLE vex_statement (    -- which documents say anything about a product and a vulnerability
    place INTEGER NOT NULL,       -- of the product, as the vulnerability 48 bits of a digest: others may be the same; 0: any
    vulnerability INTEGER NOT NULL,
    document INTEGER NOT NULL,
    PRIMARY KEY (place, vulnerability, document)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX vex_statement_of_document ON vex_statement (document);
  CREATE TABLE vex_place (        -- the products that components and tags are
    place INTEGER NOT NULL,
    kind INTEGER NOT NULL,        -- 0: a component, 1: a tag
    owner INTEGER NOT NULL,       -- its id
    PRIMARY KEY (place, kind, owner)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX vex_place_of_owner ON vex_place (kind, owner);
  CREATE TABLE followed (         -- up to which state of the catalog
    name TEXT PRIMARY KEY,        -- vex, withoutVex, catalogAsOf, signatures, ecosystems, scope, images, patches, tags, unrecorded
    state TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE log (              -- what changed in the findings of a tag
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    cause TEXT NOT NULL,          -- records, scope, rollback, sbom, vex, patches
    snapshot TEXT NOT NULL,       -- that caused it: OSV's for records, else the catalog's
    found INTEGER NOT NULL,
    found_fixable INTEGER NOT NULL, -- of these, how many have a fix
    gone INTEGER NOT NULL,
    gone_fixable INTEGER NOT NULL,
    fixes INTEGER NOT NULL,
    fixes_gone INTEGER NOT NULL,
    findings INTEGER NOT NULL,    -- of the tag after it
    fixable INTEGER NOT NULL,
    details TEXT NOT NULL         -- JSON: the first of them
  ) STRICT;
  CREATE INDEX log_of_tag ON log (owner, seq);
  CREATE INDEX log_by_time ON log (at);
`

/** The schema of `findings.db`. It has one step, whose number counts up with each change of the tables, and of what an SBOM or VEX says. */
export const FINDINGS_SCHEMA: Schema = { first: 19, steps: [TABLES] }

/** Returns the database file; safe to delete while nothing runs. */
export function findingsPath(dataDir: string): string {
  return join(derivedDir(dataDir), 'findings.db')
}

/**
 * Opens the database for writing; one process at a time. One that is damaged, or of another program's layout, is deleted and
 * begins again, and `onReset` gets the reason. Throws `storage`.
 */
export function openFindings(dataDir: string, onReset: (reason: string) => void): Db {
  const path = findingsPath(dataDir)
  return namingFaults(
    dataDir,
    () => {
      makeFolder(derivedDir(dataDir))
      try {
        return open(path)
      } catch (error) {
        if (!isUnusable(error)) throw error
        onReset(error instanceof MirrorError && error.code === 'schema' ? 'it is of another version' : 'it is damaged')
        removeFindings(dataDir)
        return open(path)
      }
    },
    path,
  )
}

function open(path: string): Db {
  makeFile(path)
  const db = connect(path, { timeout: 5_000 })
  try {
    const fault = faultOfSeal(db)
    if (fault !== null) throw new MirrorError('corrupt', `${path}: ${fault}`)
    db.pragma('journal_mode = WAL')
    db.pragma('synchronous = NORMAL')
    db.pragma('cache_size = -16384')
    db.pragma('journal_size_limit = 16777216')
    db.pragma('temp_store = FILE')
    refuseForeignSchema(db, FINDINGS_SCHEMA)
    migrate(db, FINDINGS_SCHEMA)
    breakSeal(db)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/**
 * Closes the database after writing, so that it is read without another file beside it: on a full disk there is no room for
 * one. Where somebody reads it just now, or the disk is full already, it stays as it is until the next time.
 */
export function closeFindings(db: Db): void {
  try {
    if (db.pragma('journal_mode = DELETE', { simple: true }) === 'delete') seal(db)
  } catch {
    // every write is in the log beside it
  }
  db.close()
}

/** Returns a text that differs once the database was deleted, replaced or written to; '' where none is found. Never throws. */
export function markOfFindings(dataDir: string): string {
  return fileMark(findingsPath(dataDir))
}

/** Deletes the database. */
export function removeFindings(dataDir: string): void {
  for (const suffix of ['', '-wal', '-shm']) rmSync(findingsPath(dataDir) + suffix, { force: true })
}

/** Reports whether an error shows that the database cannot be used as it is. */
export function isUnusable(error: unknown): boolean {
  const code = systemCode(error) ?? ''
  if (error instanceof MirrorError) return error.code === 'schema' || error.code === 'corrupt'
  return code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')
}

/** Reads from the database; null while there is none, or it is to be made again. Throws `storage`. */
export function withFindings<T>(dataDir: string, use: (db: Db) => T): T | null {
  const path = findingsPath(dataDir)
  if (!isPresent(path)) return null
  return namingFaults(
    dataDir,
    () => {
      let db: Db | null = null
      try {
        const opened = (db = connect(path, { readonly: true, timeout: 5_000 }))
        opened.pragma('mmap_size = 0')
        if (userVersion(opened) === 0) return null
        refuseForeignSchema(opened, FINDINGS_SCHEMA)
        return opened.transaction(() => use(opened)).deferred()
      } catch (error) {
        if (isUnusable(error) || systemCode(error) === 'SQLITE_CANTOPEN') return null
        throw error
      } finally {
        db?.close()
      }
    },
    path,
  )
}

/** Counts the mirrored tags that have findings of records; none where that is not known. Never throws. */
export function tagCounts(dataDir: string, records: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  try {
    withFindings(dataDir, (db) => {
      const count = createTagCount(db)
      for (const record of records) counts.set(record, count(record))
    })
  } catch {
    // It is being made: each record counts as one.
  }
  return counts
}

/** Reads the open findings; null where all mirrored tags were never judged, or the findings cannot be read. Never throws. */
export function readOpenFindings<T>(
  dataDir: string,
  use: (findings: ReturnType<typeof createOpenFindings>) => T,
): T | null {
  try {
    return withFindings(dataDir, (db) => {
      const isJudged = createFindingsReads(db).readState()?.beganAt ?? null
      return isJudged === null ? null : use(createOpenFindings(db))
    })
  } catch {
    return null
  }
}

/** Reads what is known of the findings; null as for `withFindings`. Throws `storage`. */
export function readFindings<T>(dataDir: string, use: (reads: FindingsReads) => T): T | null {
  return withFindings(dataDir, (db) => use(createFindingsReads(db)))
}
