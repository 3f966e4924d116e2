import { CATALOG_TABLES } from './catalog.ts'
import { IS_UNTIDY } from './untidy-ids.ts'
import type { Schema } from './schema.ts'

/**
 * The tables of `mirror.db`. Every `*_at`, `as_of` and `at` is in Unix milliseconds; every `changed` is a Last-Modified in Unix seconds, which only ever
 * moves forward.
 *
 * A record is two rows: a small one in id order, so that a diff or an archive scans few pages, and its bytes, appended. Bodies are whole gzip members:
 * they are sent unchanged to clients that accept gzip, and their deflate streams become `all.zip` without recompression.
 *
 * SQLite promises nothing about its own random numbers: the program brings `random_bytes(n)` along.
 */
const TABLES = `
  -- This mirror's own: keys, identity, bundles. No sync brings them back, so they lie first in the file: a database that is cut off still has them.

  CREATE TABLE local_key (        -- who may read the private paths; no key is kept in clear
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice, so a line in a log always means the same key
    name TEXT NOT NULL,           -- for people; may be empty
    prefix TEXT NOT NULL,         -- how the key begins, so that its owner can tell it from others
    hash BLOB NOT NULL UNIQUE,    -- HMAC-SHA256 of the key, keyed from the secret below
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,           -- null: valid
    created_by TEXT,              -- the operating system's user who made the key; null: the daemon
    revoked_by TEXT               -- who revoked it
  ) STRICT;
  CREATE TABLE secret (           -- one row, never leaves the database
    only INTEGER PRIMARY KEY CHECK (only = 1),
    bytes BLOB NOT NULL
  ) STRICT;
  INSERT INTO secret VALUES (1, random_bytes(32));

  CREATE TABLE mirror_identity (  -- who signs for what is exported here; one row
    only INTEGER PRIMARY KEY CHECK (only = 1),
    id TEXT NOT NULL              -- 32 hex digits
  ) STRICT;
  INSERT INTO mirror_identity VALUES (1, lower(hex(random_bytes(16))));
  CREATE TABLE bundle_export (    -- every state that was exported, so that later deltas can build on it
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice, and never goes back
    digest TEXT NOT NULL,         -- of the sources exported, hex
    sources TEXT NOT NULL,        -- JSON: source -> its digest, snapshot and as-of
    exported_at INTEGER NOT NULL,
    summary BLOB                  -- gzipped: key and hash of every row; null: forgotten
  ) STRICT;
  CREATE INDEX bundle_export_digest ON bundle_export (digest);
  CREATE TABLE bundle_import (    -- every bundle that was applied
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    mirror TEXT NOT NULL,         -- identity of the mirror that made it
    sequence INTEGER NOT NULL,
    kind TEXT NOT NULL,           -- full | delta
    digest TEXT NOT NULL,
    sources TEXT NOT NULL,        -- JSON: source -> digest
    key_id TEXT,                  -- of the trusted key that signed it; null: unsigned
    created_at INTEGER NOT NULL,
    as_of INTEGER NOT NULL,       -- the earliest of its sources
    imported_at INTEGER NOT NULL,
    rollback INTEGER NOT NULL,    -- 1: it was older than the stored data, and was applied with --allow-rollback
    file TEXT NOT NULL
  ) STRICT;

  -- Runs and snapshots

  CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL,
    kind TEXT NOT NULL,           -- sync | reconcile | approve | repair
    trigger TEXT NOT NULL,        -- schedule | start | command
    pid INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,             -- null: running, or crashed
    state TEXT NOT NULL,          -- running | complete | partial | quarantined | failed
    as_of INTEGER,                -- upstream's own clock when it confirmed what is stored
    snapshot TEXT,                -- the snapshot that serves after this run
    code TEXT,                    -- error code, when the run failed
    message TEXT,                 -- what happened, in one line
    facts TEXT NOT NULL           -- JSON: counts, bytes, samples
  ) STRICT;
  CREATE INDEX run_by_source ON run (source, id);

  CREATE TABLE snapshot (         -- the published one of each source
    source TEXT PRIMARY KEY,
    id TEXT NOT NULL,             -- digest of everything the snapshot serves, hex
    sequence INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    published_at INTEGER NOT NULL,
    as_of INTEGER NOT NULL,
    records INTEGER NOT NULL,
    whole INTEGER NOT NULL,       -- 1: the check passed in full; 0: something is missing or stale
    scope TEXT,                   -- JSON: the settings of the scope that it was made with; null: everything is in scope
    content_digest TEXT           -- hex: the same for equal content on any mirror
  ) STRICT;

  CREATE TABLE quarantine (       -- what runs refused
    run_id INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    path TEXT NOT NULL,           -- the document that was refused
    reason TEXT NOT NULL,
    sha256 BLOB NOT NULL,
    body BLOB NOT NULL,           -- the refused document, a gzip member
    etag TEXT,
    last_modified TEXT,
    as_of INTEGER NOT NULL,
    decision TEXT,                -- null: open | approved | rejected | superseded
    decided_at INTEGER
  ) STRICT;

  CREATE TABLE guard_doubt (      -- what hides something and was below the limits of the guard; no bundle has it
    source TEXT NOT NULL,
    kind TEXT NOT NULL,           -- of doubt
    name TEXT NOT NULL,           -- of the record or item
    at INTEGER NOT NULL,          -- when a run published it
    weight INTEGER NOT NULL,      -- how many it counts as
    packages TEXT NOT NULL,       -- JSON: names of packages that it is about
    PRIMARY KEY (source, kind, name)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX guard_doubt_at ON guard_doubt (source, at);
  CREATE TABLE guard_settled (    -- when doubts of a kind were last published above its limits: they were reported or approved
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (source, kind)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE repair_left (      -- sources that the repair which made this database is to mirror again
    source TEXT PRIMARY KEY,
    undated INTEGER NOT NULL      -- 1: dates of records were lost, so those that begin are noted as the latest
  ) STRICT, WITHOUT ROWID;

  -- Documents that are served whole, and what upstream said of them

  CREATE TABLE document (         -- all.json, patch feed, system matrix, extra feeds
    path TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    present INTEGER NOT NULL,     -- 0: upstream answered 404
    body BLOB,                    -- a gzip member
    size INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    changed INTEGER NOT NULL,
    entries INTEGER NOT NULL      -- packages or records inside, for the guard
  ) STRICT;
  CREATE TABLE upstream_state (   -- upstream's validators of the stored data; committed with it
    path TEXT PRIMARY KEY,
    etag TEXT,
    last_modified TEXT,
    body BLOB                     -- upstream's own bytes (a gzip member), only where the mirror serves others
  ) STRICT;

  -- Records

  CREATE TABLE osv_body (
    rowid INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL           -- a gzip member
  ) STRICT;
  CREATE TABLE osv_record (
    id TEXT PRIMARY KEY,
    body INTEGER NOT NULL,        -- row of osv_body
    modified TEXT NOT NULL,       -- as the served index says it, byte for byte
    crc32 INTEGER NOT NULL,       -- of the content
    size INTEGER NOT NULL,        -- of the content
    sha256 BLOB NOT NULL,         -- of the content
    changed INTEGER NOT NULL,
    as_of INTEGER,                -- upstream's date of these bytes; null: unknown
    body_crc32 INTEGER,           -- of the stored gzip member itself, so that it can be checked without inflating it
    fix INTEGER                   -- 1: the content names a fix; null: not examined
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX osv_untidy ON osv_record (id) WHERE ${IS_UNTIDY};
  CREATE TABLE osv_tombstone (    -- records that were removed
    id TEXT PRIMARY KEY,
    removed_at INTEGER NOT NULL,
    run_id INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE osv_doubted (      -- stored records to be fetched again although their stamp is the listed one
    id TEXT PRIMARY KEY
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE osv_missing (      -- ids that upstream's index lists and a partial snapshot does not have; committed with it
    id TEXT PRIMARY KEY
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE osv_outside (      -- listed records that are out of scope by their content, so that they are not fetched again
    id TEXT PRIMARY KEY,
    modified TEXT NOT NULL        -- the index's stamp of the version that was read
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE osv_superseded (   -- records as they were before a snapshot replaced or removed them
    id TEXT NOT NULL,
    log INTEGER NOT NULL,         -- the row of change_log that replaced this version; 0: not published yet
    modified TEXT NOT NULL,       -- as the served index said it
    size INTEGER NOT NULL,        -- of the content
    sha256 BLOB NOT NULL,         -- of the content
    body INTEGER,                 -- row of osv_body, once for equal bytes of an id; null: those of the next version
    PRIMARY KEY (id, log)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX osv_superseded_log ON osv_superseded (log);

  CREATE TABLE osv_dates (        -- every record that was ever published here; rows are never deleted
    id TEXT PRIMARY KEY,
    first_seen INTEGER NOT NULL,  -- publication of the first snapshot with it, as all others
    changed_at INTEGER NOT NULL,  -- when its content last became another one; first_seen if it never did
    fix_seen INTEGER,             -- the first snapshot in which it named a fix; null: none did, or unknown (flags)
    removed_at INTEGER,           -- the last time that it was removed; null: never
    returned_at INTEGER,          -- when it was there again after that; null: it was not
    flags INTEGER NOT NULL,       -- at the latest then: 1 first_seen, 2 fix_seen, 4 changed_at
    content BLOB                  -- the first 8 bytes of the SHA-256 of its content; null: unknown
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE osv_archive (      -- the derived all.zip of the snapshot, one row
    only INTEGER PRIMARY KEY CHECK (only = 1),
    file TEXT NOT NULL,
    size INTEGER NOT NULL,
    crc32c INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    changed INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE osv_part (         -- the published all.zip in parts of neighbouring members, in id order
    first TEXT PRIMARY KEY,       -- ids from here to the next part's; '' for the first part, which may be empty
    members INTEGER NOT NULL,
    bytes INTEGER NOT NULL,       -- local headers and streams, as they lie in the file one part after the other
    crc32c INTEGER NOT NULL,      -- of these bytes
    sha256 BLOB NOT NULL,         -- of these bytes
    dirty INTEGER NOT NULL        -- 1: a record of it was written since, so the part must be built again
  ) STRICT, WITHOUT ROWID;

${CATALOG_TABLES}
  -- The change log

  CREATE TABLE change_log (       -- every published snapshot of every source, and what it changed
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice: readers name it as the place where they stopped
    source TEXT NOT NULL,
    snapshot TEXT NOT NULL,
    previous TEXT,                -- the source's snapshot before it; null: none
    sequence INTEGER NOT NULL,
    published_at INTEGER NOT NULL,
    as_of INTEGER NOT NULL,
    records INTEGER NOT NULL,
    added INTEGER,                -- names in change_name; null: not counted
    changed INTEGER,
    removed INTEGER,
    complete INTEGER NOT NULL,    -- 0: everything may have changed, no names are kept
    -- JSON: what was published although the guard doubted it, {"run":4,"doubted":{"fixLowered":["ID"]}}; null: nothing that is
    -- known. It is this mirror's own: no bundle has it, and a row that is taken over from another mirror has none.
    doubts TEXT
  ) STRICT;
  CREATE INDEX change_log_source ON change_log (source, id);
  CREATE INDEX change_log_snapshot ON change_log (snapshot);
  CREATE INDEX change_log_previous ON change_log (previous);
  CREATE TABLE change_name (
    log INTEGER NOT NULL,
    name TEXT NOT NULL,           -- an OSV id, or a path
    kind INTEGER NOT NULL,        -- 0 added, 1 changed, 2 removed
    PRIMARY KEY (log, name)
  ) STRICT, WITHOUT ROWID;
`

const EXPORTED_DOCUMENTS = `
  CREATE TABLE exported_document ( -- the documents of exported states whose summary is stored, for thin bundles
    sequence INTEGER NOT NULL,
    path TEXT NOT NULL,
    digest BLOB NOT NULL,         -- SHA-256 of the content
    PRIMARY KEY (sequence, path)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE exported_body (
    digest BLOB PRIMARY KEY,
    bytes BLOB NOT NULL           -- a gzip member
  ) STRICT, WITHOUT ROWID;
`

const DATE_FLOOR = `
  CREATE TABLE date_floor (       -- the earliest Last-Modified that is served: raised by each way back to older data, never lowered
    only INTEGER PRIMARY KEY CHECK (only = 1),
    seconds INTEGER NOT NULL      -- Unix seconds
  ) STRICT;
`

/** The schema of `mirror.db`. A change of it is a further step. */
export const MIRROR_SCHEMA: Schema = { first: 26, steps: [TABLES, EXPORTED_DOCUMENTS, DATE_FLOOR] }
