//! Log records: a destination with `logs = true` also gets prompts and answers as events.
//!
//! They are sent to a separate destination, `NAME:logs`. It has its own position in the queue, its own stored requests
//! and its own state, so a receiver that accepts no logs does not delay spans. All other settings are those of `NAME`.

use super::Environment;
use super::destination::{Destination, DestinationForm, Signal, other_endpoint};
use super::mistake::{Mistake, Why};

/// Added to a destination's name for its log records. Configured names contain no colon, so the result is unique.
const SUFFIX: &str = ":logs";

impl DestinationForm {
    /// The destination of the log records; `None` if none are sent.
    ///
    /// # Errors
    /// `logs_endpoint` without `logs = true`, a preset that takes no logs, or an endpoint that cannot be used.
    pub(super) fn logs(
        &self,
        spans: &Destination,
        env: &Environment,
    ) -> Result<Option<Destination>, Mistake> {
        if self.logs != Some(true) {
            let is_forgotten = self.logs.is_none() && self.logs_endpoint.is_some();
            return if is_forgotten { Err(Why::NoLogs.at("logs_endpoint")) } else { Ok(None) };
        }
        if !self.preset.takes_logs() {
            return Err(Why::NoLogsThere(self.preset.as_str()).at("logs"));
        }
        let given = ("logs_endpoint", self.logs_endpoint.as_deref());
        let values = self.preset.values(env, &self.values);
        let endpoint = other_endpoint(Signal::Logs, given, &spans.connection, &values)?;
        let mut logs = Destination {
            name: format!("{}{SUFFIX}", spans.name),
            signal: Signal::Logs,
            metrics: None,
            link: None,
            ..spans.clone()
        };
        logs.connection.endpoint = endpoint;
        Ok(Some(logs))
    }
}

impl Destination {
    /// The name of this destination in the configuration file.
    #[must_use]
    pub(crate) fn written_name(&self) -> &str {
        self.name.strip_suffix(SUFFIX).unwrap_or(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, destination};

    fn all(text: &str) -> anyhow::Result<Vec<Destination>> {
        let env = Environment::of(&[], "/");
        let config = Config::of_text(std::path::Path::new("config.toml"), text, &env)?;
        Ok(destination::all(&config, &env)?)
    }

    #[test]
    fn logs_go_beside_the_spans_with_the_same_policy() {
        let text = "[[destination]]\nname = 'a'\nendpoint = 'http://127.0.0.1:4318'\nlogs = true\n\
                    content = 'full'\nsample = 0.5\nmetrics = true\n";
        let found = all(text).unwrap();
        let [spans, logs] = &*found else { panic!("{found:?}") };
        assert_eq!((spans.name.as_str(), logs.name.as_str()), ("a", "a:logs"));
        assert_eq!(logs.written_name(), "a");
        assert_eq!(logs.connection.endpoint, "http://127.0.0.1:4318/v1/logs");
        assert_eq!((logs.content, logs.sample), (spans.content, spans.sample));
        assert!(logs.metrics.is_none() && spans.metrics.is_some());
        assert!(logs.gets().ends_with("as log records"), "{}", logs.gets());
    }

    #[test]
    fn without_being_asked_no_logs_leave() {
        let text = "[[destination]]\nname = 'a'\nendpoint = 'http://127.0.0.1:4318'\n";
        assert_eq!(all(text).unwrap().len(), 1);
        assert_eq!(
            all(&format!("{text}logs = false\nlogs_endpoint = 'http://h'\n")).unwrap().len(),
            1
        );
    }

    #[test]
    fn what_cannot_work_is_told() {
        let with = |more: &str| {
            let text = format!("[[destination]]\nname = 'a'\n{more}");
            all(&text).unwrap_err().to_string()
        };
        let error = with("preset = 'jaeger'\nlogs = true\n");
        assert!(error.contains("logs: jaeger takes no logs"), "{error}");
        let error = with("endpoint = 'http://h:4318'\nlogs_endpoint = 'http://h:1'\n");
        assert!(error.contains("without logs = true"), "{error}");
        let error = with("endpoint = 'http://h/own/path'\nlogs = true\n");
        assert!(error.contains("logs_endpoint"), "{error}");
    }

    #[test]
    fn over_grpc_one_address_takes_both() {
        let text = "[[destination]]\nname = 'a'\nprotocol = 'grpc'\nendpoint = 'http://127.0.0.1:4317'\nlogs = true\n";
        let found = all(text).unwrap();
        assert_eq!(found[1].connection.endpoint, "http://127.0.0.1:4317");
    }
}
