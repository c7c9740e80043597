//! Signs browsers in, and identifies the sender of a request.
//!
//! A page never sends a secret. First the collector proves that it knows the secret, then the page does. The page signs
//! each request with a key that both sides derive. So a program that listens on the port instead of the collector
//! learns nothing that it could use later. `docs/decisions/0005-no-cookie.md` explains why.

mod credentials;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::credentials::{Credentials, Tab};
use super::access::{Knock, Vault, VaultError, browser};
use super::proof::{Bytes32, Handshake, Verifier, hex, mac, sha256};
use crate::Clock;

/// How long a code is valid, in nanoseconds.
const CODE_NS: i64 = 60 * SECOND_NS;
/// How long a nonce of ours is valid, in seconds. A page answers at once.
const NONCE_S: i64 = 30;
const SECOND_NS: i64 = 1_000_000_000;
/// Minimum time in seconds between two records of use, because each one is written to disk.
const TOUCH_S: i64 = 3_600;
/// Maximum length in bytes of a page's nonce or id.
const TEXT_MAX: usize = 64;

/// Decides who may enter. One per run of the collector.
pub struct Door {
    vault: Arc<dyn Vault>,
    clock: Clock,
    /// Key of our nonces. Nonces are valid only in this run.
    boot: Bytes32,
    /// Key with which tabs of one browser encrypt their messages.
    channel: Bytes32,
    owner: Bytes32,
    credentials: Mutex<Credentials>,
}

impl core::fmt::Debug for Door {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Door").finish_non_exhaustive()
    }
}

/// The sender of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Commands of the account that runs the collector.
    Owner,
    /// A script, by the name of its token.
    Script(String),
    /// A page of a signed-in browser.
    Page {
        /// Its session.
        session: String,
    },
    /// Anybody, because the dashboard requires no sign-in.
    Anyone,
}

/// Proof that an answer is ours.
#[derive(Debug)]
pub(crate) struct Receipt {
    key: Bytes32,
    seq: u64,
}

impl Receipt {
    /// The value of the header `hookspan-proof`.
    pub(crate) fn answer(&self, status: u16) -> String {
        mac(&self.key, &["answer", &self.seq.to_string(), &status.to_string()]).hex()
    }
}

/// A page's half of a handshake.
#[derive(Clone, Copy)]
pub(crate) struct Answered<'a> {
    pub(crate) handshake: Handshake<'a>,
    pub(crate) proof: &'a str,
    pub(crate) agent: &'a str,
}

/// Result of a handshake: the ids of the page's three keys. Both sides derive the keys.
pub(crate) struct Granted {
    pub(crate) session: String,
    pub(crate) tab: String,
    pub(crate) page: String,
    pub(crate) restart: String,
    pub(crate) channel: String,
    pub(crate) expires_us: i64,
}

/// Why a handshake failed.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The credential is unknown, used or expired, or the proof is wrong.
    Unknown,
    /// The stored access cannot be read or written.
    Vault(VaultError),
}

/// The parts of a request that identify its sender.
pub(crate) struct Shown<'a> {
    pub(crate) authorization: &'a str,
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) body: &'a [u8],
}

impl Door {
    /// Creates a door. Commands of the owner prove themselves with the secret `owner`.
    ///
    /// # Errors
    /// [`VaultError::Random`].
    pub fn new(vault: Arc<dyn Vault>, clock: Clock, owner: &str) -> Result<Self, VaultError> {
        let (boot, channel) = (Bytes32(vault.random()?), Bytes32(vault.random()?));
        let owner = sha256(owner.as_bytes());
        Ok(Self { vault, clock, boot, channel, owner, credentials: Mutex::default() })
    }

    /// Makes a code that signs one browser in, once, within a minute.
    ///
    /// # Errors
    /// [`VaultError::Random`].
    pub fn code(&self) -> Result<String, VaultError> {
        let (id, secret) = (self.id()?, Bytes32(self.vault.random()?));
        let until_ns = self.clock.now_ns().saturating_add(CODE_NS);
        self.credentials().add_code(&id, Verifier::of(&secret), until_ns);
        Ok(format!("{id}.{}", secret.hex()))
    }

    /// Whether the code with this id was used; `None` if the code is unknown or has expired.
    pub(crate) fn code_used(&self, id: &str) -> Option<bool> {
        self.credentials().code_used(id, self.clock.now_ns())
    }

    /// The stored sessions and tokens.
    pub(crate) fn vault(&self) -> &Arc<dyn Vault> {
        &self.vault
    }

    /// First half of a handshake: proves to the page that this is the collector that created its credential. Returns
    /// our nonce and proof.
    pub(crate) fn challenge(
        &self,
        id: &str,
        page_nonce: &str,
    ) -> Result<(String, String), Refused> {
        if id.len() > TEXT_MAX || !(16..=TEXT_MAX).contains(&page_nonce.len()) {
            return Err(Refused::Unknown);
        }
        let (_, verifier) = self.find(id)?;
        let nonce = self.nonce(id, page_nonce, self.now_s());
        let proof = verifier.server_proof(&Handshake { id, page_nonce, nonce: &nonce });
        Ok((nonce, proof.hex()))
    }

    /// Second half of a handshake: checks the page's proof. Writes to disk.
    pub(crate) fn finish(&self, answered: &Answered<'_>) -> Result<Granted, Refused> {
        let finished = self.check(answered);
        if matches!(finished, Err(Refused::Unknown)) {
            self.vault.note(Knock::CodeRefused);
        }
        finished
    }

    fn check(&self, answered: &Answered<'_>) -> Result<Granted, Refused> {
        let Answered { handshake, proof, agent } = *answered;
        let (from, verifier) = self.find(handshake.id)?;
        if !self.is_fresh(&handshake) {
            return Err(Refused::Unknown);
        }
        let shared = Bytes32::parse(proof)
            .and_then(|proof| verifier.shared(&handshake, &proof))
            .ok_or(Refused::Unknown)?;
        if matches!(from, From::Code) && !self.credentials().use_code(handshake.id) {
            return Err(Refused::Unknown);
        }
        self.grant(from, handshake.id, &shared, agent)
    }

    fn grant(
        &self,
        from: From,
        used: &str,
        shared: &Bytes32,
        agent: &str,
    ) -> Result<Granted, Refused> {
        let id = || self.id().map_err(Refused::Vault);
        let now_s = self.now_s();
        let (is_new, session) = match from {
            From::Code => (true, id()?),
            From::Page(session) | From::Restart(session) => (false, session),
        };
        let (tab, page, restart) = (id()?, id()?, id()?);
        let verifier = |label| Verifier::of(&mac(shared, &[label]));
        let key = super::access::PageKey { id: restart.clone(), verifier: verifier("restart") };
        let mut is_kept = false;
        let kept = self.vault.change(&mut |access| {
            if is_new {
                access.add_session(&session, &browser(agent), now_s);
            }
            is_kept = access.rotate_key(&session, used, &key, now_s);
        });
        kept.map_err(Refused::Vault)?;
        if !is_kept {
            return Err(Refused::Unknown);
        }
        let mut credentials = self.credentials();
        credentials.add_page(&page, verifier("page"), &session);
        credentials.add_tab(&tab, Tab::new(mac(shared, &["tab"]), &session));
        drop(credentials);
        if is_new {
            self.vault.note(Knock::SignedIn(&browser(agent)));
            tracing::info!("dashboard.signed_in");
        }
        let expires_us = self.expires_us(&session);
        Ok(Granted { session, tab, page, restart, channel: self.channel.hex(), expires_us })
    }

    /// The sender of a request; `None` if its proof is missing or invalid.
    pub(crate) fn admit(&self, shown: &Shown<'_>) -> Option<(Who, Option<Receipt>)> {
        let (scheme, text) = shown.authorization.split_once(' ')?;
        let text = text.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            let who = self.bearer(text);
            if who.is_none() {
                self.vault.note(Knock::TokenRefused);
            }
            return Some((who?, None));
        }
        if scheme.eq_ignore_ascii_case("hookspan") {
            let (who, receipt) = self.page(text, shown)?;
            return Some((who, Some(receipt)));
        }
        None
    }

    /// Whether the sender may still read. Open streams check this repeatedly.
    pub(crate) fn still_admits(&self, who: &Who) -> bool {
        let Ok(access) = self.vault.read() else { return false };
        match who {
            Who::Page { session } => access.session(session, self.now_s()).is_some(),
            Who::Script(name) => access.tokens.iter().any(|token| token.name == *name),
            Who::Owner | Who::Anyone => true,
        }
    }

    /// Removes the keys of an ended session.
    pub(crate) fn forget(&self, session: &str) {
        self.credentials().forget(session);
    }

    /// Whether the sender of telemetry shows a token, of either kind, in its header `Authorization`. A refusal is recorded.
    #[must_use]
    pub fn admits_sender(&self, authorization: &str) -> bool {
        let admitted = authorization.split_once(' ').is_some_and(|(scheme, text)| {
            scheme.eq_ignore_ascii_case("bearer") && self.token(text.trim(), true).is_some()
        });
        if !admitted {
            self.vault.note(Knock::TokenRefused);
        }
        admitted
    }

    fn bearer(&self, text: &str) -> Option<Who> {
        self.token(text, false)
    }

    /// Who shows this token. A token that may only send is valid only where something is sent.
    fn token(&self, text: &str, is_sending: bool) -> Option<Who> {
        // Longer than any token of ours.
        if text.len() > 4 * TEXT_MAX {
            return None;
        }
        if sha256(text.as_bytes()).is(&self.owner) {
            return Some(Who::Owner);
        }
        let access = self.vault.read().ok()?;
        let token = access.token(text).filter(|token| is_sending || !token.sends_only)?;
        self.touch(token.used_s.unwrap_or(0), None, Some(&token.name));
        Some(Who::Script(token.name.clone()))
    }

    fn page(&self, text: &str, shown: &Shown<'_>) -> Option<(Who, Receipt)> {
        let mut parts = text.splitn(3, ':');
        let (tab, seq, proof) = (parts.next()?, parts.next()?, Bytes32::parse(parts.next()?)?);
        let number: u64 = seq.parse().ok()?;
        let body = sha256(shown.body).hex();
        let lines = ["request", shown.method, shown.target, seq, &body];
        let (session, key) =
            self.credentials().admit(tab, number, |key| mac(key, &lines).is(&proof))?;
        let access = self.vault.read().ok()?;
        let used_s = access.session(&session, self.now_s())?.used_s;
        self.touch(used_s, Some(&session), None);
        Some((Who::Page { session }, Receipt { key, seq: number }))
    }

    fn touch(&self, used_s: i64, session: Option<&str>, token: Option<&str>) {
        let now_s = self.now_s();
        if now_s.saturating_sub(used_s) < TOUCH_S {
            return;
        }
        let noted = self.vault.change(&mut |access| access.touch(session, token, now_s));
        if let Err(error) = noted {
            tracing::warn!(%error, "dashboard.use_not_noted");
        }
    }

    fn find(&self, id: &str) -> Result<(From, Verifier), Refused> {
        let credentials = self.credentials();
        if let Some(verifier) = credentials.code(id, self.clock.now_ns()) {
            return Ok((From::Code, verifier));
        }
        if let Some((session, verifier)) = credentials.page(id) {
            return Ok((From::Page(session.to_owned()), verifier));
        }
        drop(credentials);
        let access = self.vault.read().map_err(Refused::Vault)?;
        let (session, verifier) = access.page_key(id, self.now_s()).ok_or(Refused::Unknown)?;
        Ok((From::Restart(session.to_owned()), verifier))
    }

    fn expires_us(&self, session: &str) -> i64 {
        let access = self.vault.read().ok();
        let expires_s = access.and_then(|access| Some(access.session(session, 0)?.expires_s()));
        expires_s.unwrap_or_default().saturating_mul(1_000_000)
    }

    /// The nonce contains its own time and checksum, so nothing has to be stored for a handshake that is never
    /// finished.
    fn nonce(&self, id: &str, page_nonce: &str, at_s: i64) -> String {
        let at = format!("{at_s:016x}");
        format!("{at}{}", hex(&mac(&self.boot, &["nonce", id, page_nonce, &at]).0[..16]))
    }

    fn is_fresh(&self, handshake: &Handshake<'_>) -> bool {
        let at = handshake.nonce.get(..16).and_then(|at| i64::from_str_radix(at, 16).ok());
        let Some(at_s) = at else { return false };
        let made = self.nonce(handshake.id, handshake.page_nonce, at_s);
        let is_ours = sha256(made.as_bytes()).is(&sha256(handshake.nonce.as_bytes()));
        is_ours && (0..=NONCE_S).contains(&self.now_s().saturating_sub(at_s))
    }

    fn id(&self) -> Result<String, VaultError> {
        Ok(hex(&self.vault.random()?[..16]))
    }

    fn now_s(&self) -> i64 {
        self.clock.now_ns() / SECOND_NS
    }

    fn credentials(&self) -> MutexGuard<'_, Credentials> {
        self.credentials.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The origin of a credential.
enum From {
    Code,
    Page(String),
    Restart(String),
}
