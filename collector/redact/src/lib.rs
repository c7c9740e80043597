//! Finds secrets in text and replaces them before the text leaves the raw log.
//!
//! ```text
//! text ──keywords──▶ regions ──rules──▶ matches ──plausible──▶ secrets ──▶ text with [redacted:RULE:DIGITS]
//! ```
//!
//! The rules are data: see [`rules`]. For a text without a keyword, the only cost is one pass of an automaton. All
//! other work is bounded: a rule sees each byte of a text once, and a text that is too large or contains too many
//! secrets is withheld as a whole.
//!
//! The crate reads no clock, no file and no environment. The same key and text give the same result.

mod json;
mod plausible;
pub mod rules;
mod scan;
mod user;
mod view;
mod wrapped;

use std::borrow::Cow;

use hmac::{Hmac, KeyInit as _, Mac as _};
use regex::bytes::{Captures, Regex};
use sha2::Sha256;

use plausible::Found;
use rules::Check;
use scan::{Region, Scanner};
use view::View;

pub use user::{UserRule, UserRuleError, check_exception};

/// Replaces a text that was not searched.
pub const WITHHELD: &str = "[withheld]";

/// Maximum size of a text. Larger texts are withheld. 64 MiB is twice the largest hook.
const TEXT_MAX_BYTES: usize = 64 << 20;
/// Maximum number of secrets in a text. A text with more is withheld. A real text has fewer than a hundred.
const SECRETS_MAX: usize = 100_000;
/// Maximum length, in bytes, of a match that is searched again if the match itself is not a secret. The limit bounds
/// the cost of text such as `token=token=token=`.
const RETRY_MAX_BYTES: usize = 160;
/// Number of bytes by which a region grows when a match reaches its end.
const EXTENSION: usize = 4 * 1_024;

/// Replaces secrets. A redactor is cheap to share between threads. Building one compiles only the keywords; each rule
/// is compiled at its first use.
pub struct Redactor {
    scanner: Scanner,
    user: Vec<user::Compiled>,
    allow: Vec<Regex>,
    key: [u8; 32],
    version: String,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

/// A secret in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Secret<'a> {
    start: usize,
    end: usize,
    /// Rules of this crate come before the user's rules. If finds overlap, the first rule names them.
    rank: usize,
    name: &'a str,
}

impl Redactor {
    /// A redactor whose hashes use `key`.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        let rules = rules::all()
            .flat_map(|rule| rule.keywords.iter().copied().chain([rule.name, rule.pattern]));
        let version = digits_of(rules);
        Self { scanner: Scanner::new(), user: Vec::new(), allow: Vec::new(), key, version }
    }

    /// Adds the user's rules, and expressions for texts that are not secrets.
    ///
    /// # Errors
    /// Returns the index of the first rule or exception that cannot be used, and why.
    pub fn with(
        mut self,
        rules: &[UserRule],
        allow: &[String],
    ) -> Result<Self, (usize, UserRuleError)> {
        for (index, rule) in rules.iter().enumerate() {
            self.user.push(user::rule(rule).map_err(|error| (index, error))?);
        }
        for (index, pattern) in allow.iter().enumerate() {
            self.allow.push(user::exception(pattern).map_err(|error| (index, error))?);
        }
        if !rules.is_empty() || !allow.is_empty() {
            let names = rules.iter().flat_map(|rule| [&rule.name, &rule.pattern]).chain(allow);
            self.version = format!("{}:{}", self.version, digits_of(names.map(String::as_str)));
        }
        Ok(self)
    }

    /// A version that stands for all rules, including the user's. Text that was indexed under another version must be
    /// indexed again.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// `text` without secrets, and the number of secrets replaced. A valid JSON document stays a valid JSON document.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> (Cow<'a, str>, usize) {
        if self.user.is_empty() && self.is_plain(text) {
            return (Cow::Borrowed(text), 0);
        }
        if text.len() > TEXT_MAX_BYTES || !self.scanner.is_ready() {
            return (Cow::Borrowed(WITHHELD), 1);
        }
        let secrets = self.secrets(text);
        match secrets.len() {
            0 => (Cow::Borrowed(text), 0),
            1..=SECRETS_MAX => {
                let (redacted, count) = self.replace(text, secrets);
                if json::is_broken(text, &redacted) {
                    return json::by_string(text, |part| self.redact_flat(part));
                }
                (Cow::Owned(redacted), count)
            }
            _ => (Cow::Borrowed(WITHHELD), 1),
        }
    }

    /// Like [`Self::redact`], in place. Returns the number of secrets replaced.
    pub fn redact_in_place(&self, text: &mut String) -> usize {
        let (redacted, count) = self.redact(text);
        if let Cow::Owned(redacted) = redacted {
            *text = redacted;
        } else if count > 0 {
            WITHHELD.clone_into(text);
        }
        count
    }

    /// Redacts every string of a JSON value, including the names of members.
    pub fn redact_json(&self, value: &mut serde_json::Value) -> usize {
        json::walk(value, &mut |text| self.redact_in_place(text))
    }

    fn redact_flat(&self, text: &str) -> (String, usize) {
        self.replace(text, self.secrets(text))
    }

    /// Whether `text` surely contains no secret. This is the usual case, so the check allocates nothing.
    fn is_plain(&self, text: &str) -> bool {
        let bytes = text.as_bytes();
        let escaped = memchr::memchr(b'\\', bytes).is_some() || view::has_percent(bytes);
        !escaped && self.scanner.is_ready() && !self.scanner.has_hint(text.as_bytes())
    }

    fn secrets(&self, text: &str) -> Vec<Secret<'_>> {
        let bytes = text.as_bytes();
        let mut secrets = Vec::new();
        if memchr::memchr(b'\\', bytes).is_some() {
            self.find_in_view(bytes, &View::of(bytes), &mut secrets);
        } else {
            self.find(bytes, 0, &mut secrets);
        }
        // Percent-escapes are decoded in a second pass. In the first pass, `%2F` must not end a password in a URL as a
        // `/` would.
        if view::has_percent(bytes) {
            self.find_in_view(bytes, &View::of_url(bytes), &mut secrets);
        }
        self.find_by_user(text, &mut secrets);
        secrets.retain(|secret| self.stays(text, *secret));
        secrets
    }

    fn find_in_view<'s>(&'s self, text: &[u8], view: &View, secrets: &mut Vec<Secret<'s>>) {
        let mut found = Vec::new();
        self.find(&view.text, 0, &mut found);
        for secret in &mut found {
            secret.start = view.original(secret.start);
            secret.end = view::end_of_quoted(text, secret.start, view.original(secret.end));
        }
        secrets.append(&mut found);
    }

    /// Whether a find counts as a secret. The user's exceptions can deny it.
    fn stays(&self, text: &str, secret: Secret<'_>) -> bool {
        let value = text.as_bytes().get(secret.start..secret.end).unwrap_or_default();
        !self.allow.iter().any(|exception| exception.is_match(value))
    }

    /// Runs each rule over its regions of `text`. `depth` is the number of base64 layers around `text`.
    fn find<'s>(&'s self, text: &[u8], depth: usize, secrets: &mut Vec<Secret<'s>>) {
        // A match may reach beyond its region. Then the rule's next region starts behind the match.
        let mut done = vec![0; self.scanner.rules.len()];
        for mut region in self.scanner.regions(text) {
            if secrets.len() > SECRETS_MAX {
                return;
            }
            let Some(done) = done.get_mut(region.rule) else { continue };
            region.start = region.start.max(*done);
            *done = self.find_in(text, region, depth, secrets);
        }
    }

    /// Runs one rule over a region. Returns the position at which the rule may continue.
    fn find_in<'s>(
        &'s self,
        text: &[u8],
        region: Region,
        depth: usize,
        secrets: &mut Vec<Secret<'s>>,
    ) -> usize {
        let (mut at, mut end) = (region.start, region.end);
        let Some(compiled) = self.scanner.rules.get(region.rule) else { return end };
        let Some(regex) = compiled.regex() else { return end };
        while at < end {
            let Some(captures) = regex.captures_at(text.get(..end).unwrap_or_default(), at) else {
                return at;
            };
            let Some(whole) = captures.get(0) else { return at };
            if whole.end() == end && end < text.len() {
                // The secret may continue behind the region.
                end = end.saturating_add(EXTENSION.max(end - at)).min(text.len());
                at = whole.start();
                continue;
            }
            let mut next = whole.end();
            if let Some((start, stop)) = secret_of(&captures) {
                let found = Found {
                    lead: text.get(whole.start()..start).unwrap_or_default(),
                    secret: text.get(start..stop).unwrap_or_default(),
                };
                if is_in_placeholder(text, start) {
                    // A placeholder stands here: the secret is already redacted.
                } else if found.passes(compiled.rule.check)
                    && self.is_inside(compiled.rule.check, found.secret, depth)
                {
                    secrets.push(Secret {
                        start,
                        end: stop,
                        rank: region.rule,
                        name: compiled.rule.name,
                    });
                } else if stop - start <= RETRY_MAX_BYTES && compiled.rule.check != Check::Wrapped {
                    // The matched value may really be the name of the next value, so the search continues inside the
                    // match.
                    next = start.max(whole.start() + 1);
                }
                next = next.min(stop.max(whole.start() + 1));
            }
            at = next.max(at + 1);
        }
        at
    }

    /// Whether a find of the check `Wrapped`, which is base64, contains a secret. Finds of other checks need no such
    /// test.
    fn is_inside(&self, check: Check, secret: &[u8], depth: usize) -> bool {
        if check != Check::Wrapped {
            return true;
        }
        let Some(decoded) = (depth < 2).then(|| wrapped::decoded(secret)).flatten() else {
            return false;
        };
        let mut inner = Vec::new();
        self.find(decoded.as_bytes(), depth + 1, &mut inner);
        !inner.is_empty()
    }

    fn find_by_user<'s>(&'s self, text: &str, secrets: &mut Vec<Secret<'s>>) {
        for (index, rule) in self.user.iter().enumerate() {
            for captures in rule.regex.captures_iter(text.as_bytes()) {
                let whole = captures.get(0).map(|whole| (whole.start(), whole.end()));
                let Some((start, end)) =
                    secret_of(&captures).or(whole).filter(|(start, end)| start < end)
                else {
                    continue;
                };
                secrets.push(Secret {
                    start,
                    end,
                    rank: rules::all().count() + index,
                    name: &rule.name,
                });
                if secrets.len() > SECRETS_MAX {
                    return;
                }
            }
        }
    }

    /// Replaces secrets. Overlapping secrets are replaced as one, named by the first matching rule.
    fn replace(&self, text: &str, mut secrets: Vec<Secret<'_>>) -> (String, usize) {
        secrets.sort_unstable();
        let (mut out, mut done, mut count) = (String::with_capacity(text.len()), 0, 0);
        let mut rest = secrets.into_iter().peekable();
        while let Some(mut secret) = rest.next() {
            while let Some(next) = rest.next_if(|next| next.start < secret.end) {
                secret.end = secret.end.max(next.end);
                if next.rank < secret.rank {
                    (secret.rank, secret.name) = (next.rank, next.name);
                }
            }
            let (start, end) = (floor(text, secret.start), ceil(text, secret.end));
            out.push_str(text.get(done..start).unwrap_or_default());
            let digits = self.digits(text.get(start..end).unwrap_or_default());
            out.push_str(&format!("[redacted:{}:{digits}]", secret.name));
            (done, count) = (end, count + 1);
        }
        out.push_str(text.get(done..).unwrap_or_default());
        (out, count)
    }

    /// Eight hexadecimal digits, made with the key. Equal secrets get equal digits, and nobody can test a guess without
    /// the key.
    fn digits(&self, secret: &str) -> String {
        // HMAC accepts a key of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else { return String::new() };
        mac.update(secret.as_bytes());
        first_digits(mac)
    }
}

/// Digits that change if any of `parts` changes.
fn digits_of<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    // HMAC accepts a key of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(b"rules") else { return String::new() };
    for part in parts {
        mac.update(part.as_bytes());
        mac.update(&[0]);
    }
    first_digits(mac)
}

fn first_digits(mac: Hmac<Sha256>) -> String {
    mac.finalize().into_bytes().iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Whether `at` lies inside a placeholder. Text that is already redacted must stay as it is.
fn is_in_placeholder(text: &[u8], at: usize) -> bool {
    const START: &[u8] = b"[redacted:";
    let from = at.saturating_sub(64);
    let before = text.get(from..at).unwrap_or_default();
    let Some(found) = memchr::memmem::rfind(before, START) else { return false };
    let rest = text.get(from + found + START.len()..).unwrap_or_default();
    let name = rest
        .iter()
        .take_while(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || **b == b'-')
        .count();
    let digits = rest.get(name + 1..name + 9).unwrap_or_default();
    let whole = (1..=40).contains(&name)
        && rest.get(name) == Some(&b':')
        && rest.get(name + 9) == Some(&b']');
    whole
        && digits.len() == 8
        && digits.iter().all(u8::is_ascii_hexdigit)
        && from + found + START.len() + name + 10 > at
}

/// The first group that takes part.
fn secret_of(captures: &Captures<'_>) -> Option<(usize, usize)> {
    captures.iter().skip(1).flatten().next().map(|secret| (secret.start(), secret.end()))
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn ceil(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests;
