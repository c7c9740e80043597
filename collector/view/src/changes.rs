//! What a reader of the store is told about commits.

/// Something was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The transaction's revision.
    pub rev: u64,
    /// Sessions it touched, with how many spans were written for each.
    pub sessions: Vec<(String, u64)>,
}
