import { ANNOUNCED_TABLES, BUNDLE_TABLES, CHANGE_TABLES, LATER_STEPS } from './mirror-features.ts'

/**
 * The database's history, one step per version (`PRAGMA user_version`). Steps are never edited once
 * released, only followed by another.
 *
 * A record is two rows: a small one in id order, so that a diff or an archive scans few pages, and its
 * bytes, appended. Bodies are whole gzip members: sent unchanged to clients that accept gzip, and their
 * deflate streams become `all.zip` without recompression.
 *
 * Steps may call `random_bytes(n)`, which the program brings along: SQLite promises nothing about its own random numbers.
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
    whole INTEGER NOT NULL        -- 1: the check passed in full; 0: something is missing or stale
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
  CREATE TABLE upstream_state (   -- upstream's validators of the stored data; committed with it
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
  CREATE TABLE osv_doubted (      -- stored records to be fetched again although their stamp is the listed one
    id TEXT PRIMARY KEY
  ) STRICT, WITHOUT ROWID;
  `,
  `
  CREATE TABLE catalog_list (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,    -- canonical
    resource TEXT NOT NULL,
    frame TEXT NOT NULL,          -- JSON: upstream's envelope without its items, and where things lie in it
    entries INTEGER NOT NULL,
    changed INTEGER NOT NULL      -- Last-Modified, unix seconds; only ever moves forward
  ) STRICT;
  CREATE TABLE catalog_page (     -- upstream's pages as they were walked
    list INTEGER NOT NULL,
    number INTEGER NOT NULL,
    cursor TEXT,
    next TEXT,
    etag TEXT,
    last_modified TEXT,
    sha256 BLOB NOT NULL,
    entries INTEGER NOT NULL,
    PRIMARY KEY (list, number)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE catalog_entry (    -- items of lists; ordinal = page number x 1,000,000 + place in the page
    rowid INTEGER PRIMARY KEY,
    list INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    id TEXT NOT NULL,
    sha BLOB NOT NULL,
    body BLOB NOT NULL,           -- upstream's bytes of the item
    facet1 TEXT, facet2 TEXT, facet3 TEXT, facet4 TEXT, facet5 TEXT, facet6 TEXT, facet7 TEXT, facet8 TEXT
  ) STRICT;
  CREATE UNIQUE INDEX catalog_entry_place ON catalog_entry (list, ordinal);
  CREATE UNIQUE INDEX catalog_entry_id ON catalog_entry (list, id);
  CREATE INDEX catalog_entry_facet1 ON catalog_entry (list, facet1, ordinal);
  CREATE INDEX catalog_entry_facet2 ON catalog_entry (list, facet2, ordinal);
  CREATE INDEX catalog_entry_facet3 ON catalog_entry (list, facet3, ordinal);
  CREATE INDEX catalog_entry_facet4 ON catalog_entry (list, facet4, ordinal);
  CREATE INDEX catalog_entry_facet5 ON catalog_entry (list, facet5, ordinal);
  CREATE INDEX catalog_entry_facet6 ON catalog_entry (list, facet6, ordinal);
  CREATE INDEX catalog_entry_facet7 ON catalog_entry (list, facet7, ordinal);
  CREATE INDEX catalog_entry_facet8 ON catalog_entry (list, facet8, ordinal);
  CREATE TABLE catalog_answer (
    path TEXT PRIMARY KEY,
    resource TEXT NOT NULL,
    owner TEXT NOT NULL,
    owner_sha BLOB NOT NULL,
    status INTEGER NOT NULL,
    body BLOB,                    -- a gzip member
    size INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    changed INTEGER NOT NULL,
    etag TEXT,
    links TEXT NOT NULL,          -- JSON: where in the answer which document's URL stands
    mentions TEXT NOT NULL        -- JSON: ids of artifact sets (AVRs) that the answer names
  ) STRICT;
  CREATE INDEX catalog_answer_owner ON catalog_answer (owner);
  CREATE TABLE catalog_fetched (  -- answers in hand that are not published yet: a killed crawl goes on from here
    path TEXT PRIMARY KEY,
    resource TEXT NOT NULL,
    owner TEXT NOT NULL,
    owner_sha BLOB NOT NULL,
    status INTEGER NOT NULL,
    body BLOB,
    size INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    etag TEXT,
    links TEXT NOT NULL,
    mentions TEXT NOT NULL
  ) STRICT;
  CREATE TABLE catalog_lacking (  -- paths that the scope wants and the last run could not have
    path TEXT PRIMARY KEY,
    resource TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE catalog_document ( -- documents by their digest, once however many answers name them
    digest TEXT PRIMARY KEY,      -- SHA-256 of the content, hex
    size INTEGER NOT NULL,
    stored INTEGER NOT NULL,      -- bytes of all its chunks
    type TEXT NOT NULL,           -- media type
    changed INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE catalog_chunk (    -- a mebibyte of content each, as a gzip member of its own: joined they are gzip again
    digest TEXT NOT NULL,
    number INTEGER NOT NULL,
    bytes BLOB NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX catalog_chunk_place ON catalog_chunk (digest, number);
  `,
  `
  CREATE TABLE local_key (        -- who may read the private paths; no key is kept in clear
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice, so a line in a log always means the same key
    name TEXT NOT NULL,           -- for people; may be empty
    prefix TEXT NOT NULL,         -- how the key begins, so that its owner can tell it from others
    hash BLOB NOT NULL UNIQUE,    -- HMAC-SHA256 of the key, keyed from the secret below
    created_at INTEGER NOT NULL,
    revoked_at INTEGER            -- null: valid
  ) STRICT;
  CREATE TABLE secret (           -- this mirror's own; one row, never leaves the database
    only INTEGER PRIMARY KEY CHECK (only = 1),
    bytes BLOB NOT NULL
  ) STRICT;
  INSERT INTO secret VALUES (1, random_bytes(32));
  `,
  `
  CREATE TABLE osv_part (         -- the published all.zip in parts of neighbouring members, in id order
    first TEXT PRIMARY KEY,       -- ids from here to the next part's; '' for the first part, which may be empty
    members INTEGER NOT NULL,
    bytes INTEGER NOT NULL,       -- local headers and streams, as they lie in the file one part after the other
    crc32c INTEGER NOT NULL,      -- of these bytes
    sha256 BLOB NOT NULL,         -- of these bytes
    dirty INTEGER NOT NULL        -- 1: a record of it was written since, so the part must be built again
  ) STRICT, WITHOUT ROWID;
  `,
  ANNOUNCED_TABLES,
  CHANGE_TABLES,
  `
  -- CRC-32 of the stored gzip member itself, so that it can be checked without inflating it; null: written before.
  ALTER TABLE osv_record ADD COLUMN body_crc32 INTEGER;
  `,
  BUNDLE_TABLES,
  `
  -- JSON: names of the fields that the list's items have; null: never learned, as for a list that a bundle brought.
  ALTER TABLE catalog_list ADD COLUMN fields TEXT;
  `,
  `
  -- Upstream's date when it last gave or confirmed the answer, unix milliseconds; null: before this was noted. Beside the
  -- digests: that an answer was confirmed makes no other snapshot.
  ALTER TABLE catalog_answer ADD COLUMN confirmed_at INTEGER;
  ALTER TABLE catalog_fetched ADD COLUMN confirmed_at INTEGER;
  `,
  `
  -- Upstream's date when the list was last walked, unix milliseconds; null: before this was noted.
  ALTER TABLE catalog_list ADD COLUMN confirmed_at INTEGER;
  -- The VEX answer whose confirmation is the oldest, for the date of the repository made of all of them.
  CREATE INDEX catalog_answer_vex ON catalog_answer (coalesce(confirmed_at, changed * 1000))
    WHERE status = 200 AND substr(path, -4) = '/vex';
  `,
  ...LATER_STEPS,
]
