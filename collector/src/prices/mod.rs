//! Prices of tokens: first the user's own prices, then a list in a file, then the public list prices that a release
//! contains. Nothing is ever downloaded.

mod list;
mod public;

use std::path::Path;

use hookspan_core::price::Prices;

use crate::dirs::{Unfit, read_regular};

pub(crate) use public::{AS_OF, SOURCE};

/// Why a file is not a price list. The words follow the file's name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListError {
    /// There is no such file.
    #[error("does not exist")]
    Missing,
    /// The path is not a regular file.
    #[error("is {0}")]
    Kind(&'static str),
    /// The file is larger than any known list.
    #[error("has {0} bytes; at most {LARGEST} are read")]
    TooLarge(u64),
    /// The file system refused.
    #[error("cannot be read: {0}")]
    Io(#[source] std::io::Error),
    /// The file is not JSON.
    #[error("is not JSON: {0}")]
    Json(#[source] serde_json::Error),
    /// No object in it has a price.
    #[error("has no model with a price")]
    Empty,
}

/// Maximum size of a list. The largest known one has 2 MB.
const LARGEST: u64 = 32 << 20;

/// `own`, completed by the list in `file`.
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

/// `own`, completed by the public list prices.
#[must_use]
pub(crate) fn with_public(own: Prices) -> Prices {
    own.with_list(public::list())
}
