-- Why: a page tells when no collector ran. `state.alive_ns` is when a collector was last known to run. A later start
-- adds a row here. This table is not derived: the raw log does not contain it, and it survives a rebuild.
CREATE TABLE gap (
    from_ns INTEGER PRIMARY KEY,
    to_ns   INTEGER NOT NULL
) STRICT;
