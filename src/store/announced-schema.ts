/** What events announce and what runs bring, in mirror.db: a step of its history, in `schema.ts`. */
export const ANNOUNCED_TABLES = `
  CREATE TABLE catalog_text (     -- every short text of a listed tag: what an event names is found without a scan
    text TEXT NOT NULL,
    entry INTEGER NOT NULL,       -- rowid of the catalog_entry
    PRIMARY KEY (text, entry)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX catalog_text_entry ON catalog_text (entry);
  CREATE TRIGGER catalog_text_added AFTER INSERT ON catalog_entry
    WHEN (SELECT resource FROM catalog_list WHERE id = NEW.list) = 'tags'
  BEGIN
    INSERT OR IGNORE INTO catalog_text SELECT field.value, NEW.rowid
      FROM json_tree(iif(json_valid(CAST(NEW.body AS TEXT)), CAST(NEW.body AS TEXT), 'null')) AS field
      WHERE field.type = 'text' AND length(field.value) <= 500;
  END;
  CREATE TRIGGER catalog_text_removed AFTER DELETE ON catalog_entry
    WHEN (SELECT resource FROM catalog_list WHERE id = OLD.list) = 'tags'
  BEGIN
    DELETE FROM catalog_text WHERE entry = OLD.rowid;
  END;
  INSERT OR IGNORE INTO catalog_text SELECT field.value, e.rowid
    FROM catalog_list l JOIN catalog_entry e ON e.list = l.id,
      json_tree(iif(json_valid(CAST(e.body AS TEXT)), CAST(e.body AS TEXT), 'null')) AS field
    WHERE l.resource = 'tags' AND field.type = 'text' AND length(field.value) <= 500;

  CREATE TABLE catalog_arrival (  -- tags that a published snapshot brought, or another digest of them
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL,
    at INTEGER NOT NULL,
    repository TEXT,              -- as upstream's item says it, as tag and digest; null: it does not
    tag TEXT,
    digest TEXT,
    trigger TEXT NOT NULL         -- of the run
  ) STRICT;
  CREATE INDEX catalog_arrival_at ON catalog_arrival (at);
`
