//! The dashboard's access token. Whoever knows it is treated as the owner.

use std::io::Read as _;

use sha2::{Digest as _, Sha256};

use super::{DirError, StateDir, open_private, write_private};

/// 32 random bytes in hexadecimal. Never printed by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// The token of `dir`, or `None` when it has none yet (or a damaged one).
    #[must_use]
    pub fn load(dir: &StateDir) -> Option<Self> {
        let mut text = String::new();
        open_private(&dir.token()).ok()?.take(256).read_to_string(&mut text).ok()?;
        let text = text.trim();
        let whole = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        whole.then(|| Self(text.to_owned()))
    }

    /// The token of `dir`, made now if there is none. It stays the same from then on, so that bookmarks go on working.
    ///
    /// # Errors
    /// When the file cannot be written, or the system has no randomness.
    pub fn load_or_create(dir: &StateDir) -> Result<Self, DirError> {
        if let Some(token) = Self::load(dir) {
            return Ok(token);
        }
        let io = |source| DirError::Io { action: "write", path: dir.token(), source };
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(|error| io(std::io::Error::other(error.to_string())))?;
        let token = Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect());
        write_private(&dir.token(), token.0.as_bytes()).map_err(io)?;
        Ok(token)
    }

    /// As text, for the address of the owner's dashboard.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// SHA-256 of the text: what the dashboard compares.
    #[must_use]
    pub fn sha256(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_only_for_its_owner() {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::at(temp.path().join("s"));
        dir.prepare().unwrap();
        assert_eq!(Token::load(&dir), None);
        let token = Token::load_or_create(&dir).unwrap();
        assert_eq!(Token::load_or_create(&dir).unwrap(), token);
        assert_eq!(Token::load(&dir), Some(token.clone()));
        assert_eq!(token.as_str().len(), 64);
        assert_eq!(format!("{token:?}"), "Token(..)");
        dir.verify().unwrap();
        std::fs::write(dir.token(), "short").unwrap();
        assert_ne!(Token::load_or_create(&dir).unwrap(), token);
    }
}
