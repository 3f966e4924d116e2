import { RELAY_PLACES, RELAY_TABLES, RELAY_UNTYPED } from './relay-schema.ts'

/**
 * The history of `webhooks.db`, one step per version, as in `schema.ts`: never edited once released, only followed by
 * another. It is a file of its own because a sync holds the write lock of mirror.db for seconds, and a delivery must be
 * safe on disk within milliseconds.
 */
export const INBOX_MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE inbox (            -- verified deliveries, each once
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    state TEXT NOT NULL,          -- pending | done | ignored | dead
    type TEXT,                    -- null: malformed
    dialect TEXT NOT NULL,        -- which form of signature matched
    secret TEXT NOT NULL,         -- label of the secret that matched
    target TEXT,                  -- JSON: what the event names; null: nothing that can be used
    received_at INTEGER NOT NULL, -- unix milliseconds, as every *_at
    stored_at INTEGER NOT NULL,
    refreshed_at INTEGER,
    visible_at INTEGER,
    attempts INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    reason TEXT,
    size INTEGER NOT NULL,
    body BLOB NOT NULL            -- as received
  ) STRICT;
  CREATE UNIQUE INDEX inbox_delivery ON inbox (endpoint, webhook_id);
  CREATE INDEX inbox_pending ON inbox (id, due_at) WHERE state = 'pending';
  CREATE INDEX inbox_dead ON inbox (id) WHERE state = 'dead';
  CREATE INDEX inbox_settled ON inbox (received_at) WHERE state <> 'pending';

  CREATE TABLE inbox_tally (      -- rows in each state, kept by the triggers: a count never walks the inbox
    state TEXT PRIMARY KEY,
    rows INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  INSERT INTO inbox_tally VALUES ('pending', 0), ('done', 0), ('ignored', 0), ('dead', 0);
  CREATE TRIGGER inbox_added AFTER INSERT ON inbox BEGIN
    UPDATE inbox_tally SET rows = rows + 1 WHERE state = NEW.state;
  END;
  CREATE TRIGGER inbox_removed AFTER DELETE ON inbox BEGIN
    UPDATE inbox_tally SET rows = rows - 1 WHERE state = OLD.state;
  END;
  CREATE TRIGGER inbox_moved AFTER UPDATE OF state ON inbox WHEN OLD.state <> NEW.state BEGIN
    UPDATE inbox_tally SET rows = rows - 1 WHERE state = OLD.state;
    UPDATE inbox_tally SET rows = rows + 1 WHERE state = NEW.state;
  END;
  `,
  RELAY_TABLES,
  RELAY_PLACES,
  `
  ALTER TABLE inbox ADD COLUMN replays INTEGER NOT NULL DEFAULT 0; -- how often it was made pending anew by hand
  `,
  RELAY_UNTYPED,
]
