import { IS_UNTIDY } from '../untidy-ids.ts'
import { DATES_TABLES } from './dates.ts'

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
    rollback INTEGER NOT NULL,    -- 1: it was older than the stored data, and was applied with --allow-rollback
    file TEXT NOT NULL
  ) STRICT;
`

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

/** The schema step for the scope of OSV and for digests of content alone. */
const SCOPE_TABLES = `
  CREATE TABLE osv_outside (      -- listed records that are out of scope by their content, so that they are not fetched again
    id TEXT PRIMARY KEY,
    modified TEXT NOT NULL        -- the index's stamp of the version that was read
  ) STRICT, WITHOUT ROWID;
  -- JSON: the settings of the scope that the snapshot was made with; null: everything is in scope.
  ALTER TABLE snapshot ADD COLUMN scope TEXT;
  -- Hex: the same for equal content on any mirror; null: published by an earlier version, and not computed since.
  ALTER TABLE snapshot ADD COLUMN content_digest TEXT;
  `

/** The schema step for what an answer about an id that is not stored looks up. */
const MISSING_TABLES = `
  -- Ids that upstream's index lists and a partial snapshot does not have; committed with the snapshot.
  CREATE TABLE osv_missing (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
  -- Which ids a partial snapshot of an earlier version lacks was not stored: the next sync fetches the index and stores it.
  DELETE FROM upstream_state WHERE path = '/external/osv/all.json' AND body IS NOT NULL;
  CREATE INDEX osv_untidy ON osv_record (id) WHERE ${IS_UNTIDY};
  `

/** The schema step for who made and revoked a local key. */
const KEY_COLUMNS = `
  -- The operating system's user who made or revoked the key; null: the daemon, or before this was noted.
  ALTER TABLE local_key ADD COLUMN created_by TEXT;
  ALTER TABLE local_key ADD COLUMN revoked_by TEXT;
  `

/** The schema step for superseded versions of records. */
const SUPERSEDED_TABLES = `
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
  `

/** The schema step for why a path of the catalog is missing. */
const REASON_COLUMN = `
  -- Why the last run that tried could not have it; null: a bundle brought the row, or an earlier version wrote it.
  ALTER TABLE catalog_lacking ADD COLUMN reason TEXT;
  `

/** The schema step for what the guard doubted of a snapshot. */
const DOUBTS_COLUMN = `
  -- JSON: what was published although the guard doubted it, {"run":4,"doubted":{"fixLowered":["ID"]}}; null: nothing that is
  -- known. It is this mirror's own: no bundle has it, and a row that is taken over from another mirror has none.
  ALTER TABLE change_log ADD COLUMN doubts TEXT;
  `

/** The schema step for a repair that is interrupted. */
const REPAIR_TABLE = `
  CREATE TABLE repair_left (      -- sources that the repair which made this database is to mirror again
    source TEXT PRIMARY KEY,
    undated INTEGER NOT NULL      -- 1: dates of records were lost, so those that begin are noted as the latest
  ) STRICT, WITHOUT ROWID;
  `

/** The schema step for the paths of the catalog that the service refuses, and for the media types of its answers. */
const STATES_AND_TYPES = `
  -- 403: the service refuses the path to the credential; null: any other reason.
  ALTER TABLE catalog_lacking ADD COLUMN status INTEGER;
  -- The media type that upstream gives to JSON; null: application/json, or a bundle brought the row.
  ALTER TABLE catalog_answer ADD COLUMN type TEXT;
  ALTER TABLE catalog_fetched ADD COLUMN type TEXT;
  -- JSON without a document was kept in place of one, such as {"status":"processing"}: the next run asks again.
  UPDATE catalog_answer SET owner_sha = x'00' WHERE status = 200 AND links = '[]' AND (path LIKE '/v1/%/sbom'
    OR path LIKE '/v1/%/vex' OR path LIKE '/v1/%/provenance' OR path LIKE '/packages/%/provenance/%');
  `

/** The schema step for on what the completeness of lists rests. */
const EVIDENCE_COLUMN = `
  -- JSON: {"grade":"proved","why":"its total was reached","probed":null}; null: never judged, as for a list that a bundle
  -- brought. It is this mirror's own: no bundle has it.
  ALTER TABLE catalog_list ADD COLUMN evidence TEXT;
  `

/** The schema step for what hides something and was below the limits of the guard, or was decided about. */
const GUARD_TABLES = `
  CREATE TABLE guard_doubt (      -- it is this mirror's own: no bundle has it
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
  `

/** The schema step for what the signatures of artifacts came to. */
const SIGNATURE_TABLE = `
  -- It is this mirror's own: no bundle has it, and what a bundle brings is verified again.
  CREATE TABLE catalog_signature (
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
  `

/** The schema step for what bundles carry of whom their mirror trusts. */
const TRUST_TABLE = `
  CREATE TABLE carried_trust (    -- the trust root for the signatures of artifacts that the last bundle with one brought
    place INTEGER PRIMARY KEY,
    body TEXT NOT NULL            -- public keys in PEM, or a trusted_root.json of Sigstore
  ) STRICT;
  `

/** The steps after those that `mirror.ts` lists; a new one is added at the end. */
export const LATER_STEPS: readonly string[] = [
  MISSING_TABLES,
  KEY_COLUMNS,
  SCOPE_TABLES,
  SUPERSEDED_TABLES,
  REASON_COLUMN,
  DATES_TABLES,
  DOUBTS_COLUMN,
  REPAIR_TABLE,
  STATES_AND_TYPES,
  EVIDENCE_COLUMN,
  GUARD_TABLES,
  SIGNATURE_TABLE,
  TRUST_TABLE,
]
