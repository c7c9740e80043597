//! Blanking secrets in text that is indexed: a published set of detectors, and rules of our own for what it misses.
//!
//! A secret becomes `[redacted:RULE:8 hex digits]`. The digits are a keyed hash: equal secrets are recognised, guesses
//! cannot be tested without the key, which never leaves this machine.

use std::borrow::Cow;
use std::sync::LazyLock;

use hmac::{Hmac, KeyInit as _, Mac as _};
use redact_secret::{BuiltInRegistry, DefaultPolicy};
use regex::Regex;
use sha2::Sha256;

/// Changes with the rules, so that what was indexed under older ones is indexed again.
pub const RULES_VERSION: &str = "1:redact-secret-0.1.0-beta.15";

/// Stands for a text that could not be looked through.
pub const WITHHELD: &str = "[withheld]";

/// Our own rules: a name, and an expression whose group `s` is the secret.
static OWN: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    let rules = [
        ("url-password", r"(?i)\b[a-z][a-z0-9+.-]*://[^\s/:@]*:(?P<s>[^\s@]{3,})@"),
        ("cookie", r"(?i)\b(?:set-)?cookie\s*:\s*(?P<s>[^\r\n]{4,})"),
        ("mysql-password", r"\b(?:mysql|mysqldump|mariadb)\b[^\r\n]*?\s-p(?P<s>[^\s-][^\s]{2,})"),
        (
            "assignment",
            r#"(?i)\b[a-z0-9_.-]*(?:password|passwd|secret|token|api_?key|access_?key|private_?key|credentials?)\\*["']?\s*[:=]\s*\\*["']?(?P<s>[^\s"',;&\\]{6,})"#,
        ),
        (
            "authorization",
            r"(?i)\bauthorization\s*[:=]\s*(?:basic|bearer|token)\s+(?P<s>[^\s\x22']{6,})",
        ),
        (
            "query-token",
            r"(?i)[?&](?:access_token|token|key|sig|signature)=(?P<s>[^\s&#\x22']{6,})",
        ),
        ("age-key", r"(?P<s>AGE-SECRET-KEY-1[0-9A-Z]{20,})"),
        ("google-key", r"\b(?P<s>AIza[0-9A-Za-z_-]{30,})"),
        ("private-key", r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----(?P<s>.*?)(?:-----END|\z)"),
    ];
    let compiled = rules.map(|(name, rule)| Regex::new(rule).map(|regex| (name, regex)));
    compiled.into_iter().flatten().collect()
});

/// Looks through texts.
pub struct Redactor {
    published: BuiltInRegistry,
    key: [u8; 32],
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// A redactor whose hashes are made with `key`. `None` when its rules cannot be loaded: then nothing may be indexed.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Option<Self> {
        Some(Self { published: BuiltInRegistry::with_built_in().ok()?, key })
    }

    /// `text` without secrets, and how many there were. A text that the detectors refuse is withheld as a whole.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> (Cow<'a, str>, usize) {
        let Ok(findings) = self.published.scan(text, &DefaultPolicy) else {
            return (Cow::Borrowed(WITHHELD), 1);
        };
        let mut found: Vec<(usize, usize, &str)> = findings
            .iter()
            .map(|finding| (finding.range().start(), finding.range().end(), finding.type_name()))
            .collect();
        for (name, rule) in OWN.iter() {
            let matches = rule.captures_iter(text).filter_map(|captures| captures.name("s"));
            found.extend(matches.map(|secret| (secret.start(), secret.end(), *name)));
        }
        if found.is_empty() {
            return (Cow::Borrowed(text), 0);
        }
        found.sort_unstable();
        self.replace(text, &found)
    }

    /// Replaces ranges, which are in order and may overlap: those that do are one secret.
    fn replace<'a>(&self, text: &'a str, found: &[(usize, usize, &str)]) -> (Cow<'a, str>, usize) {
        let (mut out, mut done, mut count) = (String::with_capacity(text.len()), 0, 0);
        let mut rest = found.iter().peekable();
        while let Some(&(start, mut end, rule)) = rest.next() {
            while let Some(next) = rest.next_if(|next| next.0 <= end) {
                end = end.max(next.1);
            }
            let (Some(before), Some(secret)) = (text.get(done..start), text.get(start..end)) else {
                return (Cow::Borrowed(WITHHELD), 1);
            };
            out.push_str(before);
            out.push_str(&format!("[redacted:{rule}:{}]", self.hash(secret)));
            (done, count) = (end, count + 1);
        }
        out.push_str(text.get(done..).unwrap_or_default());
        (Cow::Owned(out), count)
    }

    fn hash(&self, secret: &str) -> String {
        // A key of any length is fine for HMAC.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else { return String::new() };
        mac.update(secret.as_bytes());
        mac.finalize().into_bytes().iter().take(4).map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn redactor() -> Redactor {
        Redactor::new([7; 32]).unwrap()
    }

    /// Shapes in which secrets stand in commands, files and answers; `§` is the secret.
    const PLACES: [&str; 14] = [
        "psql postgres://app:§@db.internal:5432/live",
        "curl -H 'Cookie: session=§; theme=dark' https://example.com",
        "mysql -uroot -p§ live",
        "export API_KEY=§",
        "DB_PASSWORD=§\nDB_HOST=localhost",
        "{\"client_secret\": \"§\", \"id\": 7}",
        "{\\\"client_secret\\\": \\\"§\\\"}",
        "Authorization: Bearer §",
        "authorization: Basic §",
        "GET /callback?access_token=§&state=1",
        "aws_secret_access_key = §",
        "password: §",
        "-----BEGIN OPENSSH PRIVATE KEY-----\n§\n-----END OPENSSH PRIVATE KEY-----",
        "token='§'",
    ];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_planted_secret_survives_whatever_stands_around_it(
            secret in "[A-Za-z0-9]{3}[A-Za-z0-9+/]{17,37}",
            before in "[a-z äß\n.]{0,40}",
            after in "[a-z 0-9\n]{0,40}",
        ) {
            let redactor = redactor();
            for place in PLACES {
                let text = format!("{before} {} \n{after}", place.replace('§', &secret));
                let (redacted, count) = redactor.redact(&text);
                prop_assert!(count > 0, "{}", text);
                prop_assert!(!redacted.contains(&secret), "{} -> {}", text, redacted);
            }
        }

        #[test]
        fn any_text_is_looked_through_without_a_panic(text in "\\PC{0,300}") {
            let (redacted, count) = redactor().redact(&text);
            if count == 0 {
                prop_assert_eq!(&*redacted, text.as_str());
            }
        }
    }

    #[test]
    fn every_rule_of_ours_compiles() {
        assert_eq!(OWN.len(), 9);
    }

    #[test]
    fn keys_of_known_services_are_found_without_a_name_beside_them() {
        for secret in [
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
            "AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
            "xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx",
        ] {
            let text = format!("here it is: {secret} (do not share)");
            let (redacted, _) = redactor().redact(&text);
            assert!(!redacted.contains(secret), "{redacted}");
            assert!(redacted.contains("(do not share)"), "{redacted}");
        }
    }

    #[test]
    fn ordinary_text_stays_and_equal_secrets_look_equal() {
        let plain = "cargo test --workspace src/main.rs 101 the token bucket has a password field";
        assert_eq!(redactor().redact(plain), (Cow::Borrowed(plain), 0));
        let one = redactor().redact("password=hunter2hunter2").0.into_owned();
        let two = redactor().redact("password=hunter2hunter2 and").0.into_owned();
        assert_eq!(two, format!("{one} and"));
        let other = Redactor::new([8; 32]).unwrap();
        assert_ne!(other.redact("password=hunter2hunter2").0, one);
    }
}
