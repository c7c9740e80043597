//! The rules, as data.
//!
//! `tokens` lists values that have a recognisable form: a provider's prefix and alphabet. `keys` lists private keys,
//! and tokens inside base64. `places` lists places where a secret stands: after a name, a flag or a header, or in a
//! URL. All patterns were written for hookspan; `source` names the public description of the form.

mod keys;
mod places;
mod tokens;

use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};

pub(crate) use keys::KEYS;
pub(crate) use places::PLACES;
pub(crate) use tokens::TOKENS;

/// One kind of secret.
#[derive(Debug)]
pub struct Rule {
    /// Name in the placeholder.
    pub name: &'static str,
    /// What the rule finds.
    pub about: &'static str,
    /// The rule runs only near these words. Case does not matter.
    pub keywords: &'static [&'static str],
    /// The first group that takes part in a match contains the secret.
    pub pattern: &'static str,
    /// What a match must also fulfil.
    pub check: Check,
    /// Maximum number of bytes before a keyword at which a match may start.
    pub before: usize,
    /// Bytes after a keyword where a match usually ends. A match that reaches the limit is extended.
    pub after: usize,
    /// Public description of the form.
    pub source: &'static str,
}

/// What a match must also fulfil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The form is enough, except if all characters are equal.
    Form,
    /// Minimum entropy of the secret, in hundredths of a bit per character.
    Random(u32),
    /// The secret is a plausible value for a name such as `password`.
    Value,
    /// The secret is not a reference, placeholder, path or code. Ordinary words count as secrets.
    Password,
    /// Like `Password`, but ordinary words do not count as secrets.
    Argument,
    /// The secret's first part decodes to the header of a JSON Web Token.
    Jwt,
    /// The secret contains a long run of base64.
    Armour,
    /// The secret decodes to text that holds a token.
    Wrapped,
}

/// A rule with its expression, which is compiled when the rule first runs.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) rule: &'static Rule,
    regex: OnceLock<Option<Regex>>,
}

/// Maximum memory of the lazy automaton of one rule.
const AUTOMATON_MAX_BYTES: usize = 1 << 20;

impl Compiled {
    pub(crate) fn of(rule: &'static Rule) -> Self {
        Self { rule, regex: OnceLock::new() }
    }

    /// The expression. `None` only if the pattern does not compile; a test makes sure that all patterns do.
    pub(crate) fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| compile(self.rule.pattern)).as_ref()
    }
}

fn compile(pattern: &str) -> Option<Regex> {
    let mut builder = RegexBuilder::new(pattern);
    builder.unicode(false).dfa_size_limit(AUTOMATON_MAX_BYTES).build().ok()
}

/// Every rule, in a fixed order.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    TOKENS.iter().chain(KEYS).chain(PLACES)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_compiles_and_has_a_name_of_its_own() {
        let mut names = BTreeSet::new();
        for rule in all() {
            let regex = RegexBuilder::new(rule.pattern).unicode(false).build();
            let regex = regex.unwrap_or_else(|error| panic!("{}: {error}", rule.name));
            assert!(regex.captures_len() > 1, "{} has no group", rule.name);
            assert!(names.insert(rule.name), "{} is there twice", rule.name);
            assert!(!rule.keywords.is_empty(), "{} has no keyword", rule.name);
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(rule.name.chars().all(plain), "{}", rule.name);
        }
    }
}
