-- Why: a destination that never accepted a span must never lose one. So the store must remember whether it ever
-- accepted any, and over which connection: a destination that is pointed elsewhere starts anew. A refused batch is set
-- aside, and is given up only after another one was accepted, so batches no longer end in the order in which they were
-- built. A size that was refused is remembered, because otherwise each request would be sent whole and split again. A
-- person can pause a destination. A failure has advice.
ALTER TABLE export_position ADD COLUMN built_seq INTEGER NOT NULL DEFAULT 0;     -- settled_seq up to which requests were built
ALTER TABLE export_position ADD COLUMN accepted_by TEXT;                         -- the connection that accepted spans last
ALTER TABLE export_position ADD COLUMN advice TEXT;                              -- what to do about last_error
ALTER TABLE export_position ADD COLUMN max_bytes INTEGER;                        -- largest request to build; NULL: the usual
ALTER TABLE export_position ADD COLUMN max_bytes_ns INTEGER NOT NULL DEFAULT 0;  -- when max_bytes was learned
ALTER TABLE export_position ADD COLUMN stopped INTEGER NOT NULL DEFAULT 0;       -- 1: a person paused it
-- 0: to be sent. 1: refused as a whole. 2: refused, and cannot be split further. 3: a single span that is too large.
ALTER TABLE export_batch ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
ALTER TABLE export_batch ADD COLUMN refusal TEXT;                                -- the receiver's words
ALTER TABLE export_batch ADD COLUMN held_ns INTEGER NOT NULL DEFAULT 0;
UPDATE export_position SET built_seq = max(acked_seq, coalesce(
    (SELECT max(last_seq) FROM export_batch b WHERE b.destination = export_position.destination), 0));
