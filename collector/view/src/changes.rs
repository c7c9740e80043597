//! What readers of the store are told about commits.

/// Something was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The transaction's revision.
    pub rev: u64,
    /// Sessions that the commit changed, each with the number of spans written.
    pub sessions: Vec<(String, u64)>,
}
