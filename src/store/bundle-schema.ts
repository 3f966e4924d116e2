/** What carries a mirror across a gap, in mirror.db: a step of its history, in `schema.ts`. */
export const BUNDLE_TABLES = `
  CREATE TABLE mirror_identity (  -- who signs for what is exported here; one row
    only INTEGER PRIMARY KEY CHECK (only = 1),
    id TEXT NOT NULL              -- 32 hex digits
  ) STRICT;
  INSERT INTO mirror_identity VALUES (1, lower(hex(random_bytes(16))));
  CREATE TABLE bundle_export (    -- every state that was exported, so that later deltas can build on it
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice, and never goes back
    digest TEXT NOT NULL,         -- of the sources exported, hex
    sources TEXT NOT NULL,        -- JSON: source -> its digest, snapshot and as-of
    exported_at INTEGER NOT NULL, -- unix milliseconds, as every *_at and as_of
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
    rollback INTEGER NOT NULL,    -- 1: it was older than what was held, and was told to be applied nevertheless
    file TEXT NOT NULL
  ) STRICT;
`
