-- Why: a turn's time is divided further, into responding, and into hooks for which nobody was asked. Derived, so all
-- derived tables are emptied and folded again from the raw log.
INSERT INTO settled_before (id, settled_seq)
    SELECT id, settled_seq FROM span WHERE settled_seq IS NOT NULL
    ON CONFLICT (id) DO UPDATE SET settled_seq = excluded.settled_seq;
DELETE FROM span;
DELETE FROM turn;
DELETE FROM session;
DELETE FROM conversation;
DELETE FROM histogram WHERE dimension <> 'arrival';
DELETE FROM heat;
DELETE FROM counter WHERE key IN ('malformed', 'unknown_event', 'damaged_body')
    OR key GLOB 'unknown_event.*' OR key GLOB 'unknown_field.*';
UPDATE state SET value = '0' WHERE key = 'folded_seq';
UPDATE state SET value = '1' WHERE key = 'rebuilding';
DELETE FROM state WHERE key = 'epoch';
