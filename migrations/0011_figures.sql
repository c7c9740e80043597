-- Why: a turn or a call counted in sums as it was when it was first counted, even if its row changed later. Now all
-- sums are counted again. Filters by tool compared names of spans, which do not contain the tool of an MCP server, and
-- filters by project compared paths. Both now have a column. `reach` contains the longest failed span, so that a list
-- of sessions with failed calls of one tool need not read spans. A span's turn is found by its trace. Derived, so all
-- derived tables are emptied and folded again from the raw log.
ALTER TABLE span ADD COLUMN tool TEXT;           -- of a call: the name that figures stand under
ALTER TABLE session ADD COLUMN project TEXT;     -- the name that figures stand under; NULL: Cursor named no workspace
CREATE INDEX turn_trace ON turn (root, trace);

DROP TABLE reach;
CREATE TABLE reach (
    root       INTEGER NOT NULL REFERENCES name (id),
    class      INTEGER NOT NULL,                  -- what the line is drawn as
    tool       TEXT    NOT NULL,                  -- lower case; empty: not a call
    longest_ns INTEGER NOT NULL,                  -- of settled spans; those that are not are looked at one by one
    failed_ns  INTEGER,                           -- the same of those that failed; NULL: none did
    PRIMARY KEY (root, class, tool)
) STRICT, WITHOUT ROWID;

INSERT INTO settled_before (id, settled_seq)
    SELECT s.id, q.seq FROM settled q JOIN span s ON s.row = q.span WHERE true
    ON CONFLICT (id) DO UPDATE SET settled_seq = excluded.settled_seq;
DELETE FROM settled;
DELETE FROM unsettled;
DELETE FROM span;
DELETE FROM turn;
DELETE FROM session;
DELETE FROM conversation;
DELETE FROM histogram WHERE dimension <> 'arrival';
DELETE FROM heat;
DELETE FROM day_time;
DELETE FROM counter WHERE key IN ('malformed', 'unknown_event', 'damaged_body')
    OR key GLOB 'unknown_event.*' OR key GLOB 'unknown_field.*';
UPDATE state SET value = '0' WHERE key = 'folded_seq';
UPDATE state SET value = '1' WHERE key = 'rebuilding';
DELETE FROM state WHERE key = 'epoch';
