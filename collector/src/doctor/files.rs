//! Checks the hooks.json of every scope: hookspan's entries, and anything that keeps Cursor from running them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::finding::{Place, list};
use super::programs::Program;
use super::{Finding, desktop};
use crate::config::Global;
use crate::hooks_json::audit::{Audit, Kind, Ours, Remark, Shape};
use crate::hooks_json::document::Document;
use crate::hooks_json::file::{FileError, HooksFile};
use crate::hooks_json::line::Line;
use crate::hooks_json::record::{Place as Known, places};
use crate::hooks_json::{Events, Scope};
use crate::text;

/// Events without which a call or a turn has no end. Every preset has them.
const ESSENTIAL: [&str; 2] = ["postToolUse", "stop"];
/// Places named in one finding.
const PLACES_MAX: usize = 5;

/// An entry of ours, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The scope of its file, if Cursor reads that file from the working folder; `None` for a file of another
    /// repository.
    pub scope: Option<Scope>,
    pub file: PathBuf,
    /// The parts of its command. `None` if `install` would not write such a command, or if Cursor does not read the
    /// entry.
    pub form: Option<Line>,
}

/// What was found in all scopes.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub findings: Vec<Finding>,
    pub entries: Vec<Entry>,
    pub programs: Vec<Program>,
}

/// Checks every scope, and every other file that `install` has changed.
pub(super) fn examine(global: &Global) -> Files {
    let mut files = Files::default();
    for Known { scope, path, .. } in places(&global.env, global.state.root()) {
        let scope = Some(scope).filter(|scope| scope.path(&global.env).as_ref() == Some(&path));
        match HooksFile::read(&path) {
            Ok(HooksFile { text: Some(text), .. }) => files.add(global, scope, &path, &text),
            Ok(_) => {}
            Err(error) => files.findings.push(unreadable(&error)),
        }
    }
    if files.entries.is_empty() {
        files.findings.push(Finding::problem(
            "hooks.none",
            "hookspan's hooks are not installed, so nothing is recorded",
            "run `hookspan up`, which installs them and starts the collector",
        ));
    }
    files.findings.extend(twice(&files.entries));
    let named: BTreeSet<&Path> = files
        .entries
        .iter()
        .filter_map(|entry| Some(entry.form.as_ref()?.program.as_path()))
        .collect();
    files.programs = named.into_iter().map(|path| Program::look(global, path)).collect();
    files.findings.extend(files.programs.iter().map(Program::finding));
    files.findings.extend(claude(global));
    files
}

impl Files {
    fn add(&mut self, global: &Global, scope: Option<Scope>, path: &Path, text: &str) {
        let document = match Document::parse(text) {
            Ok(document) => document,
            Err(broken) => {
                // The file cannot be parsed, but it seems to be meant to run hookspan.
                if text.contains("hookspan-shim") {
                    self.entries.push(Entry { scope, file: path.to_path_buf(), form: None });
                }
                let error = FileError::Broken { path: path.to_path_buf(), broken };
                return self.findings.push(unreadable(&error));
            }
        };
        let audit = Audit::of(&document);
        let report = Report { path, audit: &audit };
        self.findings.extend(report.version());
        self.findings.extend(report.newer_version());
        self.findings.extend(report.void());
        self.findings.extend(report.void_for_cli());
        self.findings.extend(report.unknown_events());
        self.findings.extend(report.shapes());
        self.findings.extend(report.altered());
        self.findings.extend(report.events());
        self.findings.extend(report.directory(global, scope));
        let entry = |ours: &Ours| Entry {
            scope,
            file: path.to_path_buf(),
            form: match &ours.shape {
                Shape::Own(form) if !ours.grouped => Some(form.clone()),
                _ => None,
            },
        };
        let here = audit.ours.iter().filter(|ours| ours.shape != Shape::OtherSystem);
        self.entries.extend(here.map(entry));
    }
}

/// One file and what was found in it.
struct Report<'a> {
    path: &'a Path,
    audit: &'a Audit,
}

impl Report<'_> {
    fn has_ours(&self) -> bool {
        !self.audit.ours.is_empty()
    }

    /// A problem if the file has hooks of ours, otherwise a warning.
    fn as_ours(&self, id: &'static str, what: String, remedy: &str) -> Finding {
        if self.has_ours() {
            Finding::problem(id, what, remedy)
        } else {
            Finding::warning(id, what, remedy)
        }
    }

    fn version(&self) -> Option<Finding> {
        let remark = self.audit.all(Kind::Version).next().filter(|_| self.audit.entries > 0)?;
        let remedy =
            if self.has_ours() { "hookspan install" } else { "write \"version\": 1 there" };
        let what = self.say(std::slice::from_ref(remark));
        let found = self.as_ours("hooks.version", what, remedy);
        Some(found.meaning("Cursor ignores the whole file").at(self.places([remark])))
    }

    /// `install` gives the same answer.
    fn newer_version(&self) -> Option<Finding> {
        let remark = self.audit.all(Kind::NewerVersion).next()?;
        let what = self.say(std::slice::from_ref(remark));
        let remedy = "update hookspan, or change it to 1";
        Some(
            Finding::warning("hooks.newer_version", what, remedy)
                .meaning("only a Cursor that knows this version reads the file; `hookspan install` does not change it")
                .at(self.places([remark])),
        )
    }

    fn void(&self) -> Option<Finding> {
        let remarks: Vec<Remark> = self.audit.all(Kind::Void).cloned().collect();
        if remarks.is_empty() {
            return None;
        }
        let groups = self.audit.ours.iter().filter(|ours| ours.grouped).count();
        let remedy = if groups > 0 && groups == remarks.len() {
            "remove the group, then hookspan install"
        } else {
            "correct these places; hookspan does not change entries of other programs"
        };
        let found = self.as_ours("hooks.void", self.say(&remarks), remedy);
        Some(found.meaning("Cursor ignores the whole file").at(self.places(&remarks)))
    }

    fn void_for_cli(&self) -> Option<Finding> {
        let remarks: Vec<Remark> = self.audit.all(Kind::VoidForCli).cloned().collect();
        let whole = self.audit.all(Kind::Void).next().is_none();
        (!remarks.is_empty() && whole && self.audit.entries > 0).then(|| {
            let remedy =
                "move it into a script if you use `cursor-agent`; the editor reads the file";
            Finding::warning("hooks.void_for_cli", self.say(&remarks), remedy)
                .meaning("Cursor's command line ignores the whole file")
                .at(self.places(&remarks))
        })
    }

    fn unknown_events(&self) -> Option<Finding> {
        let remarks: Vec<Remark> = self.audit.all(Kind::UnknownEvent).cloned().collect();
        (!remarks.is_empty()).then(|| {
            let remedy = "remove the event if Cursor does not know it either";
            Finding::warning("hooks.unknown_event", self.say(&remarks), remedy)
                .meaning("a Cursor that does not know an event ignores the whole file")
                .at(self.places(&remarks))
        })
    }

    /// Our entries in a form that `install` does not write.
    fn shapes(&self) -> Vec<Finding> {
        let of = |wanted: fn(&Ours) -> bool, what: &str| -> Vec<Remark> {
            let remark = |ours: &Ours| Remark {
                kind: Kind::Altered,
                line: ours.line,
                column: ours.column,
                what: format!("{what}: {}", text::visible(&ours.command, 60)),
            };
            self.audit.ours.iter().filter(|ours| wanted(ours)).map(remark).collect()
        };
        let other = of(|ours| ours.shape == Shape::Other, "not in the form that hookspan writes");
        let system = of(|ours| ours.shape == Shape::OtherSystem, "for another operating system");
        let other = (!other.is_empty()).then(|| {
            Finding::warning(
                "hooks.foreign_form",
                self.say(&other),
                "remove these entries, then run hookspan install",
            )
            .meaning("doctor does not run such a command, so it is not known whether it works")
            .at(self.places(&other))
        });
        let system = (!system.is_empty()).then(|| {
            Finding::problem(
                "hooks.other_system",
                self.say(&system),
                "give each system its own hooks.json; Windows and WSL, or two computers, share this file",
            )
            .meaning("the program cannot run here; install and uninstall leave these entries to the other system")
            .at(self.places(&system))
        });
        other.into_iter().chain(system).collect()
    }

    fn altered(&self) -> Option<Finding> {
        let remarks: Vec<Remark> = self.audit.all(Kind::Altered).cloned().collect();
        (!remarks.is_empty()).then(|| {
            Finding::warning("hooks.altered", self.say(&remarks), "hookspan install")
                .meaning("hookspan may miss events of this entry")
                .at(self.places(&remarks))
        })
    }

    /// Which events are recorded, which are there twice, and which were removed.
    fn events(&self) -> Vec<Finding> {
        let shown = self.path.display();
        // What another system's program was written for does not start here.
        let runs = |ours: &&Ours| !ours.grouped && ours.shape != Shape::OtherSystem;
        let direct: Vec<&Ours> = self.audit.ours.iter().filter(runs).collect();
        if direct.is_empty() {
            return Vec::new();
        }
        let mut names = BTreeSet::new();
        let twice: Vec<&Ours> =
            direct.iter().filter(|ours| !names.insert(ours.event.as_str())).copied().collect();
        let names: Vec<&str> = names.into_iter().collect();
        let mut findings = Vec::new();
        if let Some(first) = twice.first() {
            let events: Vec<&str> = twice.iter().map(|ours| ours.event.as_str()).collect();
            let what = format!("{shown}:{}: a second entry for {}", first.line, list(&events, 4));
            findings.push(
                Finding::problem("hooks.doubled", what, "hookspan install")
                    .meaning("each of these events starts two programs"),
            );
        }
        let count = names.len();
        findings.push(match Events::of(&names) {
            Some(preset) => Finding::ok(
                "hooks.installed",
                format!("{shown}: {count} events ({})", preset.as_str()),
            ),
            None => self.incomplete(&names),
        });
        findings
    }

    /// An event that only another system's entry serves is not missing: `hooks.other_system` names that entry.
    fn incomplete(&self, names: &[&str]) -> Finding {
        let shown = self.path.display();
        let elsewhere = self.audit.ours.iter().filter(|ours| ours.shape == Shape::OtherSystem);
        let known: BTreeSet<&str> =
            names.iter().copied().chain(elsewhere.map(|ours| ours.event.as_str())).collect();
        let (preset, missing) = missing(&Vec::from_iter(known));
        let what = format!(
            "{shown}: {} events; {preset} has {} too",
            names.len(),
            list(&missing, PLACES_MAX)
        );
        let remedy = format!("hookspan install --events {preset}");
        let essential: Vec<&str> =
            ESSENTIAL.into_iter().filter(|event| missing.contains(event)).collect();
        if missing.is_empty() {
            return Finding::ok("hooks.installed", format!("{shown}: {} events", names.len()));
        }
        if essential.is_empty() {
            return Finding::warning("hooks.missing_events", what, remedy)
                .meaning("information that only these events contain is not recorded");
        }
        Finding::problem("hooks.missing_events", what, remedy).meaning(format!(
            "without {}, hookspan must infer the end of calls or turns",
            essential.join(" and ")
        ))
    }

    /// The directory that the hooks of this file write to, compared with the directory being checked.
    fn directory(&self, global: &Global, scope: Option<Scope>) -> Option<Finding> {
        let desktop = Global::new(desktop::environment(global), None, None).ok();
        let default = desktop.map(|desktop| desktop.state.root().to_path_buf());
        let ours = global.state.root();
        let forms = self.audit.ours.iter().filter_map(|ours| match &ours.shape {
            Shape::Own(form) if !ours.grouped => Some((ours, form)),
            _ => None,
        });
        let led: Vec<(&Ours, PathBuf)> = forms
            .filter_map(|(ours, form)| Some((ours, form.dir.clone().or(default.clone())?)))
            .filter(|(_, dir)| !same(dir, ours))
            .collect();
        let (first, dir) = led.first()?;
        // A machine-wide file serves every account. Without `--dir`, the hooks of each account find its own directory.
        if scope == Some(Scope::Enterprise) && default.as_ref() == Some(dir) {
            return None;
        }
        let places = led.iter().map(|(ours, dir)| Place {
            file: self.path.to_path_buf(),
            line: ours.line,
            column: ours.column,
            what: dir.display().to_string(),
        });
        let what = format!(
            "{}:{}: {} hooks write to {}, not to {}",
            self.path.display(),
            first.line,
            led.len(),
            dir.display(),
            ours.display()
        );
        let remedy = format!(
            "hookspan --dir '{}' doctor checks that directory; hookspan install makes these hooks write to this one",
            dir.display()
        );
        Some(
            Finding::problem("hooks.other_directory", what, remedy)
                .meaning("this collector does not get these hooks")
                .at(places.collect()),
        )
    }

    /// The first places in words, after the file's name.
    fn say(&self, remarks: &[Remark]) -> String {
        let place = |remark: &Remark| format!("{}:{}: {}", remark.line, remark.column, remark.what);
        let all: Vec<String> = remarks.iter().map(place).collect();
        let said = match all.as_slice() {
            [one] => one.clone(),
            all => all.iter().take(PLACES_MAX).cloned().collect::<Vec<_>>().join("; "),
        };
        let more = match all.len().saturating_sub(PLACES_MAX) {
            0 => String::new(),
            more => format!(" and {more} more places"),
        };
        format!("{}:{said}{more}", self.path.display())
    }

    fn places<'a>(&self, remarks: impl IntoIterator<Item = &'a Remark>) -> Vec<Place> {
        let place = |remark: &Remark| Place {
            file: self.path.to_path_buf(),
            line: remark.line,
            column: remark.column,
            what: remark.what.clone(),
        };
        remarks.into_iter().map(place).collect()
    }
}

/// The smallest preset that contains all of these known names, and the other names in that preset.
fn missing(names: &[&str]) -> (&'static str, Vec<&'static str>) {
    let presets = [Events::Minimal, Events::Standard, Events::All];
    let lacking = |preset: &Events| {
        let wanted = preset.names();
        let beyond = names.iter().filter(|name| Events::All.names().contains(name));
        beyond.filter(|name| !wanted.contains(name)).count()
    };
    let preset = presets.into_iter().find(|preset| lacking(preset) == 0).unwrap_or(Events::All);
    let absent = preset.names().into_iter().filter(|name| !names.contains(name));
    (preset.as_str(), absent.collect())
}

fn same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    one == other || real(one) == real(other)
}

fn unreadable(error: &FileError) -> Finding {
    match error {
        FileError::Broken { path, broken } => Finding::problem(
            "hooks.broken",
            format!("{}:{broken}", path.display()),
            "repair the file at that place",
        )
        .meaning("Cursor ignores the whole file")
        .at(vec![Place {
            file: path.clone(),
            line: broken.line,
            column: broken.column,
            what: broken.what.clone(),
        }]),
        other => {
            let said = other.to_string();
            let what = said.split("; nothing was changed").next().unwrap_or_default();
            Finding::problem("hooks.unreadable", what, "check the file and its permissions")
        }
    }
}

/// Whether several files that Cursor reads together run hookspan. Files of other repositories are not read with them.
fn twice(entries: &[Entry]) -> Option<Finding> {
    let mut files: Vec<&Path> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.scope.is_some()) {
        if !files.contains(&entry.file.as_path()) {
            files.push(&entry.file);
        }
    }
    (files.len() > 1).then(|| {
        let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        Finding::warning(
            "hooks.twice",
            format!("{} all run hookspan", names.join(" and ")),
            "keep one of them, and run hookspan uninstall --scope SCOPE for the others",
        )
        .meaning("each event starts a program for every one of them; each event is counted once")
    })
}

/// Cursor also runs the hooks in Claude's settings. Entries there would deliver every event twice.
fn claude(global: &Global) -> Option<Finding> {
    let home = global.env.home()?.join(".claude");
    let project = global.env.current_dir().join(".claude");
    let mut files = vec![home.join("settings.json"), home.join("settings.local.json")];
    files.extend([project.join("settings.json"), project.join("settings.local.json")]);
    let named = files.into_iter().find(|path| {
        HooksFile::read(path)
            .ok()
            .and_then(|file| file.text)
            .is_some_and(|text| text.contains("hookspan-shim"))
    })?;
    Some(
        Finding::warning(
            "hooks.claude",
            format!("{} runs hookspan too", named.display()),
            "remove hookspan-shim from it",
        )
        .meaning("Cursor reads that file as well, so each event starts two programs"),
    )
}
