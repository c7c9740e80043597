//! A change to one hooks.json and the hook program: thought out first, shown, then done.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};
use similar::{ChangeTag, TextDiff};

use super::document::Document;
use super::edit::{self, Made};
use super::entry::{Entry, PROGRAM, words};
use super::file::{HooksFile, missing_parents};
use super::record::{Installed, Record};
use super::{Events, Scope};
use crate::dirs::{self, StateDir};
use crate::shim_binary;

/// What will be done. Making one changes nothing.
#[derive(Debug)]
pub struct Plan {
    file: HooksFile,
    /// Text after the change; `None`: the file goes.
    after: Option<String>,
    record: Record,
    /// What the record says of the file now.
    installed: Option<Installed>,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Install(Installed),
    Uninstall { program: PathBuf },
}

/// How to install.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Whose hooks.json it is.
    pub scope: Scope,
    /// That file.
    pub path: PathBuf,
    /// The preset; `None` keeps the one that is installed, else standard.
    pub events: Option<Events>,
    /// Whether commands go without `exec`; otherwise as they are, else with it.
    pub no_exec: bool,
    /// Whether a hook finds the state directory by itself.
    pub dir_is_default: bool,
}

impl Plan {
    /// Plans an installation.
    ///
    /// # Errors
    /// hooks.json cannot be read or edited; nothing was touched.
    pub fn install(state: &StateDir, wish: &Wish) -> anyhow::Result<Self> {
        let file = HooksFile::read(&wish.path)?;
        let record = Record::load(state.root());
        let before = file.text.clone().unwrap_or_default();
        let found = Document::parse(&before).map_err(|broken| file.broken(broken))?.found();
        let ours: Vec<_> = found.iter().filter(|found| found.is_ours()).collect();
        let names: Vec<&str> = ours.iter().map(|found| found.event.as_str()).collect();
        let events = wish.events.or_else(|| Events::of(&names)).unwrap_or(Events::Standard);
        let is_bare = |command: &Option<String>| {
            command
                .as_deref()
                .is_some_and(|command| words(command).first().is_some_and(|w| w != "exec"))
        };
        let bare = !ours.is_empty() && ours.iter().all(|found| is_bare(&found.command));

        let program = program(state, wish.scope);
        let dir = (!wish.dir_is_default).then(|| state.root());
        let with_exec = cfg!(unix) && !wish.no_exec && !bare;
        let entry = Entry::new(&program, dir, with_exec).map_err(anyhow::Error::msg)?;
        let installed = record.of(&wish.path).filter(|_| file.text.is_some()).cloned();
        let mut next = installed.clone().unwrap_or_else(|| Installed {
            path: wish.path.clone(),
            program: PathBuf::new(),
            was_absent: file.text.is_none(),
            folders: [missing_parents(state.root()), file.missing_folders()].concat(),
            backup: file.text.as_ref().map(|_| backup_path(state, &wish.path)),
            made: Made::default(),
        });
        next.program = program;
        let after = edit::install(&before, &entry, &events.names(), &mut next.made)
            .map_err(|broken| file.broken(broken))?;
        Ok(Self { file, after: Some(after), record, installed, step: Step::Install(next) })
    }

    /// Plans the inverse.
    ///
    /// # Errors
    /// hooks.json cannot be read or edited; nothing was touched.
    pub fn uninstall(state: &StateDir, scope: Scope, path: &Path) -> anyhow::Result<Self> {
        let file = HooksFile::read(path)?;
        let record = Record::load(state.root());
        let installed = record.of(path).cloned();
        let was_absent = installed.as_ref().is_some_and(|installed| installed.was_absent);
        let made = installed.as_ref().map(|installed| &installed.made);
        let after = match &file.text {
            None => None,
            Some(text) => {
                let after = edit::uninstall(text, made, was_absent)
                    .map_err(|broken| file.broken(broken))?;
                (!was_absent || !after.trim().is_empty()).then_some(after)
            }
        };
        let program = match &installed {
            Some(installed) => installed.program.clone(),
            None => program(state, scope),
        };
        Ok(Self { file, after, record, installed, step: Step::Uninstall { program } })
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let same = self.file.text == self.after;
        match &self.step {
            Step::Install(next) => same && shim_binary::is_installed_at(&next.program),
            Step::Uninstall { program } => {
                same && self.installed.is_none() && (self.others_use(program) || !program.exists())
            }
        }
    }

    /// The hooks.json.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// The hook program, and whether it will be put there, replaced or removed.
    #[must_use]
    pub fn program_step(&self) -> Option<(&Path, &'static str)> {
        match &self.step {
            Step::Install(next) if shim_binary::is_installed_at(&next.program) => None,
            Step::Install(next) if next.program.exists() => Some((&next.program, "replace")),
            Step::Install(next) => Some((&next.program, "add")),
            Step::Uninstall { program } if !self.others_use(program) && program.exists() => {
                Some((program, "remove"))
            }
            Step::Uninstall { .. } => None,
        }
    }

    /// How many hooks are ours afterwards.
    #[must_use]
    pub fn hooks(&self) -> usize {
        let after = self.after.as_deref().unwrap_or_default();
        Document::parse(after)
            .map_or(0, |document| document.found().iter().filter(|found| found.is_ours()).count())
    }

    /// The change to hooks.json line by line: sign and text, with three lines of context and `@@` between.
    #[must_use]
    pub fn diff(&self) -> Vec<(char, String)> {
        let before = self.file.text.as_deref().unwrap_or_default();
        let after = self.after.as_deref().unwrap_or_default();
        let diff = TextDiff::from_lines(before, after);
        let mut lines = Vec::new();
        for group in diff.grouped_ops(3) {
            if !lines.is_empty() {
                lines.push(('@', String::new()));
            }
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                let sign = match change.tag() {
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                    ChangeTag::Equal => ' ',
                };
                lines.push((sign, change.value().trim_end_matches(['\r', '\n']).to_owned()));
            }
        }
        lines
    }

    /// Does it.
    ///
    /// # Errors
    /// A file cannot be written. hooks.json is then as it was.
    pub fn apply(mut self, state: &StateDir) -> anyhow::Result<()> {
        match std::mem::replace(&mut self.step, Step::Uninstall { program: PathBuf::new() }) {
            Step::Install(next) => self.apply_install(state, next),
            Step::Uninstall { program } => self.apply_uninstall(state, &program),
        }
    }

    /// The program comes first and the record before the file, so that no hook points at nothing and no change of ours is
    /// one that `uninstall` does not know of.
    fn apply_install(mut self, state: &StateDir, next: Installed) -> anyhow::Result<()> {
        crate::journal::prepare(state)?;
        shim_binary::install_to(&next.program).with_context(|| {
            format!("cannot put the hook program at {}", next.program.display())
        })?;
        if let (Some(backup), Some(_)) = (&next.backup, &self.file.text)
            && self.installed.is_none()
        {
            let bytes = fs::read(&self.file.target)
                .with_context(|| format!("cannot read {}", self.file.target.display()))?;
            make_private_folder(backup)?;
            dirs::write_private(backup, &bytes)
                .with_context(|| format!("cannot write {}", backup.display()))?;
        }
        let before = self.record.clone();
        self.record.put(next);
        save(&self.record, state)?;
        if let (Some(after), true) = (&self.after, self.after != self.file.text)
            && let Err(error) = self.file.write(after)
        {
            save(&before, state)?;
            return Err(error.into());
        }
        Ok(())
    }

    /// hooks.json comes first, so that no hook is left that points at nothing.
    fn apply_uninstall(mut self, state: &StateDir, program: &Path) -> anyhow::Result<()> {
        if self.after != self.file.text {
            match &self.after {
                Some(after) => self.file.write(after)?,
                None => self.file.remove()?,
            }
        }
        let installed = self.installed.take();
        if !self.others_use(program) {
            remove_file(program)?;
            remove_if_empty(program.parent().unwrap_or(Path::new("")))?;
        }
        self.record.remove(&self.file.path);
        if state.root().exists() {
            save(&self.record, state)?;
        }
        if let Some(backup) = installed.as_ref().and_then(|installed| installed.backup.as_ref()) {
            remove_file(backup)?;
            remove_if_empty(backup.parent().unwrap_or(Path::new("")))?;
        }
        state
            .remove_if_unused()
            .with_context(|| format!("cannot remove {}", state.root().display()))?;
        let folders = installed.iter().flat_map(|installed| installed.folders.iter().rev());
        folders.map(PathBuf::as_path).try_for_each(remove_if_empty)
    }

    fn others_use(&self, program: &Path) -> bool {
        let mut others = self.record.clone();
        others.remove(&self.file.path);
        others.uses(program)
    }
}

/// Where the hook program lies. The machine's hooks.json is for accounts that may not enter anybody's state directory.
#[must_use]
pub fn program(state: &StateDir, scope: Scope) -> PathBuf {
    match scope {
        Scope::User | Scope::Project => state.bin().join(PROGRAM),
        Scope::Enterprise if cfg!(windows) => Path::new(r"C:\ProgramData\hookspan").join(PROGRAM),
        Scope::Enterprise => Path::new("/usr/local/lib/hookspan").join(PROGRAM),
    }
}

fn backup_path(state: &StateDir, path: &Path) -> PathBuf {
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    let name: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    state.root().join("hooks-before").join(format!("{name}.json"))
}

fn make_private_folder(file: &Path) -> anyhow::Result<()> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(error).with_context(|| format!("cannot make {}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn save(record: &Record, state: &StateDir) -> anyhow::Result<()> {
    record
        .save(state.root())
        .with_context(|| format!("cannot write what was installed into {}", state.root().display()))
}

fn remove_file(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Removes a folder when nothing is in it. One that is gone, or that holds something, is fine.
pub(crate) fn remove_if_empty(folder: &Path) -> anyhow::Result<()> {
    let fine = |error: &io::Error| {
        matches!(
            error.kind(),
            ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty | ErrorKind::NotADirectory
        )
    };
    match fs::remove_dir(folder) {
        Err(error) if !fine(&error) => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}
