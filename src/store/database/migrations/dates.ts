/**
 * The schema step for since when each record is known: a step of the history, in `mirror.ts`. What is stored already was
 * there at the latest when the change log begins to name every change; exact only where that is the first snapshot.
 */
export const DATES_TABLES = `
  CREATE TABLE osv_dates (        -- every record that was ever published here; rows are never deleted
    id TEXT PRIMARY KEY,
    first_seen INTEGER NOT NULL,  -- publication of the first snapshot with it, unix milliseconds, as all others
    changed_at INTEGER NOT NULL,  -- when its content last became another one; first_seen if it never did
    fix_seen INTEGER,             -- the first snapshot in which it named a fix; null: none did, or unknown (flags)
    removed_at INTEGER,           -- the last time that it was removed; null: never
    returned_at INTEGER,          -- when it was there again after that; null: it was not
    flags INTEGER NOT NULL,       -- at the latest then: 1 first_seen, 2 fix_seen, 4 changed_at; 8: content not examined for a fix
    content BLOB                  -- the first 8 bytes of the SHA-256 of its content; null: unknown
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX osv_dates_unexamined ON osv_dates (id) WHERE flags >= 8;
  -- 1: the content names a fix; null: written before this was noted.
  ALTER TABLE osv_record ADD COLUMN fix INTEGER;

  CREATE TABLE dates_base AS      -- from here on every change is named: the newest row without names, or the oldest row
    SELECT id, published_at AS at, previous IS NULL AND sequence = 1 AS whole FROM change_log
    WHERE source = 'osv' ORDER BY complete, iif(complete = 0, -id, id) LIMIT 1;
  INSERT INTO dates_base
    SELECT 0, coalesce((SELECT published_at FROM snapshot WHERE source = 'osv'), unixepoch() * 1000), 0
    WHERE NOT EXISTS (SELECT 1 FROM dates_base);
  CREATE TABLE dates_named AS
    SELECT n.name, min(l.id * 4 + n.kind) % 4 = 0 AS begins, count(*) AS changes, min(l.published_at) AS first,
      max(iif(n.kind < 2, l.published_at, NULL)) AS last, max(iif(n.kind = 2, l.published_at, NULL)) AS removed,
      max(iif(n.kind = 0, l.published_at, NULL)) AS added
    FROM change_log l JOIN change_name n ON n.log = l.id
    WHERE l.source = 'osv' AND l.id > (SELECT id FROM dates_base) GROUP BY n.name;
  CREATE UNIQUE INDEX dates_named_name ON dates_named (name);
  INSERT INTO osv_dates (id, first_seen, changed_at, removed_at, returned_at, flags, content)
    SELECT r.id, iif(n.begins, n.first, b.at), coalesce(n.last, b.at), n.removed, iif(n.removed, n.added, NULL),
      8 + iif(b.whole, 0, 1) + iif(b.whole AND (n.name IS NULL OR n.begins AND n.changes = 1), 0, 4), substr(r.sha256, 1, 8)
    FROM osv_record r JOIN dates_base b LEFT JOIN dates_named n ON n.name = r.id ORDER BY r.id;
  -- The content of removed records is lost: whether they named a fix is unknown.
  INSERT OR IGNORE INTO osv_dates (id, first_seen, changed_at, removed_at, flags)
    SELECT t.id, min(iif(n.begins, n.first, b.at), t.removed_at), min(coalesce(n.last, b.at), t.removed_at), t.removed_at,
      2 + 4 + iif(b.whole, 0, 1)
    FROM osv_tombstone t JOIN dates_base b LEFT JOIN dates_named n ON n.name = t.id ORDER BY t.id;
  DROP TABLE dates_named;
  DROP TABLE dates_base;
  `
