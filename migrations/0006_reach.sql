-- Why: to find "sessions with a call of Shell that took a second", every span of every session had to be read. Such a
-- question asks only whether one call took that long. So the longest call of each tool and kind is kept per session: a
-- handful of rows for any number of spans. Derived from tables that exist, so nothing has to be folded again.
CREATE TABLE reach (
    root       INTEGER NOT NULL REFERENCES name (id),
    class      INTEGER NOT NULL,                  -- what the line is drawn as
    tool       TEXT    NOT NULL,                  -- lower case; empty: not a call
    longest_ns INTEGER NOT NULL,                  -- of settled spans; of others see the index below
    PRIMARY KEY (root, class, tool)
) STRICT, WITHOUT ROWID;

INSERT INTO reach (root, class, tool, longest_ns)
    SELECT root, class,
           CASE WHEN plain_name GLOB 'execute_tool *' THEN lower(substr(plain_name, 14, 120)) ELSE '' END,
           max(end_ns - start_ns)
    FROM span WHERE settled_seq IS NOT NULL AND end_ns IS NOT NULL GROUP BY 1, 2, 3;

CREATE INDEX span_unsettled ON span (root) WHERE settled_seq IS NULL;
