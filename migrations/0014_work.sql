-- Why: a session and a turn show their outcome: edits, test runs, a pull request. The raw log contains the hooks that
-- tell it, so all derived tables are emptied and folded again.
ALTER TABLE session ADD COLUMN edits INTEGER NOT NULL DEFAULT 0; -- calls that changed or deleted a file
ALTER TABLE session ADD COLUMN unclear INTEGER NOT NULL DEFAULT 0; -- calls that may have changed something else
ALTER TABLE session ADD COLUMN tests_passed INTEGER NOT NULL DEFAULT 0; -- test commands by their exit code
ALTER TABLE session ADD COLUMN tests_failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN tested_ns INTEGER; -- end of the last of them
ALTER TABLE session ADD COLUMN tested_well INTEGER; -- 1: it passed
ALTER TABLE session ADD COLUMN pull_request TEXT; -- address of the one that was opened last
ALTER TABLE turn ADD COLUMN edits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turn ADD COLUMN unclear INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turn ADD COLUMN tests_passed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turn ADD COLUMN tests_failed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turn ADD COLUMN tested_ns INTEGER;
ALTER TABLE turn ADD COLUMN tested_well INTEGER;
ALTER TABLE turn ADD COLUMN pull_request TEXT;

INSERT INTO settled_before (id, settled_seq)
    SELECT s.id, q.seq FROM settled q JOIN span s ON s.row = q.span WHERE true
    ON CONFLICT (id) DO UPDATE SET settled_seq = excluded.settled_seq;
DELETE FROM settled;
DELETE FROM unsettled;
DELETE FROM span;
DELETE FROM turn;
DELETE FROM session;
DELETE FROM conversation;
DELETE FROM reach;
DELETE FROM histogram WHERE dimension <> 'arrival';
DELETE FROM heat;
DELETE FROM day_time;
DELETE FROM counter WHERE key IN ('malformed', 'unknown_event', 'damaged_body')
    OR key GLOB 'unknown_event.*' OR key GLOB 'unknown_field.*';
UPDATE state SET value = '0' WHERE key = 'folded_seq';
UPDATE state SET value = '1' WHERE key = 'rebuilding';
DELETE FROM state WHERE key = 'epoch';
