//! Rules and exceptions written by the user.

use regex::bytes::{Regex, RegexBuilder};

/// A rule as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserRule {
    /// Name in the placeholder.
    pub name: String,
    /// A regular expression. The first group that takes part in a match is the secret. Without a group, the whole match
    /// is the secret.
    pub pattern: String,
}

impl UserRule {
    /// Checks name and pattern.
    ///
    /// # Errors
    /// Returns why the rule cannot be used.
    pub fn check(&self) -> Result<(), UserRuleError> {
        rule(self).map(|_| ())
    }
}

/// Checks an expression for texts that are not secrets.
///
/// # Errors
/// Returns why the expression cannot be used.
pub fn check_exception(pattern: &str) -> Result<(), UserRuleError> {
    exception(pattern).map(|_| ())
}

/// Why a rule cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum UserRuleError {
    /// The name does not fit into a placeholder.
    #[error("the name {0:?} is not valid; use 1 to 40 lower-case letters, digits and dashes")]
    Name(String),
    /// The expression is invalid or too large.
    #[error("the pattern cannot be used: {0}")]
    Pattern(String),
    /// The expression would replace nothing, or everything.
    #[error(
        "the pattern matches an empty text, so that the rule would match everywhere; let the pattern match at least one character"
    )]
    Empty,
}

/// Memory of one expression.
const SIZE_MAX_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) name: String,
    pub(crate) regex: Regex,
}

/// Compiles a rule.
pub(crate) fn rule(rule: &UserRule) -> Result<Compiled, UserRuleError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !(1..=40).contains(&rule.name.len()) || !rule.name.chars().all(plain) {
        return Err(UserRuleError::Name(rule.name.clone()));
    }
    Ok(Compiled { name: rule.name.clone(), regex: expression(&rule.pattern)? })
}

/// Compiles an exception. An exception must match the whole text of a secret.
pub(crate) fn exception(pattern: &str) -> Result<Regex, UserRuleError> {
    expression(pattern)?;
    expression(&format!("^(?:{pattern})$"))
}

fn expression(pattern: &str) -> Result<Regex, UserRuleError> {
    let built = RegexBuilder::new(pattern)
        .size_limit(SIZE_MAX_BYTES)
        .dfa_size_limit(SIZE_MAX_BYTES)
        .build();
    // The last line of a regex error names the problem. The lines before it draw the place.
    let words = |error: regex::Error| {
        let text = error.to_string();
        text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    };
    let regex = built.map_err(|error| UserRuleError::Pattern(words(error)))?;
    if regex.is_match(b"") {
        return Err(UserRuleError::Empty);
    }
    Ok(regex)
}
