/**
 * The database's history, one step per version (`PRAGMA user_version`). Steps are never edited once
 * released, only followed by another.
 *
 * A record is two rows: a small one in id order, so that a diff or an archive scans few pages, and its
 * bytes, appended. Bodies are whole gzip members: sent as they lie to whoever accepts gzip, and their
 * deflate streams become `all.zip` without recompression.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL,
    kind TEXT NOT NULL,          -- sync | reconcile | approve | repair
    trigger TEXT NOT NULL,       -- schedule | start | command
    pid INTEGER NOT NULL,
    started_at INTEGER NOT NULL, -- unix milliseconds, as every *_at
    ended_at INTEGER,            -- null: running, or crashed
    state TEXT NOT NULL,         -- running | complete | partial | quarantined | failed
    as_of INTEGER,               -- upstream's own clock when it confirmed what we hold, unix milliseconds
    snapshot TEXT,               -- the snapshot that serves after this run
    code TEXT,                   -- error code, when the run failed
    message TEXT,                -- what happened, in one line
    facts TEXT NOT NULL          -- JSON: counts, bytes, samples
  ) STRICT;
  CREATE INDEX run_by_source ON run (source, id);

  CREATE TABLE snapshot (
    source TEXT PRIMARY KEY,
    id TEXT NOT NULL,             -- digest of everything the snapshot serves, hex
    sequence INTEGER NOT NULL,
    run_id INTEGER NOT NULL,
    published_at INTEGER NOT NULL,
    as_of INTEGER NOT NULL,
    records INTEGER NOT NULL,
    whole INTEGER NOT NULL        -- 1: the proof held in full; 0: something is missing or stale
  ) STRICT;

  CREATE TABLE osv_body (
    rowid INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL           -- a gzip member
  ) STRICT;
  CREATE TABLE osv_record (
    id TEXT PRIMARY KEY,
    body INTEGER NOT NULL,
    modified TEXT NOT NULL,       -- as the served index says it, byte for byte
    crc32 INTEGER NOT NULL,       -- of the content
    size INTEGER NOT NULL,        -- of the content
    sha256 BLOB NOT NULL,         -- of the content
    changed INTEGER NOT NULL,     -- Last-Modified, unix seconds; only ever moves forward
    as_of INTEGER                 -- upstream's date of these bytes, unix milliseconds; null: unknown
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE osv_tombstone (
    id TEXT PRIMARY KEY,
    removed_at INTEGER NOT NULL,
    run_id INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE osv_archive (      -- the derived all.zip of the snapshot, one row
    only INTEGER PRIMARY KEY CHECK (only = 1),
    file TEXT NOT NULL,
    size INTEGER NOT NULL,
    crc32c INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    changed INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE document (         -- what is served whole: all.json, patch feed, system matrix, extra feeds
    path TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    present INTEGER NOT NULL,     -- 0: upstream answered 404
    body BLOB,                    -- a gzip member
    size INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    changed INTEGER NOT NULL,
    entries INTEGER NOT NULL      -- packages or records inside, for the guard
  ) STRICT;
  CREATE TABLE upstream_state (   -- what upstream said when it gave what is held; committed with it
    path TEXT PRIMARY KEY,
    etag TEXT,
    last_modified TEXT,
    body BLOB                     -- upstream's own bytes (a gzip member), only where the mirror serves others
  ) STRICT;

  CREATE TABLE quarantine (
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
  `,
  `
  CREATE TABLE osv_part (         -- the published all.zip in parts of neighbouring members, in id order
    first TEXT PRIMARY KEY,       -- ids from here to the next part's; '' for the first part, which may be empty
    members INTEGER NOT NULL,
    bytes INTEGER NOT NULL,       -- local headers and streams, as they lie in the file one part after the other
    crc32c INTEGER NOT NULL,      -- of these bytes
    sha256 BLOB NOT NULL,         -- of these bytes
    dirty INTEGER NOT NULL        -- 1: a record of it was written since, so the part must be made anew
  ) STRICT, WITHOUT ROWID;
  `,
]
