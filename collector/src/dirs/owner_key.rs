//! The key that commands of the same user present to the running collector.

use serde::{Deserialize, Serialize};

/// Random text, new at each start of a collector. It is stored in `serve.json`, which only the owner may read, and is worthless
/// once that collector has stopped. `Debug` never prints it.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct OwnerKey(String);

impl std::fmt::Debug for OwnerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OwnerKey(..)")
    }
}

impl OwnerKey {
    /// A new one.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(crate) fn new() -> std::io::Result<Self> {
        let bytes = random()?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The key as text, for a request.
    #[must_use]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// 32 random bytes.
///
/// # Errors
/// The system has none.
pub(crate) fn random() -> std::io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_another_one_each_time_and_not_shown() {
        let (one, two) = (OwnerKey::new().unwrap(), OwnerKey::new().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.as_str().len(), 64);
        assert_eq!(format!("{one:?}"), "OwnerKey(..)");
    }
}
