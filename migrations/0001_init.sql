-- Why: the first schema. `raw_hook` with `payload` is the ground state and is never rewritten. Every other table is
-- derived from it, written in the same transaction, and may be dropped and rebuilt (`hookspan rebuild`). The exception
-- are the export_* tables, which record what has left this machine. Times are nanoseconds since the Unix epoch, ids are
-- blobs, and repeated texts are in the table `name`.

-- Texts that repeat: conversation ids, event names, tool and model names.
CREATE TABLE name (
    id   INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
) STRICT;

-- One invocation of the shim, one line of an import, or one piece of evidence.
CREATE TABLE raw_hook (
    seq          INTEGER PRIMARY KEY,            -- order of commit; the order of the fold
    id           BLOB    NOT NULL UNIQUE,        -- wall ns big-endian, then 8 bytes of the record's id
    observed_ns  INTEGER NOT NULL,
    boottime_ns  INTEGER,
    source       INTEGER NOT NULL,               -- 0 shim, 1 import, 2 evidence
    flags        INTEGER NOT NULL DEFAULT 0,     -- frame flags: 2 stdin not closed, 4 body cut; 8 record without its end
    conversation INTEGER REFERENCES name (id),   -- as normalised; NULL when the body has no identity
    event        INTEGER REFERENCES name (id),   -- as normalised
    malformed    INTEGER NOT NULL DEFAULT 0,
    argument     TEXT,                           -- event name on the command line
    context      TEXT                            -- JSON: cursor_version, project_dir, transcript_path, cwd
) STRICT;
CREATE INDEX raw_hook_conversation ON raw_hook (conversation, seq);

-- The body, in a table of its own so that the narrow table stays fast. Zstandard with a content checksum, or as it
-- came.
CREATE TABLE payload (
    seq   INTEGER PRIMARY KEY REFERENCES raw_hook (seq) ON DELETE CASCADE,
    codec INTEGER NOT NULL,                      -- 0 as it came, 1 zstd
    len   INTEGER NOT NULL,                      -- bytes before compression
    xxh64 INTEGER NOT NULL,                      -- of the bytes before compression
    body  BLOB    NOT NULL
) STRICT;

-- The session that a conversation belongs to. The root of a child changes when the child is bound.
CREATE TABLE conversation (
    id   INTEGER PRIMARY KEY REFERENCES name (id),
    root INTEGER NOT NULL REFERENCES name (id),
    held INTEGER NOT NULL DEFAULT 1              -- the fold still holds it: its hooks are replayed at start
) STRICT;
CREATE INDEX conversation_root ON conversation (root);
CREATE INDEX conversation_held ON conversation (held) WHERE held;

CREATE TABLE session (
    root           INTEGER PRIMARY KEY REFERENCES name (id),
    rev            INTEGER NOT NULL,             -- of the transaction that wrote the row
    state          TEXT    NOT NULL,
    started_ns     INTEGER NOT NULL,
    last_ns        INTEGER NOT NULL,
    ended_ns       INTEGER,
    workspace      TEXT,
    model          TEXT,
    surface        TEXT    NOT NULL,
    cursor_version TEXT,
    first_prompt   TEXT,
    last_error     TEXT,
    generations    INTEGER NOT NULL,
    tool_calls     INTEGER NOT NULL,
    subagents      INTEGER NOT NULL,
    errors         INTEGER NOT NULL,
    errored_turns  INTEGER NOT NULL,
    active_ns      INTEGER NOT NULL,
    input          INTEGER,                      -- tokens; NULL when no turn reported any
    output         INTEGER,
    cache_read     INTEGER,
    cache_write    INTEGER
) STRICT;
CREATE INDEX session_last ON session (last_ns);

CREATE TABLE turn (
    root        INTEGER NOT NULL REFERENCES name (id),
    span        BLOB    NOT NULL,
    rev         INTEGER NOT NULL,
    generation  TEXT    NOT NULL,
    trace       BLOB    NOT NULL,
    number      INTEGER NOT NULL,                -- 1-based order in the session
    started_ns  INTEGER NOT NULL,
    ended_ns    INTEGER,
    end_reason  TEXT,
    prompt      TEXT,
    model       TEXT,
    status      TEXT,
    tool_calls  INTEGER NOT NULL,
    errors      INTEGER NOT NULL,
    input       INTEGER,
    output      INTEGER,
    cache_read  INTEGER,
    cache_write INTEGER,
    parts       TEXT    NOT NULL,                -- JSON object, nanoseconds
    PRIMARY KEY (root, span)
) STRICT, WITHOUT ROWID;

CREATE TABLE span (
    row            INTEGER PRIMARY KEY,          -- store key, small, not stable over a rebuild
    id             BLOB    NOT NULL UNIQUE,
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
    settled_seq    INTEGER                       -- order of settling: the export queue. NULL until final
) STRICT;
CREATE INDEX span_root ON span (root, start_ns);
CREATE INDEX span_rev ON span (root, rev);
CREATE INDEX span_trace ON span (trace);
CREATE UNIQUE INDEX span_settled ON span (settled_seq) WHERE settled_seq IS NOT NULL;
CREATE INDEX span_error ON span (start_ns) WHERE error_type IS NOT NULL;

-- Durations per UTC day and tool (or model, or kind): hdrhistogram V2, microseconds, two digits.
CREATE TABLE histogram (
    day       INTEGER NOT NULL,                  -- days since the epoch
    dimension TEXT    NOT NULL,                  -- tool, model, kind
    name      TEXT    NOT NULL,
    count     INTEGER NOT NULL,
    errors    INTEGER NOT NULL,
    sketch    BLOB    NOT NULL,
    PRIMARY KEY (day, dimension, name)
) STRICT, WITHOUT ROWID;

-- During a rebuild: the place in the export queue that each span had. The span gets the same place again, so that
-- nothing leaves this machine twice. Empty otherwise.
CREATE TABLE settled_before (
    id          BLOB    PRIMARY KEY,
    settled_seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Single values: rev, settled_seq (last one given), folded_seq (last raw hook whose effects are in the derived tables),
-- journal (position up to which it is committed), epoch (changes with a rebuild), rebuilding.
CREATE TABLE state (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Counters that pages and commands show: losses, duplicates, malformed, unknown events ...
CREATE TABLE counter (
    key   TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Result of one `import`. With it, a running collector can answer the command that asked.
CREATE TABLE import_run (
    id        TEXT PRIMARY KEY,
    new       INTEGER NOT NULL,
    duplicate INTEGER NOT NULL,
    malformed INTEGER NOT NULL,
    done      INTEGER NOT NULL DEFAULT 0,
    error     TEXT
) STRICT;

CREATE TABLE export_position (
    destination   TEXT    PRIMARY KEY,
    acked_seq     INTEGER NOT NULL,              -- settled_seq up to which everything is delivered or counted lost
    state         TEXT    NOT NULL,              -- ok, retry, paused, off
    not_before_ns INTEGER NOT NULL DEFAULT 0,
    attempts      INTEGER NOT NULL DEFAULT 0,
    delivered     INTEGER NOT NULL DEFAULT 0,    -- spans
    last_ok_ns    INTEGER,
    last_error    TEXT
) STRICT;

-- The encoded request in flight. It is stored before its first attempt, so that it can be sent again byte for byte.
CREATE TABLE export_batch (
    destination TEXT    NOT NULL,
    first_seq   INTEGER NOT NULL,
    last_seq    INTEGER NOT NULL,
    spans       INTEGER NOT NULL,
    body        BLOB    NOT NULL,
    attempts    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (destination, first_seq)
) STRICT;

CREATE TABLE export_loss (
    destination TEXT    NOT NULL,
    first_seq   INTEGER NOT NULL,
    last_seq    INTEGER NOT NULL,
    count       INTEGER NOT NULL,
    reason      TEXT    NOT NULL,                -- rejected, partial, expired, overflow, too_large
    detail      TEXT    NOT NULL,
    at_ns       INTEGER NOT NULL
) STRICT;
