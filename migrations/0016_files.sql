-- Why: to find the sessions that read or changed a file, every call had to be read. Now each call that reads, changes
-- or deletes a file refers to a row of `file`, with the lines that it added and removed. Sums of turns were kept per
-- UTC day without the model, so days of other zones, and the cost of each model, had to be counted turn by turn. Now
-- sums are kept per quarter of an hour (every zone differs from UTC by whole quarters) and per 96 quarters, by project
-- and model. Derived, so all derived tables are emptied and folded again from the raw log.
CREATE TABLE file (
    id      INTEGER PRIMARY KEY,
    project TEXT NOT NULL,                       -- the name that figures stand under; empty: it lies outside of any root
    path    TEXT NOT NULL,                       -- below its root, or whole
    UNIQUE (project, path)
) STRICT;
ALTER TABLE span ADD COLUMN file INTEGER REFERENCES file (id);   -- of a call that reads, changes or deletes one
ALTER TABLE span ADD COLUMN added INTEGER;       -- lines; NULL: no edit, or nobody told
ALTER TABLE span ADD COLUMN removed INTEGER;
-- The touches of a file, and the newest touches of all files with everything that their sums need.
CREATE INDEX span_file ON span (file, start_ns) WHERE file IS NOT NULL;
CREATE INDEX span_touched ON span (start_ns, file, class, error_type, added, removed, root) WHERE file IS NOT NULL;

DROP TABLE day_time;
CREATE TABLE turn_time (
    width     INTEGER NOT NULL,                  -- quarters of an hour: 1 or 96
    quarter   INTEGER NOT NULL,                  -- the first, since the epoch
    project   TEXT    NOT NULL,                  -- the name that figures stand under; empty: Cursor named no workspace
    model     TEXT    NOT NULL,                  -- empty: none was named
    turns     INTEGER NOT NULL,
    calls     INTEGER NOT NULL,
    errors    INTEGER NOT NULL,
    active_ns INTEGER NOT NULL,
    thinking  INTEGER NOT NULL,
    responding INTEGER NOT NULL,
    tools     INTEGER NOT NULL,
    shell     INTEGER NOT NULL,
    mcp       INTEGER NOT NULL,
    edits     INTEGER NOT NULL,
    subagent  INTEGER NOT NULL,
    wait      INTEGER NOT NULL,
    hooks     INTEGER NOT NULL,
    other     INTEGER NOT NULL,
    input     INTEGER NOT NULL,                  -- tokens of the turns that reported them
    output    INTEGER NOT NULL,
    input_turns  INTEGER NOT NULL,               -- how many turns reported them; 0: the sum is unknown
    output_turns INTEGER NOT NULL,
    plain     INTEGER NOT NULL,                  -- input tokens without both cache parts, as they are priced
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    PRIMARY KEY (width, quarter, project, model)
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
DELETE FROM reach;
DELETE FROM histogram WHERE dimension <> 'arrival';
DELETE FROM heat;
DELETE FROM counter WHERE key IN ('malformed', 'unknown_event', 'damaged_body')
    OR key GLOB 'unknown_event.*' OR key GLOB 'unknown_field.*';
UPDATE state SET value = '0' WHERE key = 'folded_seq';
UPDATE state SET value = '1' WHERE key = 'rebuilding';
DELETE FROM state WHERE key = 'epoch';
