-- Why: people give sessions stars, tags and a note, and keep filters of lists by name. These tables are not derived from
-- hooks, so a rebuild does not change them. They name sessions by their root conversations, whose ids a rebuild keeps,
-- and a deletion of a session deletes its rows.
-- The failure of a subagent counts once now, and not a second time for the call that delegated to it. All sums change,
-- so everything derived is emptied and folded again from the raw log.
CREATE TABLE mark (
    root    INTEGER PRIMARY KEY,                 -- in name; also a session that has become part of another one
    starred INTEGER NOT NULL,
    note    TEXT    NOT NULL                     -- empty: none
) STRICT;
CREATE TABLE tag (
    root INTEGER NOT NULL,
    tag  TEXT    NOT NULL COLLATE NOCASE,
    PRIMARY KEY (root, tag)
) STRICT, WITHOUT ROWID;
CREATE INDEX tag_sessions ON tag (tag, root);
CREATE TABLE saved_filter (
    page  TEXT NOT NULL,                         -- sessions, files, errors
    name  TEXT NOT NULL COLLATE NOCASE,
    query TEXT NOT NULL,                         -- of the page's address
    PRIMARY KEY (page, name)
) STRICT, WITHOUT ROWID;

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
DELETE FROM turn_time;
DELETE FROM file;
DELETE FROM counter WHERE key IN ('malformed', 'unknown_event', 'damaged_body')
    OR key GLOB 'unknown_event.*' OR key GLOB 'unknown_field.*';
UPDATE state SET value = '0' WHERE key = 'folded_seq';
UPDATE state SET value = '1' WHERE key = 'rebuilding';
DELETE FROM state WHERE key = 'epoch';
