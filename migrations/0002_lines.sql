-- Why: a waterfall of 5,000 spans had to be read from the spans' JSON, and the subjects of calls from the bodies of
-- hooks. Columns now contain everything that a line needs. The columns are derived, so all derived tables are emptied
-- and folded again from the raw log.
ALTER TABLE span ADD COLUMN label TEXT NOT NULL DEFAULT '';     -- without a turn's prompt
ALTER TABLE span ADD COLUMN subject_seq INTEGER;                -- the hook whose body completes the label; NULL: nothing does
ALTER TABLE span ADD COLUMN class INTEGER NOT NULL DEFAULT 0;   -- what the line is drawn as
ALTER TABLE span ADD COLUMN flags INTEGER NOT NULL DEFAULT 0;
ALTER TABLE span ADD COLUMN wait_us INTEGER NOT NULL DEFAULT 0;

-- Finds the sessions that changed after a revision.
CREATE INDEX session_rev ON session (rev);

-- Durations per UTC hour and tool, kind or project, as counts by power of two, for the heatmap.
CREATE TABLE heat (
    hour      INTEGER NOT NULL,                  -- hours since the epoch
    dimension TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    counts    BLOB    NOT NULL,                  -- u32, little-endian: calls of 2^i microseconds and more, below 2^(i+1)
    PRIMARY KEY (hour, dimension, name)
) STRICT, WITHOUT ROWID;

INSERT INTO settled_before (id, settled_seq)
    SELECT id, settled_seq FROM span WHERE settled_seq IS NOT NULL
    ON CONFLICT (id) DO UPDATE SET settled_seq = excluded.settled_seq;
DELETE FROM span;
DELETE FROM turn;
DELETE FROM session;
DELETE FROM conversation;
DELETE FROM histogram;
DELETE FROM counter WHERE key IN ('malformed', 'unknown_event', 'damaged_body');
UPDATE state SET value = '0' WHERE key = 'folded_seq';
UPDATE state SET value = '1' WHERE key = 'rebuilding';
DELETE FROM state WHERE key = 'epoch';
