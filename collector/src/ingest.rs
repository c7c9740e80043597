//! Follows the journal and hands batches to the engine over a bounded channel.
