-- Why: a session and a turn show their branch, the commits at their start and end, and the commits made in between. The
-- raw log contains what the collector saw and what commands printed. Both are derived from it, so all derived tables
-- are emptied and folded again.
ALTER TABLE session ADD COLUMN repository TEXT;      -- address of the remote, without credentials
ALTER TABLE session ADD COLUMN branch TEXT;          -- at the end; NULL: none was checked out, or nobody looked
ALTER TABLE session ADD COLUMN revision TEXT;        -- commit at the end
ALTER TABLE session ADD COLUMN from_branch TEXT;     -- at the start
ALTER TABLE session ADD COLUMN from_revision TEXT;
ALTER TABLE session ADD COLUMN commits TEXT;         -- made meanwhile, the oldest first, a space between them
ALTER TABLE turn ADD COLUMN repository TEXT;
ALTER TABLE turn ADD COLUMN branch TEXT;
ALTER TABLE turn ADD COLUMN revision TEXT;
ALTER TABLE turn ADD COLUMN from_branch TEXT;
ALTER TABLE turn ADD COLUMN from_revision TEXT;
ALTER TABLE turn ADD COLUMN commits TEXT;

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
