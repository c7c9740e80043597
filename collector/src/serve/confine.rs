//! Determines which rights the collector needs once it listens. It gives up all others.

use std::path::{Path, PathBuf};

use crate::config::destination::Destination;
use crate::config::{Config, Environment};
use crate::dirs::StateDir;
use crate::sandbox::{self, Held, Needs};

/// Where SQLite stores temporary data that does not fit into memory, in addition to `TMPDIR`.
const TEMPORARY: [&str; 3] = ["/var/tmp", "/usr/tmp", "/tmp"];
/// Port of DNS. Resolvers also use TCP.
const DNS: u16 = 53;

/// Gives up the right to new privileges. Must be called before the first thread starts, because this applies per
/// thread.
pub(super) fn give_up_privileges() {
    let _held = sandbox::enter(None);
}

/// Enters the sandbox, if the configuration wants it.
pub(super) fn confine(
    dir: &StateDir,
    config: &Config,
    env: &Environment,
    destinations: &[Destination],
) -> Held {
    let held =
        sandbox::enter(config.sandbox.then(|| needs(dir, config, env, destinations)).as_ref());
    tracing::debug!(sandbox = held.words(), "serve.confined");
    held
}

fn needs(
    dir: &StateDir,
    config: &Config,
    env: &Environment,
    destinations: &[Destination],
) -> Needs {
    let temporary = env.path("TMPDIR").into_iter().chain(TEMPORARY.map(PathBuf::from));
    let writable = std::iter::once(dir.root().to_owned()).chain(temporary).collect();
    let receiving = config.receive.sockets().filter(|_| config.receive.enabled);
    let sockets = config.dashboard.sockets().chain(receiving);
    let sockets = sockets.filter_map(Path::parent).map(Path::to_owned);
    Needs { writable, sockets: sockets.collect(), ports: ports(env, destinations) }
}

/// The ports of the destinations. `None` (any port) if a proxy is used, or if a destination waits for a variable or a
/// file that may still name another port.
fn ports(env: &Environment, destinations: &[Destination]) -> Option<Vec<u16>> {
    const PROXIES: [&str; 6] =
        ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    let by_proxy = PROXIES.iter().any(|name| env.var(name).is_some());
    if by_proxy || destinations.iter().any(|one| one.unready.is_some()) {
        return None;
    }
    let mut ports = Vec::new();
    for one in destinations {
        let metrics = one.metrics.iter().map(|metrics| &metrics.connection);
        for connection in std::iter::once(&one.connection).chain(metrics) {
            let url = reqwest::Url::parse(&connection.endpoint).ok()?;
            let port = url.port_or_known_default()?;
            if !ports.contains(&port) {
                ports.push(port);
            }
        }
    }
    if !ports.is_empty() {
        ports.push(DNS);
    }
    Some(ports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Semconv;
    use crate::config::destination::DestinationForm;

    fn destination(text: &str) -> Destination {
        let form: DestinationForm = toml::from_str(&format!("name = 'a'\n{text}")).unwrap();
        form.build(&Environment::of(&[], "/"), Semconv::default()).unwrap()
    }

    #[test]
    fn ports_are_those_of_the_destinations() {
        let env = Environment::of(&[], "/");
        assert_eq!(ports(&env, &[]), Some(Vec::new()), "nothing to send, nothing to connect to");
        let two = [
            destination("endpoint = 'http://127.0.0.1:4318'"),
            destination("endpoint = 'https://otlp.example/x'"),
        ];
        assert_eq!(ports(&env, &two), Some(vec![4318, 443, DNS]));
        let metrics = destination(
            "endpoint = 'http://h:4318'\nmetrics = true\nmetrics_endpoint = 'http://m:9090/api/v1/otlp/v1/metrics'",
        );
        assert_eq!(ports(&env, &[metrics]), Some(vec![4318, 9090, DNS]));
        let proxy = Environment::of(&[("https_proxy", "http://p:3128")], "/");
        assert_eq!(ports(&proxy, &two), None);
        let waits = destination("endpoint = 'http://h:1'\nheaders = { x-key = 'env:NOT_SET' }");
        assert_eq!(ports(&env, &[waits]), None);
    }
}
