import { IS_UNTIDY } from './untidy-ids.ts'

/** The schema step for what an answer about an id that is not stored looks up. */
export const MISSING_TABLES = `
  -- Ids that upstream's index lists and a partial snapshot does not have; committed with the snapshot.
  CREATE TABLE osv_missing (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
  -- Which ids a partial snapshot of an earlier version lacks was not stored: the next sync fetches the index and stores it.
  DELETE FROM upstream_state WHERE path = '/external/osv/all.json' AND body IS NOT NULL;
  CREATE INDEX osv_untidy ON osv_record (id) WHERE ${IS_UNTIDY};
  `
