//! hooks.json in every scope, and the programs its entries name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Finding;
use crate::config::Global;
use crate::hooks_json::document::{Document, Found};
use crate::hooks_json::file::{FileError, HooksFile};
use crate::hooks_json::{Events, Scope, entry, events};
use crate::shim_binary;
use crate::text;

const AREA: &str = "hooks";

/// One of our entries, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Ours {
    pub scope: Scope,
    pub file: PathBuf,
    pub event: String,
    pub command: String,
}

/// Looks at every scope. Returns our entries too.
pub(super) fn examine(global: &Global) -> (Vec<Finding>, Vec<Ours>) {
    let mut findings = Vec::new();
    let mut ours = Vec::new();
    for scope in Scope::ALL {
        let Some(path) = scope.path(&global.env) else { continue };
        // In the home folder itself, the project's file is the user's.
        if scope == Scope::Project && Scope::User.path(&global.env).as_ref() == Some(&path) {
            continue;
        }
        match HooksFile::read(&path) {
            Ok(HooksFile { text: Some(text), .. }) => {
                examine_file(scope, &path, &text, &mut findings, &mut ours);
            }
            Ok(_) => {}
            Err(error) => findings.push(unreadable(&error)),
        }
    }
    let scopes: BTreeSet<&str> = ours.iter().map(|ours| ours.scope.as_str()).collect();
    if ours.is_empty() {
        findings.push(Finding::problem(
            AREA,
            "no hooks of hookspan are installed: Cursor tells it nothing",
            "hookspan install",
        ));
    }
    if scopes.len() > 1 {
        let list = scopes.into_iter().collect::<Vec<_>>().join(" and ");
        findings.push(Finding::warning(
            AREA,
            format!("installed in the scopes {list}: every event starts two hooks"),
            "hookspan uninstall --scope project (or the other one)",
        ));
    }
    programs(&ours, &mut findings);
    findings.extend(claude(global));
    (findings, ours)
}

fn unreadable(error: &FileError) -> Finding {
    let remedy = match error {
        FileError::Broken { .. } => {
            "repair the file at that place; until then Cursor runs no hook of it"
        }
        _ => "look at the file and its permissions",
    };
    Finding::problem(AREA, error.to_string(), remedy)
}

fn examine_file(
    scope: Scope,
    path: &Path,
    text: &str,
    findings: &mut Vec<Finding>,
    ours: &mut Vec<Ours>,
) {
    let shown = path.display();
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(broken) => {
            let error = FileError::Broken { path: path.to_path_buf(), broken };
            return findings.push(unreadable(&error));
        }
    };
    let found = document.found();
    let mine: Vec<&Found> = found.iter().filter(|found| found.is_ours()).collect();
    let version = document.root.as_ref().and_then(|root| root.get_number("version"));
    if version.map(|version| version.value) != Some("1") && !found.is_empty() {
        let fix = if mine.is_empty() { "add \"version\": 1 to it" } else { "hookspan install" };
        findings.push(Finding::problem(
            AREA,
            format!("{shown}: there is no \"version\": 1, so Cursor ignores the file"),
            fix,
        ));
    }
    for unknown in found.iter().filter(|found| !events::KNOWN.contains(&found.event.as_str())) {
        findings.push(Finding::warning(
            AREA,
            format!("{shown}:{}: no event `{}` is known", unknown.line, text::visible(&unknown.event, 40)),
            "remove it if Cursor's command line runs no hook: one unknown name voids the whole file there",
        ));
    }
    let mut seen = BTreeSet::new();
    for found in &mine {
        if !seen.insert(found.event.as_str()) {
            findings.push(Finding::problem(
                AREA,
                format!("{shown}:{}: a second entry for {}", found.line, found.event),
                "hookspan install",
            ));
        }
    }
    if !mine.is_empty() {
        let names: Vec<&str> = seen.into_iter().collect();
        let preset = Events::of(&names).map_or("own choice", Events::as_str);
        findings.push(Finding::ok(AREA, format!("{shown}: {} events ({preset})", names.len())));
    }
    ours.extend(mine.into_iter().filter_map(|found| {
        Some(Ours {
            scope,
            file: path.to_path_buf(),
            event: found.event.clone(),
            command: found.command.clone()?,
        })
    }));
}

/// Whether each program is there, is ours and is the one that belongs to this version.
fn programs(ours: &[Ours], findings: &mut Vec<Finding>) {
    let named: BTreeSet<PathBuf> =
        ours.iter().filter_map(|ours| entry::program(&ours.command)).map(PathBuf::from).collect();
    for program in named {
        let shown = program.display();
        if shim_binary::is_installed_at(&program) {
            let kind = shim_binary::kind().as_str();
            findings
                .push(Finding::ok(AREA, format!("{shown}: {kind}, {}", shim_binary::version())));
        } else if program.exists() {
            findings.push(Finding::problem(
                AREA,
                format!("{shown}: is another version's, damaged or not executable"),
                "hookspan install",
            ));
        } else {
            findings.push(Finding::problem(
                AREA,
                format!("{shown}: is not there, so every hook fails"),
                "hookspan install",
            ));
        }
    }
}

/// Cursor runs Claude's hooks too, which would deliver every event twice.
fn claude(global: &Global) -> Option<Finding> {
    let path = global.env.home()?.join(".claude/settings.json");
    let text = HooksFile::read(&path).ok()?.text?;
    text.contains("hookspan-shim").then(|| {
        Finding::warning(
            AREA,
            format!("{}: runs hookspan too, and Cursor reads that file as well", path.display()),
            "remove hookspan-shim from it",
        )
    })
}
