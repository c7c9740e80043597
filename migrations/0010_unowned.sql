-- Why: retention and `prune` delete hooks that belong to no conversation, oldest first. Without an index, each search
-- sorts all of them. Few hooks are in this index, so it adds nothing to the cost of storing a hook.
CREATE INDEX raw_hook_unowned ON raw_hook (observed_ns, seq) WHERE conversation IS NULL;
