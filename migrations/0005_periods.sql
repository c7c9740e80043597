-- Why: percentiles and heatmaps of a long period were added up from each of its days and hours, and had only two
-- digits. Sketches now have three digits and exist per day and per 32 days. The heatmap exists per hour and per day,
-- for each name and for all names together. So every period costs about the same. Where turns spent their time is added
-- up per day and project. Derived, so all derived tables are emptied and folded again from the raw log.
ALTER TABLE histogram RENAME TO histogram_before;
CREATE TABLE histogram (
    dimension TEXT    NOT NULL,                  -- tool, model, kind, project; arrival is not derived
    days      INTEGER NOT NULL,                  -- 1 or 32
    day       INTEGER NOT NULL,                  -- the first, days since the epoch
    name      TEXT    NOT NULL,
    count     INTEGER NOT NULL,
    errors    INTEGER NOT NULL,
    total_us  INTEGER NOT NULL,
    sketch    BLOB    NOT NULL,                  -- hdrhistogram V2, microseconds, three digits
    PRIMARY KEY (dimension, days, day, name)
) STRICT, WITHOUT ROWID;
INSERT INTO histogram (dimension, days, day, name, count, errors, total_us, sketch)
    SELECT dimension, 1, day, name, count, errors, 0, sketch FROM histogram_before
    WHERE dimension = 'arrival';
DROP TABLE histogram_before;

DROP TABLE heat;
CREATE TABLE heat (
    dimension TEXT    NOT NULL,
    name      TEXT    NOT NULL,                  -- empty: all of the dimension
    hours     INTEGER NOT NULL,                  -- 1 or 24
    hour      INTEGER NOT NULL,                  -- the first, hours since the epoch
    counts    BLOB    NOT NULL,                  -- u32, little-endian: spans of 2^i microseconds and more, below 2^(i+1)
    PRIMARY KEY (dimension, name, hours, hour)
) STRICT, WITHOUT ROWID;

-- Sums over settled turns by the UTC day on which they started. Times are nanoseconds; the parts of active_ns add up to
-- it.
CREATE TABLE day_time (
    day       INTEGER NOT NULL,                  -- days since the epoch
    project   TEXT    NOT NULL,                  -- last name of the workspace; empty: none was named
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
    input     INTEGER NOT NULL,                  -- tokens
    output    INTEGER NOT NULL,
    PRIMARY KEY (day, project)
) STRICT, WITHOUT ROWID;

INSERT INTO settled_before (id, settled_seq)
    SELECT id, settled_seq FROM span WHERE settled_seq IS NOT NULL
    ON CONFLICT (id) DO UPDATE SET settled_seq = excluded.settled_seq;
DELETE FROM span;
DELETE FROM turn;
DELETE FROM session;
DELETE FROM conversation;
DELETE FROM counter WHERE key IN ('malformed', 'unknown_event', 'damaged_body')
    OR key GLOB 'unknown_event.*' OR key GLOB 'unknown_field.*';
UPDATE state SET value = '0' WHERE key = 'folded_seq';
UPDATE state SET value = '1' WHERE key = 'rebuilding';
DELETE FROM state WHERE key = 'epoch';
