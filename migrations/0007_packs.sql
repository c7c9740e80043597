-- Why: hooks of one conversation say much twice, so those that are committed together are packed together and take half the
-- room or less. A pack is a row of `payload` under the number of its first hook; its checksum is that of all of it. Hooks that
-- are stored already stay as they are: each is a pack of its own.
ALTER TABLE raw_hook ADD COLUMN pack INTEGER;        -- payload.seq of the body; NULL: the hook's own
ALTER TABLE raw_hook ADD COLUMN body_start INTEGER;  -- in the unpacked pack, bytes; NULL: the pack is the body
ALTER TABLE raw_hook ADD COLUMN body_len INTEGER;
