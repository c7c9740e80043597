//! `[notify]`: how a person gets notices about agents. Without one of its tables, no notices are sent.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

use super::Environment;
use super::connection::{Secret, check_endpoint, is_loopback};
use super::mistake::Mistake;
use super::reference::{Problem, header_value};

/// Maximum number of words of a command.
const WORDS_MAX: usize = 64;

/// `[notify]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Notify {
    /// `[notify.desktop]`.
    pub desktop: Option<Desktop>,
    /// `[notify.webhook]`.
    pub webhook: Option<Webhook>,
    /// `[notify.command]`.
    pub command: Option<Command>,
}

impl Notify {
    /// Whether no notices are sent.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        self.desktop.is_none() && self.webhook.is_none() && self.command.is_none()
    }
}

/// Settings of desktop notices.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Desktop {
    /// What it is sent for.
    #[serde(default = "usual", deserialize_with = "kinds")]
    pub kinds: Vec<Kind>,
    /// Whether it has text of the session.
    #[serde(default)]
    pub content: bool,
}

/// A JSON object that is posted to an address.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// The address: https, or http on this machine.
    #[serde(deserialize_with = "address")]
    pub url: String,
    /// Further headers; a secret is a reference, as in a destination.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// What it is sent for.
    #[serde(default = "usual", deserialize_with = "kinds")]
    pub kinds: Vec<Kind>,
    /// Whether it has text of the session.
    #[serde(default)]
    pub content: bool,
}

impl Webhook {
    /// The headers with their values.
    ///
    /// # Errors
    /// A value is wrong, or refers to a variable or file that is missing.
    pub(crate) fn headers(&self, env: &Environment) -> Result<Vec<(String, Secret)>, Mistake> {
        let value = |(name, text): (&String, &String)| match header_value(name, text, env) {
            Ok(value) => Ok((name.clone(), value)),
            Err(Problem::Wrong(mistake) | Problem::Missing(mistake)) => Err(mistake),
        };
        self.headers.iter().map(value).collect()
    }
}

/// A program that is started without a shell. It gets the JSON object on standard input.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The program and its arguments.
    #[serde(deserialize_with = "words")]
    pub argv: Vec<String>,
    /// What it is started for.
    #[serde(default = "usual", deserialize_with = "kinds")]
    pub kinds: Vec<Kind>,
    /// Whether the object has text of the session.
    #[serde(default)]
    pub content: bool,
}

/// What a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An approval is likely, or a question was asked.
    Waiting,
    /// A turn ended.
    Finished,
    /// A turn or session failed.
    Failed,
    /// A turn runs, and no hook arrives.
    Hanging,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Finished, Self::Failed, Self::Hanging];

    /// The word in configuration and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Hanging => "hanging",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The default: every kind in which an agent does not go on. A notice about each ended turn must be configured.
fn usual() -> Vec<Kind> {
    vec![Kind::Waiting, Kind::Failed, Kind::Hanging]
}

fn kinds<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Kind>, D::Error> {
    let mut kinds = Vec::<Kind>::deserialize(input)?;
    kinds.sort_unstable();
    kinds.dedup();
    if kinds.is_empty() {
        return Err(de::Error::custom(
            "name at least one of \"waiting\", \"finished\", \"failed\", \"hanging\", or remove the table",
        ));
    }
    Ok(kinds)
}

fn address<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    let url = String::deserialize(input)?;
    check_endpoint(&url).map_err(|why| de::Error::custom(why.at("url".to_owned())))?;
    if !url.starts_with("https://") && !is_loopback(&url) {
        return Err(de::Error::custom(
            "without TLS everybody on the network can read and change it: write https://, or an address of this machine",
        ));
    }
    Ok(url)
}

fn words<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<String>, D::Error> {
    let argv = Vec::<String>::deserialize(input)?;
    let fits = argv.first().is_some_and(|program| !program.is_empty())
        && argv.len() <= WORDS_MAX
        && argv.iter().all(|word| !word.contains('\0'));
    if !fits {
        return Err(de::Error::custom(
            "write the program and each of its arguments as a text of its own: [\"/usr/local/bin/tell\", \"--now\"]",
        ));
    }
    Ok(argv)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Notify, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_is_on_and_no_content_leaves_unless_it_is_written() {
        assert!(read("").unwrap().is_off());
        let all =
            read("[desktop]\n[webhook]\nurl = 'https://h.example/x'\n[command]\nargv = ['tell']")
                .unwrap();
        let (desktop, webhook) = (all.desktop.unwrap(), all.webhook.unwrap());
        assert!(!desktop.content && !webhook.content && !all.command.unwrap().content);
        assert_eq!(desktop.kinds, usual());
        assert!(!usual().contains(&Kind::Finished));
    }

    #[test]
    fn an_address_without_tls_is_one_of_this_machine() {
        let url = |url: &str| read(&format!("[webhook]\nurl = '{url}'"));
        for good in
            ["https://h.example/x", "http://127.0.0.1:9/x", "http://[::1]:9", "http://localhost/"]
        {
            assert!(url(good).is_ok(), "{good}");
        }
        for bad in [
            "http://h.example/x",
            "http://127.0.0.1.evil.example/",
            "http://localhost.evil.example/",
            "https://user:key@h.example/",
            "file:///etc/passwd",
            "ftp://127.0.0.1/",
            "h.example",
            "",
        ] {
            assert!(url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn mistakes_say_what_to_write() {
        for (text, said) in [
            ("[command]\nargv = []", "a text of its own"),
            ("[command]\nargv = ['']", "a text of its own"),
            ("[command]\nargv = 'tell me'", "sequence"),
            ("[desktop]\nkinds = []", "at least one"),
            ("[desktop]\nkinds = ['done']", "waiting"),
            ("[desktop]\nsound = true", "unknown field"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
