//! Who may read the dashboard: signed-in browsers and scripts. The collector stores this in a private file, so that it
//! survives a restart. The content of the file is not enough to sign in.

use core::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::proof::{Bytes32, Verifier, hex, sha256};

/// A browser that was not used for this long is signed out, seconds.
const IDLE_S: i64 = 7 * DAY_S;
/// A browser is signed out this long after it signed in, seconds.
const ABSOLUTE_S: i64 = 30 * DAY_S;
const DAY_S: i64 = 86_400;
/// Maximum number of signed-in browsers. A further one replaces the one that was used longest ago.
const SESSIONS_MAX: usize = 32;
/// Maximum number of keys of one browser. Each page that is or was open has one.
const KEYS_MAX: usize = 64;
/// Maximum number of tokens for scripts.
const TOKENS_MAX: usize = 64;
/// Maximum length of a token's name in characters.
const NAME_MAX: usize = 40;
/// Prefix of a token's text. People and secret scanners recognise a token by it.
const TOKEN_PREFIX: &str = "hookspan_";

/// Storage of [`Access`], and source of randomness.
pub trait Vault: Send + Sync {
    /// The stored value; an empty one if there is none.
    ///
    /// # Errors
    /// [`VaultError::Read`] or [`VaultError::Damaged`].
    fn read(&self) -> Result<Arc<Access>, VaultError>;

    /// Reads, changes and writes the value. Nobody else can change the value in between.
    ///
    /// # Errors
    /// Those of [`Vault::read`], and [`VaultError::Write`].
    fn change(&self, change: &mut dyn FnMut(&mut Access)) -> Result<(), VaultError>;

    /// Records an event of the sign-in. By default nothing is recorded.
    fn note(&self, _: Knock<'_>) {}

    /// 32 random bytes.
    ///
    /// # Errors
    /// [`VaultError::Random`].
    fn random(&self) -> Result<[u8; 32], VaultError>;
}

/// Why [`Access`] cannot be read or kept.
#[derive(Debug)]
pub enum VaultError {
    /// The file cannot be read.
    Read(PathBuf, io::Error),
    /// The file was read, but its content is not what hookspan wrote.
    Damaged(PathBuf),
    /// The file cannot be written.
    Write(PathBuf, io::Error),
    /// The system gives no random bytes.
    Random(io::Error),
    /// The thread that did the work has failed.
    Thread,
}

impl fmt::Display for VaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(file, error) => write!(f, "cannot read {}: {error}", file.display()),
            Self::Damaged(file) => write!(
                f,
                "cannot read {}: it is damaged; move it away, then sign in again",
                file.display()
            ),
            Self::Write(file, error) => write!(f, "cannot write {}: {error}", file.display()),
            Self::Random(error) => write!(f, "the system has no randomness: {error}"),
            Self::Thread => f.write_str("a thread failed"),
        }
    }
}

impl core::error::Error for VaultError {}

/// An event of the sign-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knock<'a> {
    /// A browser of this name signed in.
    SignedIn(&'a str),
    /// A browser was signed out.
    SignedOut,
    /// A token of this name was ended.
    TokenEnded(&'a str),
    /// Somebody used a code that is not valid.
    CodeRefused,
    /// Somebody used a token that is not valid.
    TokenRefused,
}

/// Signed-in browsers and tokens of scripts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Access {
    /// Signed-in browsers, the oldest first.
    pub sessions: Vec<BrowserSession>,
    /// Tokens of scripts.
    pub tokens: Vec<ScriptToken>,
}

/// A browser that signed in. Times are seconds since the epoch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BrowserSession {
    /// Random id for lists. It is not secret.
    pub id: String,
    /// The browser's name, as the browser states it.
    pub browser: String,
    /// When it signed in.
    pub created_s: i64,
    /// When it was last used, to the hour.
    pub used_s: i64,
    /// Keys with which open pages identify themselves after a restart of the collector.
    pub(crate) keys: Vec<PageKey>,
}

/// A credential of one page, for one handshake.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PageKey {
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) verifier: Verifier,
}

/// A token of a script. Times are seconds since the epoch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScriptToken {
    /// Given by a person; unique.
    pub name: String,
    sha256: Bytes32,
    /// When it was made or rotated.
    pub created_s: i64,
    /// When it was last used, to the hour; `None` if it was not used yet.
    #[serde(default)]
    pub used_s: Option<i64>,
    /// It may only send telemetry. Such a token stands in the environment of many programs, so it must read nothing.
    #[serde(default)]
    pub sends_only: bool,
}

/// Why a token was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadToken {
    /// The name is empty, too long, or contains characters that are not allowed.
    Name,
    /// A token with that name exists.
    Exists,
    /// The maximum number of tokens is reached.
    Full,
}

impl fmt::Display for BadToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => write!(
                f,
                "the name of a token must have 1 to {NAME_MAX} characters: letters, digits, `.`, `-` and `_`"
            ),
            Self::Exists => f.write_str(
                "there is a token of that name: revoke it, or give it a new text with `hookspan token rotate`",
            ),
            Self::Full => write!(f, "there are {TOKENS_MAX} tokens: revoke one first"),
        }
    }
}

impl core::error::Error for BadToken {}

impl BrowserSession {
    /// When it ends if nobody uses it.
    #[must_use]
    pub fn expires_s(&self) -> i64 {
        self.used_s.saturating_add(IDLE_S).min(self.created_s.saturating_add(ABSOLUTE_S))
    }

    fn lives(&self, now_s: i64) -> bool {
        now_s < self.expires_s()
    }
}

impl Access {
    /// Makes a token from 32 random bytes and returns its text. The text is not stored.
    ///
    /// # Errors
    /// See [`BadToken`].
    pub fn create_token(
        &mut self,
        name: &str,
        random: [u8; 32],
        now_s: i64,
    ) -> Result<String, BadToken> {
        self.create(name, random, now_s, false)
    }

    /// The same for a token that may only send telemetry.
    ///
    /// # Errors
    /// See [`BadToken`].
    pub fn create_sending_token(
        &mut self,
        name: &str,
        random: [u8; 32],
        now_s: i64,
    ) -> Result<String, BadToken> {
        self.create(name, random, now_s, true)
    }

    fn create(
        &mut self,
        name: &str,
        random: [u8; 32],
        now_s: i64,
        sends_only: bool,
    ) -> Result<String, BadToken> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(plain) {
            return Err(BadToken::Name);
        }
        if self.tokens.iter().any(|token| token.name == name) {
            return Err(BadToken::Exists);
        }
        if self.tokens.len() >= TOKENS_MAX {
            return Err(BadToken::Full);
        }
        let text = format!("{TOKEN_PREFIX}{}", hex(&random));
        let sha256 = sha256(text.as_bytes());
        self.tokens.push(ScriptToken {
            name: name.to_owned(),
            sha256,
            created_s: now_s,
            used_s: None,
            sends_only,
        });
        Ok(text)
    }

    /// Gives a token a new text; the old text becomes invalid. `None` if there is no such token.
    pub fn rotate_token(&mut self, name: &str, random: [u8; 32], now_s: i64) -> Option<String> {
        let sends_only = self.tokens.iter().any(|token| token.name == name && token.sends_only);
        self.revoke_token(name).then(|| self.create(name, random, now_s, sends_only).ok())?
    }

    /// Revokes a token. Returns false if there is no such token.
    pub fn revoke_token(&mut self, name: &str) -> bool {
        let before = self.tokens.len();
        self.tokens.retain(|token| token.name != name);
        self.tokens.len() < before
    }

    /// Signs a browser out. Returns false if there is no such session.
    pub fn revoke_session(&mut self, id: &str) -> bool {
        let before = self.sessions.len();
        self.sessions.retain(|session| session.id != id);
        self.sessions.len() < before
    }

    /// The sessions that have not expired.
    pub fn living(&self, now_s: i64) -> impl Iterator<Item = &BrowserSession> {
        self.sessions.iter().filter(move |session| session.lives(now_s))
    }

    /// The token with this text.
    pub(crate) fn token(&self, text: &str) -> Option<&ScriptToken> {
        let hash = sha256(text.as_bytes());
        // Compare all tokens, so that the time does not reveal which one matched.
        self.tokens
            .iter()
            .fold(None, |found, token| if token.sha256.is(&hash) { Some(token) } else { found })
    }

    /// The session, if it has not expired.
    pub(crate) fn session(&self, id: &str, now_s: i64) -> Option<&BrowserSession> {
        self.living(now_s).find(|session| session.id == id)
    }

    /// The session and the verifier of a page's key.
    pub(crate) fn page_key(&self, id: &str, now_s: i64) -> Option<(&str, Verifier)> {
        self.living(now_s).find_map(|session| {
            let key = session.keys.iter().find(|key| key.id == id)?;
            Some((session.id.as_str(), key.verifier))
        })
    }

    /// Adds a session and removes expired ones.
    pub(crate) fn add_session(&mut self, id: &str, browser: &str, now_s: i64) {
        self.sessions.retain(|session| session.lives(now_s));
        while self.sessions.len() >= SESSIONS_MAX {
            let idle = self.sessions.iter().enumerate().min_by_key(|(_, one)| one.used_s);
            let Some((at, _)) = idle else { break };
            self.sessions.remove(at);
        }
        self.sessions.push(BrowserSession {
            id: id.to_owned(),
            browser: browser.to_owned(),
            created_s: now_s,
            used_s: now_s,
            keys: Vec::new(),
        });
    }

    /// Replaces a page's used key by a new one. Returns false if the session no longer exists.
    pub(crate) fn rotate_key(
        &mut self,
        session: &str,
        used: &str,
        key: &PageKey,
        now_s: i64,
    ) -> bool {
        let found = self.sessions.iter_mut().find(|one| one.id == session && one.lives(now_s));
        let Some(session) = found else { return false };
        session.used_s = now_s;
        session.keys.retain(|key| key.id != used);
        if session.keys.len() >= KEYS_MAX {
            session.keys.remove(0);
        }
        session.keys.push(key.clone());
        true
    }

    /// Notes that a session or a token is being used.
    pub(crate) fn touch(&mut self, session: Option<&str>, token: Option<&str>, now_s: i64) {
        for one in &mut self.sessions {
            if session == Some(one.id.as_str()) && one.lives(now_s) {
                one.used_s = now_s;
            }
        }
        for one in &mut self.tokens {
            if token == Some(one.name.as_str()) {
                one.used_s = Some(now_s);
            }
        }
    }
}

/// The browser that a `User-Agent` header names, in our words, because the header may contain any text.
pub(crate) fn browser(agent: &str) -> String {
    const BROWSERS: [(&str, &str); 6] = [
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Chromium/", "Chromium"),
        ("Safari/", "Safari"),
    ];
    const SYSTEMS: [(&str, &str); 6] = [
        ("Android", "Android"),
        ("iPhone", "iOS"),
        ("iPad", "iOS"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ];
    let named = |names: &[(&str, &'static str)]| {
        names.iter().find(|(part, _)| agent.contains(part)).map(|(_, name)| *name)
    };
    match (named(&BROWSERS), named(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        _ => "another browser".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_named_once_and_found_by_its_text_alone() {
        let mut access = Access::default();
        let text = access.create_token("ci", [7; 32], 5).unwrap();
        assert_eq!(access.create_token("ci", [8; 32], 5), Err(BadToken::Exists));
        for name in ["", "a b", "é", &"a".repeat(41)] {
            assert_eq!(access.create_token(name, [8; 32], 5), Err(BadToken::Name), "{name}");
        }
        assert_eq!(access.token(&text).map(|token| token.name.as_str()), Some("ci"));
        let new = access.rotate_token("ci", [9; 32], 6).unwrap();
        assert!(access.token(&text).is_none() && access.token(&new).is_some());
        assert_eq!(access.rotate_token("no", [9; 32], 6), None);
        let kept = serde_json::to_string(&access).unwrap();
        assert!(!kept.contains(&new) && !kept.contains(&new["hookspan_".len()..]));
        assert!(access.revoke_token("ci") && !access.revoke_token("ci"));
        for n in 0..TOKENS_MAX {
            access.create_token(&format!("t{n}"), [1; 32], 0).unwrap();
        }
        assert_eq!(access.create_token("more", [8; 32], 5), Err(BadToken::Full));
    }

    #[test]
    fn a_new_text_gives_a_token_no_more_rights() {
        let mut access = Access::default();
        access.create_sending_token("build", [1; 32], 5).unwrap();
        access.create_token("script", [2; 32], 5).unwrap();
        for (name, sends_only) in [("build", true), ("script", false)] {
            let text = access.rotate_token(name, [3; 32], 6).unwrap();
            assert_eq!(
                access.token(&text).map(|token| token.sends_only),
                Some(sends_only),
                "{name}"
            );
            access.revoke_token(name);
        }
    }

    #[test]
    fn a_session_ends_when_it_is_idle_and_after_thirty_days_at_the_latest() {
        let mut access = Access::default();
        access.add_session("a", "Firefox", 0);
        assert!(access.session("a", IDLE_S - 1).is_some());
        assert!(access.session("a", IDLE_S).is_none());
        for day in 0..40 {
            access.touch(Some("a"), None, day * DAY_S);
        }
        assert!(access.session("a", ABSOLUTE_S - 1).is_some());
        assert!(access.session("a", ABSOLUTE_S).is_none());
        access.add_session("b", "Firefox", ABSOLUTE_S);
        assert_eq!(access.sessions.len(), 1, "what has expired is forgotten");
    }

    #[test]
    fn sessions_and_their_keys_are_bounded() {
        let mut access = Access::default();
        for n in 0..100 {
            access.add_session(&format!("s{n}"), "Firefox", n);
        }
        assert_eq!(access.sessions.len(), SESSIONS_MAX);
        assert!(access.session("s99", 100).is_some() && access.session("s0", 100).is_none());
        let key = |n: u32| PageKey {
            id: format!("k{n}"),
            verifier: Verifier::of(&sha256(&n.to_le_bytes())),
        };
        for n in 0..100 {
            assert!(access.rotate_key("s99", "", &key(n), 100));
        }
        assert!(access.page_key("k99", 100).is_some() && access.page_key("k0", 100).is_none());
        assert!(access.rotate_key("s99", "k99", &key(100), 100));
        assert!(access.page_key("k99", 100).is_none(), "a key is worth one handshake");
    }

    #[test]
    fn a_browser_is_named_in_our_words() {
        let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36";
        assert_eq!(browser(chrome), "Chrome on Linux");
        assert_eq!(browser("<script>"), "another browser");
    }
}
