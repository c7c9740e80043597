-- Why: a page says when no collector ran. `state.alive_ns` is the last sign of life; a start after it leaves a row here. Not
-- derived: it is not in the raw log, and survives a rebuild.
CREATE TABLE gap (
    from_ns INTEGER PRIMARY KEY,
    to_ns   INTEGER NOT NULL
) STRICT;
