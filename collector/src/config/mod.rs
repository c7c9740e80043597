//! Makes one [`Config`] from flags, file and environment. Only this room reads the environment.

pub(crate) mod addition;
pub(crate) mod example;
mod environment;
mod file;
mod global;
pub(crate) mod listen;
mod logs;
pub(crate) mod paths;
pub(crate) mod person;
mod place;
pub(crate) mod policy;
mod print;
mod connection;
pub(crate) mod mistake;
pub(crate) mod notify;
pub(crate) mod destination;
mod reference;
pub(crate) mod removal;
pub(crate) mod otlp_env;
pub(crate) mod preset;
pub(crate) mod receive;
pub(crate) mod zone;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub use environment::Environment;
pub(crate) use file::position;
pub(crate) use global::Global;
pub use listen::Dashboard;
pub(crate) use receive::Receive;

use hookspan_core::price::Prices;

use crate::prices;
use hookspan_redact::UserRule;

use file::File;

/// A failure caused by what the user typed or wrote: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Misuse(pub String);

/// The settings. Values in the configuration file replace the defaults, environment variables replace values in the
/// file, and flags of a command replace both.
#[derive(Clone, Debug)]
pub struct Config {
    /// Reconstruction: `[trace]`.
    pub core: hookspan_core::Config,
    /// `[dashboard]`.
    pub dashboard: Dashboard,
    /// `[receive]`.
    pub(crate) receive: Receive,
    /// `[journal]`.
    pub journal: Journal,
    /// `[retention]`.
    pub retention: Retention,
    /// `[semconv]`.
    pub semconv: Semconv,
    /// `[redact]`.
    pub redact: Redact,
    /// `[evidence]`.
    pub evidence: Evidence,
    /// `[sandbox]`: whether the running collector gives up rights that it does not need.
    pub sandbox: bool,
    /// `[notify]`: what tells a person about agents; off.
    pub notify: notify::Notify,
    /// `[prices]`: without any price, no cost is estimated.
    pub prices: Prices,
    /// The price lists for models that have no price in the configuration file itself.
    pub price_lists: PriceLists,
    /// `[[destination]]`, as written.
    pub destinations: Vec<toml::Table>,
    /// Line and column of each destination in the file.
    pub places: Vec<place::Place>,
    /// The policy of this machine, if it has one.
    pub policy: Option<policy::Policy>,
    /// Every `OTEL_*` and `OPENINFERENCE_*` variable, for destinations and for hookspan's own telemetry.
    pub otel: BTreeMap<String, String>,
}

/// `[journal]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Journal {
    /// Maximum size of the journal in bytes.
    pub max_bytes: u64,
    /// Size in bytes at which the journal file is closed and a new one is started. Closed segments can be deleted.
    pub segment_bytes: u64,
}

/// `[retention]`: what is deleted automatically; see [`crate::store::prune`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Maximum age. Older sessions (by their last event) and older hooks without a session are deleted. 0 keeps
    /// everything.
    pub max_age_ns: i64,
    /// Maximum size of the database. While it is larger, hooks without a session are deleted first, then the oldest
    /// sessions. 0 sets no limit.
    pub max_bytes: u64,
}

/// `[redact]`: the user's rules for secrets, and exceptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redact {
    /// `[[redact.rule]]`.
    pub rules: Vec<UserRule>,
    /// Regular expressions for texts that look like secrets and are not redacted.
    pub allow: Vec<String>,
}

/// `[evidence]`: which sources may be read in addition to hooks. They tell the parents of subagents and the state of
/// repositories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Whether Cursor's own database may be read.
    pub cursor_store: bool,
    /// Path of that database. Empty: the usual path on this system.
    pub cursor_store_path: PathBuf,
    /// Whether the workspace's repository may be read.
    pub repository: bool,
    /// The usual path on this system, if the environment tells it.
    pub usual: Option<PathBuf>,
}

impl Evidence {
    /// The file to read. It need not exist. `None` if it may not be read.
    #[must_use]
    pub fn file(&self) -> Option<PathBuf> {
        if !self.cursor_store {
            return None;
        }
        if self.cursor_store_path.as_os_str().is_empty() {
            return self.usual.clone();
        }
        Some(self.cursor_store_path.clone())
    }
}

impl Default for Evidence {
    fn default() -> Self {
        Self {
            cursor_store: true,
            cursor_store_path: PathBuf::new(),
            repository: true,
            usual: None,
        }
    }
}

/// `prices.file` and `prices.public`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriceLists {
    /// A price list in the usual JSON form. The path is relative to the folder of the configuration file.
    pub file: Option<PathBuf>,
    /// Whether the public list prices in this release are used for models that `file` does not contain.
    pub public: bool,
}

/// `[semconv]`: names of attributes in exported spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Semconv {
    /// Version of the generative-AI conventions.
    pub profile: Profile,
    /// How many attributes with OpenInference's names are added.
    pub openinference: OpenInference,
}

/// `semconv.profile`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Semantic conventions 1.41.
    #[default]
    Genai141,
    /// The separate generative-AI conventions 0.1.
    Genai01,
    /// Follows the schema files of the semantic conventions 1.41 exactly: names, span kinds and messages.
    Genai141Strict,
}

impl Profile {
    /// The word in configuration, and in `hookspan.semconv` of exported scopes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Genai141 => "genai-1.41",
            Self::Genai01 => "genai-0.1",
            Self::Genai141Strict => "genai-1.41-strict",
        }
    }
}

/// `semconv.openinference`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenInference {
    /// The span kind only.
    #[default]
    Kind,
    /// Every attribute that has an equivalent in OpenInference.
    Full,
    /// None.
    Off,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            core: hookspan_core::Config::default(),
            dashboard: Dashboard::default(),
            receive: Receive::default(),
            journal: Journal { max_bytes: 1 << 30, segment_bytes: 64 << 20 },
            retention: Retention::default(),
            notify: notify::Notify::default(),
            semconv: Semconv::default(),
            redact: Redact::default(),
            evidence: Evidence::default(),
            sandbox: true,
            prices: Prices::default(),
            price_lists: PriceLists::default(),
            destinations: Vec::new(),
            places: Vec::new(),
            policy: None,
            otel: BTreeMap::new(),
        }
    }
}

impl Config {
    /// Loads `file`, and replaces settings by those of the environment. A missing file is an error only if it is
    /// `required`.
    ///
    /// # Errors The file cannot be read or is not valid. The message names file, line and column.
    pub fn load(file: Option<&Path>, required: bool, env: &Environment) -> anyhow::Result<Self> {
        if let Some(path) = file {
            match std::fs::read_to_string(path) {
                Ok(text) => return Ok(Self::of_text(path, &text, env)?),
                Err(error) if error.kind() == ErrorKind::NotFound && !required => {}
                Err(error) => return Err(Misuse(format!("{}: {error}", path.display())).into()),
            }
        }
        Ok(Self::default().over(env))
    }

    /// Reads `text` as the file at `path`, and replaces settings by those of the environment.
    ///
    /// # Errors The text is not valid. The message names file, line and column.
    pub fn of_text(path: &Path, text: &str, env: &Environment) -> Result<Self, Misuse> {
        let mut config = Self::default();
        File::parse(path, text)?.apply(&mut config);
        config.read_price_lists(path.parent().unwrap_or(Path::new("")))?;
        Ok(config.over(env))
    }

    fn read_price_lists(&mut self, folder: &Path) -> Result<(), Misuse> {
        let PriceLists { file, public } = &self.price_lists;
        if file.is_none() && !public {
            return Ok(());
        }
        let mut own = std::mem::take(&mut self.prices);
        if own.is_empty() {
            own = Prices::new("USD".to_owned(), []);
        }
        if own.currency != "USD" {
            let text =
                format!("prices: lists are in USD, and your own prices are in {}", own.currency);
            return Err(Misuse(text));
        }
        if let Some(file) = file {
            let path = folder.join(file);
            own = prices::with_file(own, &path)
                .map_err(|why| Misuse(format!("prices.file: {} {why}", path.display())))?;
        }
        self.prices = if *public { prices::with_public(own) } else { own };
        Ok(())
    }

    fn over(mut self, env: &Environment) -> Self {
        self.evidence.usual = paths::cursor_store(env);
        self.otel = env.with_prefix("OTEL_");
        self.otel.extend(env.with_prefix("OPENINFERENCE_"));
        self
    }
}

/// Whether `text` is `NAME:PORT`.
#[must_use]
pub(crate) fn is_host_and_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        let name =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
        !host.is_empty() && host.chars().all(name) && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_error(text: &str, expected: &str) {
        let error = File::parse(Path::new("config.toml"), text).unwrap_err();
        assert_eq!(error.0, expected);
    }

    #[test]
    fn prices_are_of_one_currency_and_not_below_zero() {
        let text =
            "[prices.\"gpt-*\"]\ninput = 1\n[prices.\"a\"]\noutput = 2.5\ncurrency = \"EUR\"\n";
        let mut config = Config::default();
        File::parse(Path::new("config.toml"), text).unwrap().apply(&mut config);
        assert_eq!(config.prices.currency, "EUR");
        assert_eq!(config.prices.rows().map(|(name, _)| name).collect::<Vec<_>>(), ["gpt-*", "a"]);
        for wrong in [
            "[prices.a]\ninput = -1\n",
            "[prices.a]\ninput = nan\n",
            "[prices.a]\ncurrency = \"EUR\"\n[prices.b]\ncurrency = \"USD\"\n",
            "[prices]\na = 1\n",
            "[prices]\nfile = 1\n",
            "[prices]\npublic = \"yes\"\n",
        ] {
            assert!(File::parse(Path::new("config.toml"), wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_list_of_prices_is_read_from_the_folder_of_the_file_and_lies_below_ones_own() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            Config::of_text(&folder.path().join("config.toml"), text, &Environment::default())
        };
        let list =
            r#"{"gpt-5.5": {"input": 7, "output": 70}, "house-1": {"input": 2, "output": 20}}"#;
        std::fs::write(folder.path().join("list.json"), list).unwrap();
        let lists = "[prices]\nfile = \"list.json\"\npublic = true\n";
        let prices = read(&format!("{lists}[prices.\"house-*\"]\ninput = 1\n")).unwrap().prices;
        let input = |label: &str| prices.price(label).and_then(|price| price.input);
        assert_eq!([input("house-1"), input("gpt-5.5-high")], [Some(1.0), Some(7.0)]);
        assert_eq!([input("composer-2"), input("unheard-of")], [Some(0.5), None]);
        assert!(read("").unwrap().prices.is_empty(), "nothing is priced unless it is asked for");
        for (text, why) in [
            ("[prices]\nfile = \"none.json\"\n", "none.json does not exist"),
            ("[prices]\nfile = \"config.toml\"\n", "config.toml is not JSON"),
            ("[prices]\npublic = true\n[prices.a]\ncurrency = \"EUR\"\n", "are in EUR"),
        ] {
            std::fs::write(folder.path().join("config.toml"), text).unwrap();
            let Misuse(said) = read(text).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn an_unknown_key_is_named_with_its_place_and_the_nearest_known_one() {
        check_error(
            "[dashboard]\nlistn = \"127.0.0.1:1\"\n",
            "config.toml:2:1: unknown key `listn`, expected one of `listen`, `token`, `allow_hosts`, `allow_uids`, `insecure`; \
             did you mean `listen`?",
        );
        check_error(
            "\n  [jurnal]\n",
            "config.toml:2:4: unknown key `jurnal`, expected one of `dashboard`, `receive`, `trace`, `semconv`, \
             `redact`, `evidence`, `sandbox`, `journal`, `retention`, `notify`, `prices`, `destination`; did you mean `journal`?",
        );
        check_error(
            "[semconv]\nprofile = \"genai-1.4\"\n",
            "config.toml:2:11: unknown variant `genai-1.4`, expected one of `genai-1.41`, `genai-0.1`, `genai-1.41-strict`; \
             did you mean `genai-1.41`?",
        );
        check_error(
            "[journal]\nzzz = 1\n",
            "config.toml:2:1: unknown key `zzz`, expected `max_bytes` or `segment_bytes`",
        );
    }

    #[test]
    fn a_wrong_value_is_named_with_its_place() {
        check_error(
            "[trace]\nsettle_delay = \"soon\"\n",
            "config.toml:2:16: `soon` is not a duration (expected number at 0); \
             write it like \"500ms\", \"2s\", \"30m\" or \"1h 30m\"",
        );
        check_error(
            "[trace]\nsession_idle = \"0s\"\n",
            "config.toml:2:16: this duration must be longer than zero",
        );
        check_error(
            "[dashboard]\nallow_hosts = [\"a:1\", \"b\"]\n",
            "config.toml:2:15: `b` is not NAME:PORT, like \"build.lan:4329\"",
        );
        check_error(
            "[journal]\nmax_bytes = 5\n",
            "config.toml:2:13: the journal needs at least 16777216 bytes, not 5",
        );
        check_error("[dashboard\n", "config.toml:1:11: unclosed table, expected `]`");
    }

    #[test]
    fn a_rule_of_redaction_is_named_with_its_place() {
        check_error(
            "[[redact.rule]]\nname = \"ticket\"\npattern = \"(ACME\"\n",
            "config.toml:3:11: the pattern cannot be used: unclosed group",
        );
        check_error(
            "[[redact.rule]]\nname = \"My Rule\"\npattern = \"x\"\n",
            "config.toml:2:8: the name \"My Rule\" is not valid; use 1 to 40 lower-case letters, digits and dashes",
        );
        check_error(
            "[redact]\nallow = [\"a*\"]\n",
            "config.toml:2:9: `a*`: the pattern matches an empty text, so that the rule would match everywhere; \
             let the pattern match at least one character",
        );
        let mut config = Config::default();
        let text = "[redact]\nallow = [\"a\"]\n[[redact.rule]]\nname = \"b\"\npattern = \"c\"\n";
        File::parse(Path::new("config.toml"), text).unwrap().apply(&mut config);
        assert_eq!((config.redact.rules.len(), config.redact.allow.len()), (1, 1));
    }

    #[test]
    fn a_key_of_a_destination_is_checked_like_any_other() {
        let error = File::parse(
            Path::new("config.toml"),
            "[[destination]]\nname = \"a\"\nendpont = \"http://x\"\n",
        )
        .unwrap_err();
        let (start, end) = ("config.toml:3:1: unknown key `endpont`", "did you mean `endpoint`?");
        assert!(error.0.starts_with(start) && error.0.ends_with(end), "{error}");
    }

    #[test]
    fn the_file_beats_the_default_and_the_environment_is_handed_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, "[trace]\nmode = \"session\"\nflush_after = \"0s\"\n").unwrap();
        let env =
            Environment::of(&[("OTEL_SERVICE_NAME", "x"), ("OTEL_EMPTY", ""), ("A", "b")], "/");
        let config = Config::load(Some(&path), true, &env).unwrap();
        assert_eq!(config.core.trace_mode, hookspan_core::sessions::TraceMode::Session);
        assert_eq!(config.core.flush_after_ns, 0);
        assert_eq!(config.core.settle_delay_ns, 2_000_000_000);
        assert_eq!(
            config.otel.into_iter().collect::<Vec<_>>(),
            [("OTEL_SERVICE_NAME".into(), "x".into())]
        );
    }

    #[test]
    fn a_missing_file_is_an_error_only_when_it_was_named() {
        let path = Path::new("/nonexistent/config.toml");
        let env = Environment::default();
        assert!(Config::load(Some(path), false, &env).is_ok());
        let error = Config::load(Some(path), true, &env).unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent/config.toml: "), "{error}");
    }
}
