/** The change log, in mirror.db: a step of its history, in `schema.ts`. */
export const CHANGE_TABLES = `
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
    complete INTEGER NOT NULL     -- 0: everything may have changed, no names are kept
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
  INSERT INTO change_log (source, snapshot, sequence, published_at, as_of, records, complete)
    SELECT source, id, sequence, published_at, as_of, records, 0 FROM snapshot ORDER BY published_at;
`
