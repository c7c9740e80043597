//! Replaces paths that must not leave by a hash.

use sha2::{Digest, Sha256};

/// The text that replaces a path at `paths = "hash"`.
pub(super) fn hashed_path(path: &str) -> String {
    let digest = Sha256::digest(path.as_bytes());
    let hex: String = digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
    format!("sha256:{hex}")
}
