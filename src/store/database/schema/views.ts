import type { Schema } from './schema.ts'
import { IS_UNTIDY } from './untidy-ids.ts'

/**
 * The database of one generation of views (views.db): what lies where in its archives, and which packages each record
 * names. It is written as a whole, or copied from the generation before and changed; once published it is only read.
 */
const TABLES = `
  CREATE TABLE generation (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    snapshot TEXT NOT NULL,       -- the OSV snapshot that it shows
    as_of INTEGER NOT NULL,       -- upstream's date of that, unix milliseconds
    changed INTEGER NOT NULL,     -- Last-Modified of everything in it, unix seconds
    records INTEGER NOT NULL,
    odd INTEGER NOT NULL,         -- how many records are
    form TEXT NOT NULL            -- the settings and the version of the rules by which it was made
  ) STRICT;
  CREATE TABLE view (             -- an ecosystem's folder, as osv.dev's bucket has them
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    records INTEGER NOT NULL,
    prefixes TEXT NOT NULL        -- JSON: the vendor prefixes that were taken off in it; [] for upstream's bytes alone
  ) STRICT;
  CREATE INDEX view_in_any_case ON view (name COLLATE NOCASE);
  CREATE TABLE record (
    num INTEGER PRIMARY KEY,      -- numbers are in the order of the ids, with gaps for new records between
    id TEXT NOT NULL UNIQUE,
    sha256 BLOB NOT NULL,         -- of upstream's bytes
    stamp TEXT NOT NULL,          -- as the index says it
    instant TEXT NOT NULL,        -- when it was modified, in UTC, so that text order is time order
    views TEXT NOT NULL,          -- JSON: the views that it is a member of
    prefixes TEXT NOT NULL,       -- JSON: the vendor prefixes that its derived form lacks
    odd INTEGER NOT NULL          -- 1: something that it names cannot be an ecosystem or a package, or it is no record
  ) STRICT;
  CREATE INDEX untidy ON record (id) WHERE ${IS_UNTIDY};
  CREATE INDEX odd ON record (odd) WHERE odd;
  CREATE TABLE member (           -- a record in a view, and where its stream lies in that view's archive
    view INTEGER NOT NULL,
    num INTEGER NOT NULL,
    derived INTEGER NOT NULL,     -- 1: vendor prefixes are taken off; 0: upstream's bytes
    crc32 INTEGER NOT NULL,       -- of the content
    size INTEGER NOT NULL,        -- of the content
    length INTEGER NOT NULL,      -- of the deflate stream
    place INTEGER NOT NULL,       -- where the stream begins in its part; negative only while the generation is made
    PRIMARY KEY (view, num)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE part (             -- a view's archive in parts of neighbouring members; its directory is the last part
    view INTEGER NOT NULL,
    first INTEGER NOT NULL,       -- the record of the first member
    members INTEGER NOT NULL,
    at INTEGER NOT NULL,          -- where it begins in the archive
    bytes INTEGER NOT NULL,
    entries INTEGER NOT NULL,     -- bytes of its members' entries in the directory
    crc32 INTEGER NOT NULL,
    crc32c INTEGER NOT NULL,
    PRIMARY KEY (view, first)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE affected (         -- packages by the name that a query asks for (\`packageKey\`)
    view INTEGER NOT NULL,
    name TEXT NOT NULL,
    num INTEGER NOT NULL,
    PRIMARY KEY (view, name, num)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE alias (            -- other ids that a record names, for searches
    name TEXT NOT NULL,           -- in upper case
    num INTEGER NOT NULL,
    PRIMARY KEY (name, num)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE asset (            -- what is served as a file, by its path under /osv/
    path TEXT PRIMARY KEY,
    view INTEGER,                 -- null: of all ecosystems
    type TEXT NOT NULL,           -- media type
    file TEXT NOT NULL,           -- name in the generation's folder, made of the digest
    size INTEGER NOT NULL,
    sha256 TEXT NOT NULL,         -- hex
    crc32c INTEGER NOT NULL,
    gzip_file TEXT,               -- the same content as gzip; null where it is only served as it is
    gzip_size INTEGER,
    prefixes TEXT NOT NULL        -- JSON, as those of a view
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX asset_by_view ON asset (view);
  CREATE TABLE ecosystem (        -- ecosystems as records name them, with a release such as Debian:12
    name TEXT PRIMARY KEY,
    records INTEGER NOT NULL      -- how many records name it
  ) STRICT, WITHOUT ROWID;
`

/** The schema of views.db. It has one step: a generation of another layout is built again. */
export const VIEWS_SCHEMA: Schema = { first: 3, steps: [TABLES] }
