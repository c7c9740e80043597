-- Why: a call of unknown length counted as 1 µs in percentiles, totals, heatmap and `reach`, and a turn that reported
-- no tokens counted as 0 tokens. Each sum of tokens now has the number of turns that reported them; 0 means that the
-- sum is unknown. `rules` names the rules by which the derived tables were made, so that an older derivation can be
-- recognised. Derived, so all derived tables are emptied and folded again from the raw log.
DROP TABLE day_time;
CREATE TABLE day_time (
    day       INTEGER NOT NULL,                  -- days since the epoch
    project   TEXT    NOT NULL,                  -- the name that figures stand under; empty: Cursor named no workspace
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
    PRIMARY KEY (day, project)
) STRICT, WITHOUT ROWID;

DROP TABLE reach;
CREATE TABLE reach (
    root       INTEGER NOT NULL REFERENCES name (id),
    class      INTEGER NOT NULL,                  -- what the line is drawn as
    tool       TEXT    NOT NULL,                  -- lower case; empty: not a call
    longest_ns INTEGER,                           -- of settled spans; NULL: the length of none is known
    failed     INTEGER NOT NULL,                  -- 1: one of them failed
    failed_ns  INTEGER,                           -- the longest that failed; NULL: none did, or the length of none is known
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
DELETE FROM counter WHERE key IN ('malformed', 'unknown_event', 'damaged_body')
    OR key GLOB 'unknown_event.*' OR key GLOB 'unknown_field.*';
UPDATE state SET value = '0' WHERE key = 'folded_seq';
UPDATE state SET value = '1' WHERE key = 'rebuilding';
DELETE FROM state WHERE key = 'epoch';
