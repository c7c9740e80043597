//! Values that filter words have in common, and the answer to a text that is not valid.

/// As a value of `project`, `model`, `branch`, `outcome` and `tag`: there is none. A project in a folder of this name is
/// found by its whole path.
pub const NONE: &str = "none";

/// The value of `starred`.
pub const YES: &str = "yes";

/// A value that is not valid for its word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The word.
    pub word: &'static str,
    /// The valid values.
    pub wanted: String,
}
