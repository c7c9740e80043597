//! The access token: who may read. Only its hash is kept.

use axum::http::header::{self, HeaderMap};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// Longest text that is looked at, bytes.
const TEXT_MAX_BYTES: usize = 256;

/// The token's hash, and the name of its cookie.
#[derive(Clone)]
pub struct Token {
    sha256: [u8; 32],
    cookie: String,
}

impl core::fmt::Debug for Token {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Token").finish_non_exhaustive()
    }
}

impl Token {
    /// The token whose text hashes to `sha256`, for the port whose cookie it is. Cookies ignore ports, so that two dashboards
    /// of one browser need two names.
    #[must_use]
    pub fn new(sha256: [u8; 32], port: u16) -> Self {
        Self { sha256, cookie: format!("hookspan_{port}") }
    }

    /// Whether `text` is the token, in a time that does not depend on how much of it is right.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        self.matches(text).into()
    }

    fn matches(&self, text: &str) -> Choice {
        let short = Choice::from(u8::from(text.len() <= TEXT_MAX_BYTES));
        let end = text.len().min(TEXT_MAX_BYTES);
        let hash: [u8; 32] = Sha256::digest(&text.as_bytes()[..end]).into();
        hash.ct_eq(&self.sha256) & short
    }

    /// Whether the request carries it, as `Authorization: Bearer` or in the cookie.
    #[must_use]
    pub fn admits(&self, headers: &HeaderMap) -> bool {
        let bearer = headers.get_all(header::AUTHORIZATION).iter();
        let bearer = bearer.filter_map(|value| {
            let (scheme, text) = value.to_str().ok()?.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(text.trim())
        });
        let cookies = headers.get_all(header::COOKIE).iter();
        let cookies = cookies.filter_map(|value| value.to_str().ok());
        let cookies = cookies.flat_map(|value| value.split(';')).filter_map(|pair| {
            let (name, text) = pair.trim().split_once('=')?;
            (name == self.cookie).then_some(text)
        });
        bearer.chain(cookies).take(8).any(|text| self.is(text))
    }

    /// The cookie that keeps `text`, so that a bookmark works.
    #[must_use]
    pub fn cookie(&self, text: &str) -> String {
        const DAYS_180_S: u32 = 180 * 24 * 3600;
        self.set_cookie(text, DAYS_180_S)
    }

    /// The cookie that removes it.
    #[must_use]
    pub fn no_cookie(&self) -> String {
        self.set_cookie("", 0)
    }

    fn set_cookie(&self, text: &str, age_s: u32) -> String {
        let name = &self.cookie;
        format!("{name}={text}; Max-Age={age_s}; Path=/; HttpOnly; SameSite=Strict")
    }
}
