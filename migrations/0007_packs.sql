-- Why: hooks of one conversation repeat much of each other. Those that are committed together are now packed together,
-- and take half the space or less. A pack is a row of `payload` under the number of its first hook, and its checksum
-- covers all of it. Hooks that are already stored stay as they are: each is a pack of its own.
ALTER TABLE raw_hook ADD COLUMN pack INTEGER;        -- payload.seq of the body; NULL: the hook's own
ALTER TABLE raw_hook ADD COLUMN body_start INTEGER;  -- in the unpacked pack, bytes; NULL: the pack is the body
ALTER TABLE raw_hook ADD COLUMN body_len INTEGER;
