//! Health, privacy, files and everything else that pages administer.

use std::path::Path;
use std::sync::PoisonError;

use hookspan_view::health::{DestinationHealth, Health};
use hookspan_view::source::{Administration, Audit, InstallStep, Privacy};
use hookspan_view::{Result, SourceError};

use super::StoreSource;
use crate::clock;
use crate::config::destination::ContentPolicy;
use crate::export::file;
use crate::export::otlp::Encoding;
use crate::search::Handle;
use crate::shim_binary;
use crate::store::{export, read, search, whole};

impl StoreSource {
    /// Version of the installed hook program, or its digest if it differs from the embedded program.
    fn shim_version(&self) -> Option<String> {
        let written = std::fs::metadata(&self.extras.shim).and_then(|file| file.modified()).ok()?;
        let mut known = self.shim.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, version)) = &*known
            && *at == written
        {
            return Some(version.clone());
        }
        let digest = shim_binary::digest_of(&std::fs::read(&self.extras.shim).ok()?);
        let same = digest == shim_binary::digest();
        let version =
            if same { shim_binary::version().to_owned() } else { format!("other {digest}") };
        *known = Some((written, version.clone()));
        Some(version)
    }

    fn destination(&self, row: export::DestinationRow) -> DestinationHealth {
        let host = self.hosts.get(&row.name).cloned().unwrap_or_default();
        row.health(host, clock::now())
    }
}

impl Administration for StoreSource {
    fn privacy(&self) -> Result<Privacy> {
        let index = self.extras.search_path.as_deref().map(search::reader).transpose();
        let index = index.map_err(|error| SourceError(error.to_string()))?.flatten();
        let redacted = index.and_then(|index| search::meta(&index, "redacted").ok().flatten());
        Ok(Privacy {
            redacted: redacted.and_then(|text| text.parse().ok()).unwrap_or(0),
            search: self.extras.search_path.is_some(),
            ..self.extras.privacy.clone()
        })
    }

    fn install(&self) -> Result<Vec<InstallStep>> {
        let mut steps = self.extras.install.as_ref().map_or_else(Vec::new, |steps| steps());
        let hooks = self.read_or(None, crate::store::cli::last_hook_ns)?;
        // Before a hook arrives, hookspan cannot know whether Cursor was restarted or reads another hooks.json.
        for step in &mut steps {
            match (hooks.is_some(), step.id) {
                (true, _) if step.state == "todo" => step.state = "ok",
                (false, "restart") => step.state = "todo",
                _ => {}
            }
        }
        steps.push(InstallStep {
            id: "first_hook",
            state: if hooks.is_some() { "ok" } else { "todo" },
            command: None,
            hint: "Ask Cursor's agent something: its first hook appears here by itself".to_owned(),
        });
        Ok(steps)
    }

    fn links(&self) -> Vec<(String, String)> {
        self.extras.links.clone()
    }

    fn file(&self, root: &str, word: &str, content: &str) -> Result<Option<Vec<u8>>> {
        let format = match word {
            "jsonl" => file::Format::Jsonl,
            "otlp-json" => file::Format::OtlpJson,
            "otlp-proto" => file::Format::OtlpProto,
            "chrome-trace" => file::Format::ChromeTrace,
            _ => file::Format::Html,
        };
        let content = match content {
            "off" => ContentPolicy::Off,
            "full" => ContentPolicy::Full,
            _ => ContentPolicy::Metadata,
        };
        let sessions = self.read_or(None, |db| read::session(db, root))?;
        let Some(session) = sessions else { return Ok(None) };
        let rows = [whole::SessionRow { root: root.to_owned(), last: session.last_at }];
        let encoding = Encoding::file(
            content,
            self.extras.resource.clone(),
            Some(self.extras.redaction.clone()),
        );
        let mut bytes = Vec::new();
        let written = self.read_or(None, |db| {
            let selection =
                file::Selection { db, sessions: &rows, all: false, encoding: &encoding };
            Ok(Some(file::write(&selection, format, &mut bytes, &mut || {})))
        })?;
        match written {
            Some(Err(error)) => Err(SourceError(error.to_string())),
            Some(Ok(())) => {
                if let Some(note) = &self.extras.note_export {
                    note(&format!("{word}, content {}, 1 session, on a page", content.as_str()));
                }
                Ok(Some(bytes))
            }
            None => Ok(None),
        }
    }

    fn audit(&self) -> Result<Audit> {
        self.extras.audit.as_ref().map_or_else(|| Ok(Audit::default()), |ask| ask())
    }

    fn redacted(&self, text: &str) -> String {
        self.extras.redaction.text(text).into_owned()
    }

    fn preview(&self, destination: &str, root: Option<&str>) -> Result<Option<Vec<u8>>> {
        let Some(ask) = &self.extras.preview else { return Ok(None) };
        self.read_or(None, |db| ask(db, destination, root))
    }

    fn exposition(&self) -> Result<String> {
        self.told.page(self)
    }

    fn health(&self) -> Result<Health> {
        let day = clock::now().0.div_euclid(86_400_000_000_000);
        let (counters, destinations, arrival) =
            self.read_or((Vec::new(), Vec::new(), None), |db| {
                let arrival = read::arrival(db, (day - 1, day))?;
                Ok((read::counters(db)?, export::destinations(db)?, arrival))
            })?;
        let unknown = |kind: &str| {
            let named = counters
                .iter()
                .filter_map(|(key, count)| Some((key.strip_prefix(kind)?.to_owned(), *count)));
            named.collect::<Vec<_>>()
        };
        let (unknown_events, unknown_fields) =
            (unknown("unknown_event."), unknown("unknown_field."));
        let unknown_values = unknown("unknown_value.");
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        let mut wal = self.database.clone().into_os_string();
        wal.push("-wal");
        Ok(Health {
            journal: (self.journal)(),
            counters,
            database_bytes: size(&self.database),
            wal_bytes: size(Path::new(&wal)),
            search_bytes: self
                .extras
                .search_path
                .as_deref()
                .map_or(0, |path| search::files(path).iter().map(|file| size(file)).sum()),
            search_lag: self.extras.search.as_ref().map_or(0, Handle::lag),
            arrival,
            unknown_events,
            unknown_fields,
            unknown_values,
            shim_version: self.shim_version(),
            destinations: destinations.into_iter().map(|row| self.destination(row)).collect(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }
}
