//! The redactor of this installation, with its key and the rules of the configuration.
//!
//! Text leaves the raw log through the search index, exports (OTLP and files) and the MCP server. Each of them uses a
//! [`Redaction`].

use std::borrow::Cow;
use std::io::Read as _;
use std::sync::Arc;

use hookspan_redact::Redactor;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use serde_json::Value;

use crate::config::{Misuse, Redact};
use crate::dirs::{StateDir, open_private, write_private};

/// The redactor, shared by everything that runs.
#[derive(Clone, Debug)]
pub struct Redaction(Arc<Redactor>);

/// A redactor with a new key and without the user's rules. Equal secrets get equal placeholders only within this
/// process.
impl Default for Redaction {
    fn default() -> Self {
        Self(Arc::new(Redactor::new(random_key())))
    }
}

impl Redaction {
    /// The redactor of the installation in `dir`, with the rules of the configuration.
    ///
    /// # Errors
    /// Returns [`Misuse`] if a rule of the configuration cannot be used.
    pub fn load(dir: &StateDir, rules: &Redact) -> Result<Self, Misuse> {
        let redactor = Redactor::new(key(dir)).with(&rules.rules, &rules.allow);
        redactor.map(|redactor| Self(Arc::new(redactor))).map_err(|(index, error)| {
            Misuse(format!("[redact]: rule or exception number {}: {error}", index + 1))
        })
    }

    /// A version that stands for the rules, so that an index made with older rules is recognised.
    #[must_use]
    pub fn version(&self) -> &str {
        self.0.version()
    }

    /// `text` without secrets, and the number of secrets replaced.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> (Cow<'a, str>, usize) {
        self.0.redact(text)
    }

    /// `text` without secrets.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.0.redact(text).0
    }

    /// Redacts `text` in place.
    pub fn in_place(&self, text: &mut String) {
        self.0.redact_in_place(text);
    }

    /// Redacts every string of `value`, names of members included.
    pub fn json(&self, value: &mut Value) {
        self.0.redact_json(value);
    }

    /// Redacts the values of attributes. The names are hookspan's own.
    pub fn pairs(&self, pairs: &mut [KeyValue]) {
        for pair in pairs {
            self.value(pair.value.as_mut());
        }
    }

    fn value(&self, value: Option<&mut AnyValue>) {
        match value.and_then(|value| value.value.as_mut()) {
            Some(any_value::Value::StringValue(text)) => self.in_place(text),
            Some(any_value::Value::ArrayValue(list)) => {
                list.values.iter_mut().for_each(|item| self.value(Some(item)));
            }
            Some(any_value::Value::KvlistValue(list)) => self.pairs(&mut list.values),
            _ => {}
        }
    }
}

const KEY_BYTES: usize = 32;

/// The installation's key, created when it is first needed. If the state directory cannot be written, the key lasts
/// only as long as the process. Placeholders then differ from run to run, but hide just as much. The same is done if
/// another account could change the directory, because that account could have placed a key there that it knows.
fn key(dir: &StateDir) -> [u8; KEY_BYTES] {
    if dir.verify().is_err() {
        return random_key();
    }
    if let Some(key) = stored_key(dir) {
        return key;
    }
    let key = random_key();
    if let Err(error) = write_private(&dir.redact_key(), &key) {
        tracing::debug!(%error, "the redaction key cannot be stored");
    }
    // Another process may have written its key in the meantime.
    stored_key(dir).unwrap_or(key)
}

fn stored_key(dir: &StateDir) -> Option<[u8; KEY_BYTES]> {
    let mut key = Vec::new();
    open_private(&dir.redact_key()).ok()?.take(KEY_BYTES as u64 + 1).read_to_end(&mut key).ok()?;
    key.try_into().ok()
}

fn random_key() -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    if let Err(error) = getrandom::fill(&mut key) {
        tracing::warn!(%error, "the system gives no random bytes; digits of placeholders can be guessed");
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_made_once_and_kept_from_others() {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::at(temp.path().join("s"));
        dir.prepare().unwrap();
        let rules = Redact::default();
        let first = Redaction::load(&dir, &rules).unwrap();
        let again = Redaction::load(&dir, &rules).unwrap();
        let text = "password=hunter2hunter2";
        assert_eq!(first.text(text), again.text(text));
        assert_ne!(first.text(text), Redaction::default().text(text));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(dir.redact_key()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_key_in_a_directory_that_others_can_change_is_not_used() {
        use std::os::unix::fs::PermissionsExt as _;
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::at(temp.path().join("s"));
        dir.prepare().unwrap();
        write_private(&dir.redact_key(), &[7; KEY_BYTES]).unwrap();
        let known = Redactor::new([7; KEY_BYTES]);
        let text = "password=hunter2hunter2";
        let load = || Redaction::load(&dir, &Redact::default()).unwrap();
        assert_eq!(load().text(text), known.redact(text).0, "its own");
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(dir.root(), open).unwrap();
        assert_ne!(load().text(text), known.redact(text).0);
    }

    #[test]
    fn a_state_directory_that_is_not_there_stays_away() {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::at(temp.path().join("none"));
        assert!(Redaction::load(&dir, &Redact::default()).is_ok());
        assert!(!dir.root().exists());
    }
}
