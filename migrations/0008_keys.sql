-- Why: writing a span became more expensive as the store grew. Ids are spread at random, so each written span touched a
-- page of the index of ids that no other span touched. With two million spans this took a third of the writer's time,
-- and as much again for the checkpoints. Now a span is identified by its conversation and its id, and spans written at
-- one time are stored together. A span's place in the export queue used to be a column, so settling a span meant
-- writing all of it again. The queue is now a table of its own, and so is the list of spans that have not settled. A
-- trace is found by its root. Derived, so all derived tables are emptied and folded again from the raw log.
INSERT INTO settled_before (id, settled_seq)
    SELECT id, settled_seq FROM span WHERE settled_seq IS NOT NULL
    ON CONFLICT (id) DO UPDATE SET settled_seq = excluded.settled_seq;
DROP TABLE span;
CREATE TABLE span (
    row            INTEGER PRIMARY KEY,          -- store key, small, not stable over a rebuild
    id             BLOB    NOT NULL,
    rev            INTEGER NOT NULL,
    root           INTEGER NOT NULL REFERENCES name (id),
    conversation   INTEGER NOT NULL REFERENCES name (id),
    generation     TEXT    NOT NULL,
    trace          BLOB    NOT NULL,
    parent         BLOB,
    kind           TEXT    NOT NULL,
    name           TEXT    NOT NULL,
    plain_name     TEXT    NOT NULL,
    workspace      TEXT,
    cursor_version TEXT,
    start_ns       INTEGER NOT NULL,
    end_ns         INTEGER,
    end_reason     TEXT,
    error_type     TEXT,                         -- NULL: status unset
    error_message  TEXT,
    detail         TEXT    NOT NULL,             -- JSON: attributes, events, links, contents
    label          TEXT    NOT NULL,             -- without a turn's prompt
    subject_seq    INTEGER,                      -- the hook whose body completes the label; NULL: nothing does
    class          INTEGER NOT NULL,             -- what the line is drawn as
    flags          INTEGER NOT NULL,
    wait_us        INTEGER NOT NULL,
    UNIQUE (conversation, id)
) STRICT;
CREATE INDEX span_root ON span (root, start_ns);
CREATE INDEX span_rev ON span (root, rev);
CREATE INDEX span_trace ON span (trace) WHERE parent IS NULL;
CREATE INDEX span_error ON span (start_ns) WHERE error_type IS NOT NULL;

-- The export queue: spans in the order in which they settled.
CREATE TABLE settled (
    seq  INTEGER PRIMARY KEY,
    span INTEGER NOT NULL UNIQUE REFERENCES span (row)
) STRICT;

-- Spans that have not settled.
CREATE TABLE unsettled (
    root INTEGER NOT NULL REFERENCES name (id),  -- as in span
    span INTEGER NOT NULL REFERENCES span (row),
    PRIMARY KEY (root, span)
) STRICT, WITHOUT ROWID;

DELETE FROM turn;
DELETE FROM session;
DELETE FROM conversation;
DELETE FROM histogram WHERE dimension <> 'arrival';
DELETE FROM heat;
DELETE FROM day_time;
DELETE FROM reach;
DELETE FROM counter WHERE key IN ('malformed', 'unknown_event', 'damaged_body')
    OR key GLOB 'unknown_event.*' OR key GLOB 'unknown_field.*';
UPDATE state SET value = '0' WHERE key = 'folded_seq';
UPDATE state SET value = '1' WHERE key = 'rebuilding';
DELETE FROM state WHERE key = 'epoch';
