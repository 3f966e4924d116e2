/** The tables of `mirror.db` for the catalog. */
export const CATALOG_TABLES = `
  -- The catalog: lists, their items, answers about items, and documents

  CREATE TABLE catalog_list (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,    -- canonical
    resource TEXT NOT NULL,
    frame TEXT NOT NULL,          -- JSON: upstream's envelope without its items, and where things lie in it
    entries INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    fields TEXT,                  -- JSON: names of the fields that its items have; null: never learned, as for a list that a bundle brought
    confirmed_at INTEGER,         -- upstream's date when it was last walked; null: unknown
    -- JSON: {"grade":"proved","why":"its total was reached","probed":null}; null: never judged, as for a list that a bundle
    -- brought. It is this mirror's own: no bundle has it.
    evidence TEXT
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

  CREATE TABLE catalog_answer (   -- published answers about items
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
    mentions TEXT NOT NULL,       -- JSON: ids of artifact sets (AVRs) that the answer names
    -- Upstream's date when it last gave or confirmed the answer; null: unknown. Beside the digests: that an answer was
    -- confirmed makes no other snapshot.
    confirmed_at INTEGER,
    type TEXT                     -- the media type that upstream gives to JSON; null: application/json, or a bundle brought the row
  ) STRICT;
  CREATE INDEX catalog_answer_owner ON catalog_answer (owner);
  -- The VEX answer whose confirmation is the oldest, for the date of the repository made of all of them.
  CREATE INDEX catalog_answer_vex ON catalog_answer (coalesce(confirmed_at, changed * 1000))
    WHERE status = 200 AND substr(path, -4) = '/vex';
  CREATE TABLE catalog_fetched (  -- answers that are fetched and not published yet: a killed crawl goes on from here; columns as above
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
    mentions TEXT NOT NULL,
    confirmed_at INTEGER,
    type TEXT
  ) STRICT;
  CREATE TABLE catalog_lacking (  -- paths that the scope wants and the last run could not have
    path TEXT PRIMARY KEY,
    resource TEXT NOT NULL,
    reason TEXT,                  -- why the last run that tried could not have it; null: a bundle brought the row
    status INTEGER                -- 403: the service refuses the path to the credential; null: any other reason
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE catalog_signature ( -- what signatures came to; no bundle has it: what a bundle brings is verified again
    path TEXT NOT NULL,           -- of the answer
    fetched INTEGER NOT NULL,     -- 1: of an answer that is not published yet
    answer TEXT NOT NULL,         -- SHA-256 of what identifies its documents, hex
    basis TEXT NOT NULL,          -- digest of the settings and keys that it was verified by, hex
    state TEXT NOT NULL,          -- verified | failed | none
    signer TEXT,
    reason TEXT,                  -- why it is not verified
    subject TEXT,                 -- the image digest of the catalog that it was compared with; null: the catalog says none
    enforced INTEGER NOT NULL,    -- 1: what is not verified is not believed
    PRIMARY KEY (path, fetched)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE carried_trust (    -- the trust root for signatures that the last bundle with one brought
    place INTEGER PRIMARY KEY,
    body TEXT NOT NULL            -- public keys in PEM, or a trusted_root.json of Sigstore
  ) STRICT;

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
`
