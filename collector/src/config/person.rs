//! Resource attributes that name the person and the team whose spans a destination gets. They are sent only if they are
//! configured, and a person only as a keyed hash.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::Environment;
use super::mistake::{Mistake, Why};
use super::reference::{Missing, secret};

/// Resource attribute that contains the hash of the person.
pub(crate) const USER: &str = "user.id";

/// Maximum number of attributes that a destination may add.
const ATTRIBUTES_MAX: usize = 32;
const KEY_MAX_BYTES: usize = 128;
const VALUE_MAX_BYTES: usize = 256;

/// Prefixes of attributes that only hookspan sets. `user.` is among them so that nobody sends an e-mail address in
/// plain text by mistake.
const RESERVED: [&str; 5] =
    ["telemetry.sdk.", "service.instance.", "user.", "enduser.", "hookspan."];

/// The keys of a destination's table that concern these attributes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    /// `attributes`.
    pub(super) attributes: &'a BTreeMap<String, String>,
    /// `user`.
    pub(super) user: Option<&'a str>,
    /// `user_key`.
    pub(super) key: Option<&'a str>,
}

/// The configured resource attributes, including `user.id`.
///
/// # Errors
/// A key that hookspan sets itself, a value that is too long, or a person without a key for the hash.
pub(super) fn attributes(
    asked: Asked<'_>,
    env: &Environment,
    missing: &mut Missing,
) -> Result<BTreeMap<String, String>, Mistake> {
    let mut all = BTreeMap::new();
    for (key, value) in asked.attributes {
        let is_reserved = RESERVED.iter().any(|prefix| key.starts_with(prefix));
        let is_fine = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
        let fits = (1..=KEY_MAX_BYTES).contains(&key.len()) && value.len() <= VALUE_MAX_BYTES;
        if is_reserved || !fits || !key.chars().all(is_fine) {
            return Err(Why::Attribute.at(format!("attributes.{key}")));
        }
        all.insert(key.clone(), value.clone());
    }
    if all.len() > ATTRIBUTES_MAX {
        return Err(Why::Attribute.at("attributes"));
    }
    match (asked.user, asked.key) {
        (None, None) => {}
        (Some(_), None) => return Err(Why::UserKey.at("user")),
        (None, Some(_)) => return Err(Why::UserAlone.at("user_key")),
        (Some(user), Some(key)) => {
            let user = missing.take(secret("user", user, env))?;
            let key = missing.take(secret("user_key", key, env))?;
            if let (Some(user), Some(key)) = (user, key) {
                all.insert(USER.to_owned(), hashed(&key, &user));
            }
        }
    }
    Ok(all)
}

/// A person has the same id on every machine that uses the same key. Without the key, nobody can check whether a
/// guessed name is right.
fn hashed(key: &str, user: &str) -> String {
    let mut digest = Sha256::new();
    // The same e-mail address may be written in upper case or with spaces around it.
    let user = user.trim().to_lowercase();
    for part in ["hookspan.user.v1", key, &user, key] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Semconv;
    use crate::config::destination::{Destination, DestinationForm};

    fn built(more: &str) -> Result<Destination, Mistake> {
        let text = format!("name = 'p'\nendpoint = 'http://h:4318'\n{more}");
        let form: DestinationForm = toml::from_str(&text).unwrap();
        let variables = [("ME", " Ada@Example.com"), ("KEY", "k1"), ("KEY2", "k2")];
        form.build(&Environment::of(&variables, "/"), Semconv::default())
    }

    #[test]
    fn a_person_is_a_hash_that_nobody_can_check_without_the_key() {
        let of = |more: &str| built(more).unwrap().attributes.remove(USER);
        let ada = of("user = 'env:ME'\nuser_key = 'env:KEY'").unwrap();
        assert!(ada.len() == 32 && ada.bytes().all(|b| b.is_ascii_hexdigit()), "{ada}");
        assert_eq!(of("user = 'env:ME'\nuser_key = 'env:KEY'"), Some(ada.clone()));
        assert_ne!(of("user = 'env:ME'\nuser_key = 'env:KEY2'"), Some(ada));
        assert_eq!(hashed("k1", "ada@example.com"), hashed("k1", " Ada@Example.com"));
        assert_eq!(of(""), None);
        let absent = built("user = 'env:ABSENT'\nuser_key = 'env:KEY'").unwrap();
        assert!(absent.unready.unwrap().contains("ABSENT") && absent.attributes.is_empty());
    }

    #[test]
    fn what_would_let_a_name_out_is_refused() {
        for (more, words) in [
            ("user = 'env:ME'", "user_key"),
            ("user_key = 'env:KEY'", "user"),
            ("user = 'ada'\nuser_key = 'env:KEY'", "env:NAME"),
            ("attributes = { 'user.email' = 'ada@example.com' }", "attributes.user.email"),
            ("attributes = { 'telemetry.sdk.name' = 'x' }", "attributes.telemetry.sdk.name"),
            ("attributes = { 'a b' = 'x' }", "attributes.a b"),
        ] {
            let error = built(more).unwrap_err().to_string();
            assert!(error.contains(words), "{more}: {error}");
        }
    }
}
