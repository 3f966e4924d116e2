import type { Schema } from './schema.ts'

/**
 * The tables of `webhooks.db`; every `*_at` is in Unix milliseconds. It is a file of its own because a sync holds the write lock of mirror.db for
 * seconds, and a delivery must be safe on disk within milliseconds.
 */
const TABLES = `
  -- What is received

  CREATE TABLE inbox (            -- verified deliveries, each once
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    state TEXT NOT NULL,          -- pending | done | ignored | dead
    type TEXT,                    -- null: malformed
    dialect TEXT NOT NULL,        -- which form of signature matched
    secret TEXT NOT NULL,         -- label of the secret that matched
    target TEXT,                  -- JSON: what the event names; null: nothing that can be used
    received_at INTEGER NOT NULL,
    stored_at INTEGER NOT NULL,
    refreshed_at INTEGER,
    visible_at INTEGER,
    attempts INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    reason TEXT,
    size INTEGER NOT NULL,
    body BLOB NOT NULL,           -- as received
    replays INTEGER NOT NULL DEFAULT 0 -- how often an operator made it pending again
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

  -- What is passed on

  CREATE TABLE relay_ready (      -- deliveries of the inbox that were not passed on yet, also those that state no type
    inbox INTEGER PRIMARY KEY
  ) STRICT;
  CREATE TRIGGER relay_received AFTER INSERT ON inbox
    WHEN NEW.state = 'pending' OR (NEW.type IS NOT NULL AND NEW.state <> 'ignored') BEGIN
    INSERT OR IGNORE INTO relay_ready VALUES (NEW.id);
  END;
  CREATE TRIGGER relay_forgotten AFTER DELETE ON inbox BEGIN
    DELETE FROM relay_ready WHERE inbox = OLD.id;
  END;

  CREATE TABLE relay_event (      -- what is passed on, in this order; also the log that /-/events resumes from
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- without gaps, but for those that were pruned from the old end
    kind TEXT NOT NULL,           -- webhook | snapshot
    webhook_id TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    body BLOB NOT NULL            -- of a webhook: upstream's bytes
  ) STRICT;
  CREATE TABLE relay_target (     -- a new one receives what is published after it was added
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    url TEXT NOT NULL UNIQUE,     -- may contain a token: shown to its owner only
    state TEXT NOT NULL,          -- ok | failing | disabled
    since INTEGER,                -- since when it fails, or is disabled
    failures INTEGER NOT NULL,    -- in a row
    due_at INTEGER NOT NULL,      -- not before
    reason TEXT,                  -- of the last failure, one plain line
    delivered_at INTEGER,         -- last success
    given_up INTEGER NOT NULL,    -- deliveries that were never taken, as long as they were tried
    log INTEGER,                  -- the change log's end when it came; null: it was not looked at yet
    failed_at INTEGER,            -- when the reason was given
    findings INTEGER              -- the end of the findings' log when it came; null: it was not looked at yet
  ) STRICT;
  CREATE TABLE relay_delivery (   -- what is still to be delivered
    target INTEGER NOT NULL,
    event INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    PRIMARY KEY (target, event)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX relay_delivery_due ON relay_delivery (target, due_at, event);
  CREATE TABLE relay_cursor (     -- how far the change log was passed on
    only INTEGER PRIMARY KEY CHECK (only = 1),
    instance TEXT NOT NULL,       -- of which mirror.db
    log INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE relay_findings (   -- how far the log of the findings was passed on
    only INTEGER PRIMARY KEY CHECK (only = 1),
    instance TEXT NOT NULL,       -- of which findings.db
    log INTEGER NOT NULL
  ) STRICT;
`

/** What `relay.targets` calls a target; null: it has no name there. Its `state` may be `paused`: the settings do not have it, and something waits. */
const TARGET_NAMES = 'ALTER TABLE relay_target ADD COLUMN name TEXT'

/** The schema of `webhooks.db`. A change of it is a further step. */
export const WEBHOOKS_SCHEMA: Schema = { first: 7, steps: [TABLES, TARGET_NAMES] }
