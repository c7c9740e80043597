//! What tokens cost: a person's prices first, then a list in a file, then the public list prices that a release carries. Nothing is
//! ever fetched.

mod list;
mod public;

use std::path::Path;

use hookspan_core::price::Prices;

use crate::dirs::{Unfit, read_regular};

pub(crate) use public::{AS_OF, SOURCE};

/// Why a file is no price list, in words that follow its name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListError {
    /// There is no such file.
    #[error("does not exist")]
    Missing,
    /// It is no regular file.
    #[error("is {0}")]
    Kind(&'static str),
    /// It is larger than any list.
    #[error("has {0} bytes; at most {LARGEST} are read")]
    TooLarge(u64),
    /// The file system refused.
    #[error("cannot be read: {0}")]
    Io(#[source] std::io::Error),
    /// It is not JSON.
    #[error("is no JSON: {0}")]
    Json(#[source] serde_json::Error),
    /// No object in it has a price.
    #[error("has no model with a price")]
    Empty,
}

/// Largest list that is read. The largest known has 2 MB.
const LARGEST: u64 = 32 << 20;

/// `own`, and below them what the list in `file` says.
///
/// # Errors
/// See [`ListError`].
pub(crate) fn with_file(own: Prices, file: &Path) -> Result<Prices, ListError> {
    let found = read_regular(file, LARGEST).map_err(|unfit| match unfit {
        Unfit::Kind(kind) => ListError::Kind(kind),
        Unfit::TooLarge(bytes) => ListError::TooLarge(bytes),
        Unfit::Io(error) => ListError::Io(error),
    })?;
    let bytes = found.ok_or(ListError::Missing)?.bytes;
    Ok(own.with_list(list::read(&String::from_utf8_lossy(&bytes))?))
}

/// `own`, and below them the public list prices.
#[must_use]
pub(crate) fn with_public(own: Prices) -> Prices {
    own.with_list(public::list())
}
