-- Why: a destination may get metrics, too. Each has its own place in the queue of settled spans, and at most one stored request: what
-- settles while it fails is counted by the next one. Without a row, a destination gets no metrics.
CREATE TABLE export_points (
    destination   TEXT    PRIMARY KEY,
    acked_seq     INTEGER NOT NULL,              -- settled.seq up to which spans are counted in a request that is done
    counted_ns    INTEGER NOT NULL,              -- until when that request counted
    state         TEXT    NOT NULL DEFAULT 'ok', -- ok, retry, paused
    not_before_ns INTEGER NOT NULL DEFAULT 0,
    attempts      INTEGER NOT NULL DEFAULT 0,    -- failures in a row
    delivered     INTEGER NOT NULL DEFAULT 0,    -- points
    lost          INTEGER NOT NULL DEFAULT 0,    -- points
    left_out      INTEGER NOT NULL DEFAULT 0,    -- spans that were too old to be counted
    last_ok_ns    INTEGER,
    last_error    TEXT,
    advice        TEXT,
    -- The stored request: an ExportMetricsServiceRequest, stored before its first attempt. NULL: none.
    body          BLOB,
    points        INTEGER NOT NULL DEFAULT 0,
    last_seq      INTEGER NOT NULL DEFAULT 0,    -- settled.seq of the last span in it
    built_ns      INTEGER NOT NULL DEFAULT 0     -- until when it counts
) STRICT;
