-- Why: retention and `prune` delete hooks that belong to no conversation, oldest first. Without an index each look at them sorts
-- all of them. Few hooks are in this index, so storing a hook costs nothing more.
CREATE INDEX raw_hook_unowned ON raw_hook (observed_ns, seq) WHERE conversation IS NULL;
