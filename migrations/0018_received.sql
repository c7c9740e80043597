-- Why: other programs of this computer may send OTLP: builds and tests that run below a call, and agents that have telemetry of their own.
-- What is kept of it lies in tables of its own. No hook says it, so a rebuild cannot derive it, and it survives one. A row names its
-- session by the conversation's own text, because the number of a name may not exist yet when telemetry comes first.
CREATE TABLE received_span (
    row         INTEGER PRIMARY KEY,
    trace       BLOB    NOT NULL,                -- 16 bytes; made of the session for a log record outside of any trace
    id          BLOB    NOT NULL,                -- 8 bytes; made of its content for a log record
    parent      BLOB,                            -- a received span, or one of ours
    kind        INTEGER NOT NULL,                -- as in OTLP; 16: a log record
    name        TEXT    NOT NULL,
    service     TEXT    NOT NULL,
    scope       TEXT    NOT NULL,
    start_ns    INTEGER NOT NULL,                -- by the sender's clock
    end_ns      INTEGER NOT NULL,
    status      INTEGER NOT NULL,                -- 0 unset, 1 ok, 2 error
    message     TEXT,
    attributes  TEXT    NOT NULL,                -- a JSON object, without secrets and without names of people
    cut         INTEGER NOT NULL,                -- attributes that were dropped or shortened
    session     TEXT,                            -- the conversation that it belongs to; NULL: not known
    joined      INTEGER,                         -- how that is known: 1 traceparent, 2 session id, 3 inferred
    call        BLOB,                            -- inferred: our span below which it ran
    tool        TEXT,                            -- the id of the tool call that its attributes name
    directory   TEXT,                            -- where its process ran, if its resource says so
    model       TEXT,
    input       INTEGER,                         -- tokens, both cache parts included; NULL: it names none
    output      INTEGER,
    cache_read  INTEGER,
    cache_write INTEGER,
    cost        REAL,                            -- US dollars, as the sender estimates
    received_ns INTEGER NOT NULL,
    UNIQUE (trace, id)
) STRICT;
CREATE INDEX received_span_session ON received_span (session, start_ns) WHERE session IS NOT NULL;
CREATE INDEX received_span_unjoined ON received_span (received_ns) WHERE session IS NULL;
CREATE INDEX received_span_age ON received_span (received_ns);

-- Sums of received counters, by the session that their points name.
CREATE TABLE received_usage (
    session     TEXT    NOT NULL,
    service     TEXT    NOT NULL,
    model       TEXT    NOT NULL,                -- empty: none was named
    input       INTEGER,
    output      INTEGER,
    cache_read  INTEGER,
    cache_write INTEGER,
    cost        REAL,
    first_ns    INTEGER NOT NULL,                -- when the first and the last point was received
    last_ns     INTEGER NOT NULL,
    PRIMARY KEY (session, service, model)
) STRICT, WITHOUT ROWID;
CREATE INDEX received_usage_age ON received_usage (last_ns);

-- The last point of each received counter, so that a point that comes twice counts once.
CREATE TABLE received_series (
    key         BLOB    PRIMARY KEY,             -- 16 bytes of a hash over resource, name and attributes
    session     TEXT    NOT NULL,
    at_ns       INTEGER NOT NULL,                -- time of the point, by the sender's clock
    value       REAL    NOT NULL,
    received_ns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX received_series_session ON received_series (session);
CREATE INDEX received_series_age ON received_series (received_ns);

-- What was stored on a UTC day, for the daily limits. Deleting does not give it back.
CREATE TABLE received_day (
    day   INTEGER PRIMARY KEY,                   -- days since the epoch
    spans INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT;
