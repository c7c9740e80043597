//! Adds a destination to the configuration file: finds what is missing, and writes the destination. The file's existing
//! text, including comments, stays unchanged.

use std::path::Path;

use super::destination::{self, Backfill, ContentPolicy, DestinationForm, Unfilled};
use super::mistake::Mistake;
use super::preset::Preset;
use super::{Config, Environment, Misuse};

/// A value that a preset cannot know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Where the receiver is.
    Endpoint,
    /// A placeholder of the endpoint.
    Value(String),
    /// A header for which the vendor defines no environment variable.
    Header(&'static str),
}

impl DestinationForm {
    /// The first value that is missing. Values from environment variables are not checked here.
    ///
    /// # Errors
    /// The protocol is unknown.
    pub(crate) fn need(&self, env: &Environment) -> Result<Option<Need>, Mistake> {
        let Some(template) = self.endpoint_template()? else { return Ok(Some(Need::Endpoint)) };
        let values = self.preset.values(env, &self.values);
        if let Err(Unfilled(key)) = destination::fill(template, &values) {
            return Ok(Some(Need::Value(key)));
        }
        let is_missing = |name: &&&str| {
            self.preset == Preset::GrafanaCloud
                && !self.headers.keys().any(|have| have.eq_ignore_ascii_case(name))
        };
        Ok(self.preset.required_headers().iter().find(is_missing).map(|name| Need::Header(name)))
    }

    /// The table as a person would write it.
    #[must_use]
    pub(crate) fn written(&self) -> String {
        let mut lines = vec!["[[destination]]".to_owned()];
        let mut line = |key: &str, value: Option<&str>| {
            if let Some(value) = value {
                lines.push(format!("{key} = {}", quoted(value)));
            }
        };
        line("name", Some(&self.name));
        line("preset", (self.preset != Preset::Otlp).then(|| self.preset.as_str()));
        line("endpoint", self.endpoint.as_deref());
        line("protocol", self.protocol.as_deref());
        line("semconv", self.semconv.as_deref());
        line("content", self.content.map(ContentPolicy::as_str));
        line("backfill", self.backfill.map(Backfill::as_str));
        line("certificate", self.certificate.as_deref());
        for (key, value) in [("metrics", self.metrics), ("logs", self.logs)] {
            lines.extend(value.map(|value| format!("{key} = {value}")));
        }
        for (key, table) in [("headers", &self.headers), ("values", &self.values)] {
            let pairs =
                table.iter().map(|(name, value)| format!("{} = {}", bare(name), quoted(value)));
            let pairs: Vec<String> = pairs.collect();
            if !pairs.is_empty() {
                lines.push(format!("{key} = {{ {} }}", pairs.join(", ")));
            }
        }
        lines.join("\n") + "\n"
    }

    /// Adds this destination to the file at `path`. Returns the new text of the file, and the destination as it is read
    /// back from that text.
    ///
    /// # Errors
    ///
    /// The existing text or the destination is not valid. The message names line and column.
    pub(crate) fn appended(
        &self,
        path: &Path,
        text: &str,
        env: &Environment,
    ) -> Result<(String, destination::Destination), Misuse> {
        let before = Config::of_text(path, text, env)?;
        destination::all(&before, env).map_err(|error| Misuse(error.to_string()))?;
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let mut all = text.to_owned();
        if !all.is_empty() && !all.ends_with('\n') {
            all.push_str(line_end);
        }
        if !all.is_empty() {
            all.push_str(line_end);
        }
        all.push_str(&self.written().replace('\n', line_end));
        let after = Config::of_text(path, &all, env)?;
        let found = destination::all(&after, env).map_err(|error| Misuse(error.to_string()))?;
        let added = found.into_iter().find(|one| one.name == self.name);
        // This cannot happen: the destination that was written is read back.
        let added = added.ok_or_else(|| Misuse(format!("{}: is not read back", self.name)))?;
        Ok((all, added))
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn bare(key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !key.is_empty() && key.chars().all(plain) { key.to_owned() } else { quoted(key) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::destination::Destination;

    fn form(preset: Preset) -> DestinationForm {
        DestinationForm { name: "d".to_owned(), preset, ..DestinationForm::default() }
    }

    #[test]
    fn what_a_preset_cannot_know_is_asked_for_one_by_one() {
        let env = Environment::of(&[], "/");
        assert_eq!(form(Preset::Otlp).need(&env), Ok(Some(Need::Endpoint)));
        assert_eq!(form(Preset::Jaeger).need(&env), Ok(None));
        assert_eq!(
            form(Preset::Honeycomb).need(&env),
            Ok(None),
            "its variable may be set elsewhere"
        );
        let mut grafana = form(Preset::GrafanaCloud);
        assert_eq!(grafana.need(&env), Ok(Some(Need::Value("zone".to_owned()))));
        grafana.values.insert("zone".to_owned(), "prod-eu-west-2".to_owned());
        assert_eq!(grafana.need(&env), Ok(Some(Need::Header("authorization"))));
        grafana.headers.insert("Authorization".to_owned(), "Basic env:TOKEN".to_owned());
        assert_eq!(grafana.need(&env), Ok(None));
    }

    #[test]
    fn the_text_of_the_file_stays_and_what_is_added_is_read_back() {
        let env = Environment::of(&[("TOKEN", "t")], "/");
        let mut added = form(Preset::GrafanaCloud);
        added.values.insert("zone".to_owned(), "prod-eu-west-2".to_owned());
        added.headers.insert("authorization".to_owned(), "Basic env:TOKEN".to_owned());
        added.content = Some(ContentPolicy::Full);
        added.backfill = Some(Backfill::Day);
        let path = Path::new("config.toml");
        for text in [
            "",
            "# mine\n[trace]\nmode = \"session\" # why",
            "# mine\r\n[[destination]]\r\nname = \"a\"\r\nendpoint = \"http://h\"\r\n",
        ] {
            let (all, destination) = added.appended(path, text, &env).unwrap();
            assert!(all.starts_with(text), "{all}");
            assert_eq!(all.contains('\r'), text.contains('\r'));
            assert_eq!(
                all.matches('\r').count(),
                if text.contains('\r') { all.matches('\n').count() } else { 0 }
            );
            let Destination { connection, content, unready, .. } = destination;
            assert_eq!(
                connection.endpoint,
                "https://otlp-gateway-prod-eu-west-2.grafana.net/otlp/v1/traces"
            );
            assert_eq!((content, unready), (ContentPolicy::Full, None));
        }
        let taken =
            added.appended(path, "[[destination]]\nname = 'd'\nendpoint = 'http://h'\n", &env);
        assert!(taken.unwrap_err().to_string().contains("is the name of another destination"));
        assert!(added.appended(path, "[trace", &env).is_err());
    }

    #[test]
    fn any_text_is_written_so_that_it_is_read_back() {
        let env = Environment::of(&[], "/");
        let mut odd = form(Preset::Otlp);
        odd.endpoint = Some("http://h:1/a?b=\"c\"\\".to_owned());
        odd.certificate = Some("/a b/'c\"\\.pem".to_owned());
        odd.values.insert("a.b".to_owned(), "\t".to_owned());
        let table: toml::Table = odd.written().parse().unwrap();
        let table = &table["destination"][0];
        assert_eq!(table["endpoint"].as_str(), odd.endpoint.as_deref());
        assert_eq!(table["certificate"].as_str(), odd.certificate.as_deref());
        assert_eq!(table["values"]["a.b"].as_str(), Some("\t"));
        assert!(odd.need(&env).unwrap().is_none());
    }
}
