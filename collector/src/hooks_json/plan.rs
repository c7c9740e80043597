//! A change of one hooks.json and of the hook program. It is planned first, then shown, then made.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};
use similar::{ChangeTag, TextDiff};

use super::document::Document;
use super::edit::{self, Made};
use super::entry::{Entry, PROGRAM, words};
use super::file::{FileError, HooksFile, missing_parents};
use super::git::{Excluded, WorkTree};
use super::own_entries;
use super::own_entries::Ours;
use super::recognise::Form;
use super::record::{Installed, Record};
use super::scope::project_of;
use super::summary::Summary;
use super::{Events, Scope};
use crate::dirs::{self, Exclusive, StateDir};
use crate::shim_binary;

/// A planned change. Making a plan changes nothing.
#[derive(Debug)]
pub(crate) struct Plan {
    file: HooksFile,
    /// Text after the change; `None` if the file is removed.
    after: Option<String>,
    record: Record,
    /// The record's current entry for the file.
    installed: Option<Installed>,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Install(Box<Installed>),
    Uninstall { program: PathBuf },
}

/// How to install.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// Whose hooks.json it is.
    pub scope: Scope,
    /// That file.
    pub path: PathBuf,
    /// The preset. `None` keeps the installed one; if there is none, it means standard.
    pub events: Option<Events>,
    /// Whether commands are written without `exec`. If false, existing commands keep their form, and new ones get
    /// `exec`.
    pub no_exec: bool,
    /// Whether commands name the state directory.
    pub pin_dir: bool,
    /// Whether a project's hooks.json is kept out of git.
    pub git_exclude: bool,
}

/// Result of applying a plan.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    /// The whole plan was carried out.
    Done {
        /// The copy of hooks.json from before the installation. It exists if `uninstall` could not restore the bytes
        /// because the file was edited since.
        backup: Option<PathBuf>,
    },
    /// Nothing was done, because the file or its record has changed since the plan was made.
    Changed,
}

impl Plan {
    /// Plans an installation.
    ///
    /// # Errors
    /// hooks.json cannot be read or edited; nothing was touched.
    pub(crate) fn install(state: &StateDir, wish: &Wish) -> anyhow::Result<Self> {
        let file = read(wish.scope, &wish.path)?;
        let record = Record::load(state.root());
        let before = file.text.clone().unwrap_or_default();
        let document = Document::parse(&before).map_err(|broken| file.broken(broken))?;
        let ours: Vec<Ours> =
            own_entries::entries(&document).into_iter().filter(may_be_managed).collect();
        let names: Vec<&str> = ours.iter().map(|ours| ours.event.as_str()).collect();
        let events = wish.events.or_else(|| Events::of(&names)).unwrap_or(Events::Standard);
        let plain: Vec<_> =
            ours.iter().filter(|ours| ours.recognised.form == Form::Plain).collect();
        let is_bare =
            |ours: &&Ours| words(&ours.command).first().is_some_and(|first| first != "exec");
        let bare = !plain.is_empty() && plain.iter().all(is_bare);

        let program = program(state, wish.scope);
        let dir = wish.pin_dir.then(|| state.root());
        let with_exec = cfg!(unix) && !wish.no_exec && !bare;
        let entry = Entry::new(&program, dir, with_exec)?;
        let installed = record.of(&wish.path).filter(|_| file.text.is_some()).cloned();
        let mut next = installed.clone().unwrap_or_else(|| Installed {
            path: wish.path.clone(),
            scope: None,
            program: PathBuf::new(),
            was_absent: file.text.is_none(),
            folders: [missing_parents(state.root()), file.missing_folders()].concat(),
            backup: file.text.as_ref().map(|_| backup_path(state, &wish.path)),
            made: Made::default(),
            excluded: None,
        });
        next.scope = Some(wish.scope);
        next.program = program;
        if wish.git_exclude && next.excluded.is_none() {
            next.excluded = exclusion(&wish.path)?;
        }
        let after = edit::install(&before, &entry, &events.names(), &mut next.made)
            .map_err(|broken| file.broken(broken))?;
        Ok(Self {
            file,
            after: Some(after),
            record,
            installed,
            step: Step::Install(Box::new(next)),
        })
    }

    /// Plans the removal of an installation.
    ///
    /// # Errors
    /// hooks.json cannot be read or edited; nothing was touched.
    pub(crate) fn uninstall(state: &StateDir, scope: Scope, path: &Path) -> anyhow::Result<Self> {
        let file = read(scope, path)?;
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
    pub(crate) fn is_done(&self) -> bool {
        let same = self.file.text == self.after;
        match &self.step {
            Step::Install(next) => {
                let excluded = self.installed.as_ref().and_then(|now| now.excluded.as_ref());
                same && next.excluded.as_ref() == excluded
                    && shim_binary::is_installed_at(&next.program)
            }
            Step::Uninstall { program } => {
                same && self.installed.is_none() && (self.others_use(program) || !program.exists())
            }
        }
    }

    /// Whether the plan takes entries out.
    #[must_use]
    pub(crate) fn is_uninstall(&self) -> bool {
        matches!(self.step, Step::Uninstall { .. })
    }

    /// The change in entries, for a person.
    #[must_use]
    pub(crate) fn summary(&self) -> Summary {
        let before = self.file.text.as_deref().unwrap_or_default();
        Summary::of(before, self.after.as_deref().unwrap_or_default())
    }

    /// What will be done with hooks.json; `None` if nothing.
    #[must_use]
    pub(crate) fn file_step(&self) -> Option<&'static str> {
        match (&self.file.text, &self.after) {
            (before, after) if before == after => None,
            (None, _) => Some("create"),
            (Some(_), None) => Some("remove"),
            (Some(_), Some(_)) => Some("change"),
        }
    }

    /// The line that keeps a project's hooks.json out of git, if one will be added.
    #[must_use]
    pub(crate) fn exclusion(&self) -> Option<&Excluded> {
        let Step::Install(next) = &self.step else { return None };
        let now = self.installed.as_ref().and_then(|now| now.excluded.as_ref());
        next.excluded.as_ref().filter(|next| Some(*next) != now)
    }

    /// The hooks.json.
    #[must_use]
    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }

    /// The hook program, and whether it will be installed, replaced or removed.
    #[must_use]
    pub(crate) fn program_step(&self) -> Option<(&Path, &'static str)> {
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

    /// Number of entries that will run the hook program here afterwards.
    #[must_use]
    pub(crate) fn hooks(&self) -> usize {
        hooks(self.after.as_deref())
    }

    /// Number of entries that run the hook program here now.
    #[must_use]
    pub(crate) fn hooks_now(&self) -> usize {
        hooks(self.file.text.as_deref())
    }

    /// The change of hooks.json line by line: sign and text, with three lines of context, and `@@` between distant
    /// parts.
    #[must_use]
    pub(crate) fn diff(&self) -> Vec<(char, String)> {
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

    /// Applies the plan. Does nothing if the file has changed since the plan was made.
    ///
    /// # Errors
    /// A file cannot be written. hooks.json is then as it was.
    pub(crate) fn apply(mut self, state: &StateDir) -> anyhow::Result<Applied> {
        if matches!(self.step, Step::Install(_)) {
            if self.after != self.file.text {
                self.file.check_writable()?;
            }
            state.prepare()?;
        }
        let held = state.root().exists().then(|| Exclusive::wait(state)).transpose();
        let _held = held.with_context(|| format!("cannot lock {}", state.root().display()))?;
        self.record = Record::load(state.root());
        let is_known = match self.step {
            Step::Install(_) => {
                self.record.of(&self.file.path).filter(|_| self.file.text.is_some())
            }
            Step::Uninstall { .. } => self.record.of(&self.file.path),
        };
        if is_known != self.installed.as_ref() || self.file.check_unchanged().is_err() {
            return Ok(Applied::Changed);
        }
        match std::mem::replace(&mut self.step, Step::Uninstall { program: PathBuf::new() }) {
            Step::Install(next) => self.apply_install(state, *next),
            Step::Uninstall { program } => self.apply_uninstall(state, &program),
        }
    }

    /// Writes the program first, then the record, then the file. No hook may point to a missing program, and
    /// `uninstall` must know of every change.
    fn apply_install(mut self, state: &StateDir, next: Installed) -> anyhow::Result<Applied> {
        crate::journal::prepare(state)?;
        shim_binary::install_to(&next.program).with_context(|| {
            format!("cannot put the hook program at {}", next.program.display())
        })?;
        if let (Some(backup), Some(bytes), None) =
            (&next.backup, self.file.bytes(), &self.installed)
        {
            make_private_folder(backup)?;
            dirs::write_private(backup, &bytes)
                .with_context(|| format!("cannot write {}", backup.display()))?;
        }
        if let Some(excluded) = self.exclusion_of(&next) {
            excluded.add().with_context(|| format!("cannot write {}", excluded.path.display()))?;
        }
        let before = self.record.clone();
        self.record.put(next);
        save(&self.record, state)?;
        let write = match &self.after {
            Some(after) if self.after != self.file.text => self.file.write(after),
            _ => Ok(()),
        };
        match write {
            Ok(()) => Ok(Applied::Done { backup: None }),
            Err(error) => {
                save(&before, state)?;
                unless_changed(error)
            }
        }
    }

    fn exclusion_of<'a>(&self, next: &'a Installed) -> Option<&'a Excluded> {
        let now = self.installed.as_ref().and_then(|now| now.excluded.as_ref());
        next.excluded.as_ref().filter(|next| Some(*next) != now)
    }

    /// Changes hooks.json first, so that no hook points to a missing program.
    fn apply_uninstall(mut self, state: &StateDir, program: &Path) -> anyhow::Result<Applied> {
        if self.after != self.file.text {
            let written = match &self.after {
                Some(after) => self.file.write(after),
                None => self.file.remove(),
            };
            if let Err(error) = written {
                return unless_changed(error);
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
        if let Some(excluded) = installed.as_ref().and_then(|installed| installed.excluded.as_ref())
        {
            excluded
                .remove()
                .with_context(|| format!("cannot write {}", excluded.path.display()))?;
        }
        let backup = installed.as_ref().and_then(|installed| installed.backup.clone());
        let backup = backup.map(|backup| self.drop_backup(backup)).transpose()?.flatten();
        state
            .remove_if_unused()
            .with_context(|| format!("cannot remove {}", state.root().display()))?;
        let folders = installed.iter().flat_map(|installed| installed.folders.iter().rev());
        folders.map(PathBuf::as_path).try_for_each(remove_if_empty)?;
        Ok(Applied::Done { backup })
    }

    /// Deletes the backup once hooks.json has its original bytes again. Until then it is the only copy.
    fn drop_backup(&self, backup: PathBuf) -> anyhow::Result<Option<PathBuf>> {
        let restored = HooksFile::read(&self.file.path).ok().and_then(|file| file.bytes());
        match fs::read(&backup) {
            Ok(bytes) if restored.is_some_and(|restored| restored == bytes) => {}
            Ok(_) => return Ok(Some(backup)),
            Err(_) => return Ok(None),
        }
        remove_file(&backup)?;
        remove_if_empty(backup.parent().unwrap_or(Path::new("")))?;
        Ok(None)
    }

    /// Whether something else still uses the hook program: another file in the record, or an entry of this file that
    /// stays. Cursor does not run groups, so an entry in a group does not count.
    fn others_use(&self, program: &Path) -> bool {
        let mut others = self.record.clone();
        others.remove(&self.file.path);
        let stays = |after: &str| {
            let document = Document::parse(after);
            document.is_ok_and(|document| {
                let left = own_entries::entries(&document);
                let mut run = left.iter().filter(|ours| !ours.in_group);
                run.any(|ours| Path::new(&ours.recognised.program) == program)
            })
        };
        others.uses(program) || self.after.as_deref().is_some_and(stays)
    }
}

fn hooks(text: Option<&str>) -> usize {
    let document = Document::parse(text.unwrap_or_default());
    document.map_or(0, |document| {
        own_entries::entries(&document).iter().filter(|ours| ours.runs_here()).count()
    })
}

/// Reads a file that may be edited.
fn read(scope: Scope, path: &Path) -> anyhow::Result<HooksFile> {
    let file = HooksFile::read(path)?;
    file.check_owner()?;
    if let (Scope::Project, Some(root)) = (scope, project_of(path)) {
        file.check_within(root)?;
    }
    Ok(file)
}

/// Whether this system could run the entry if it stood where Cursor looks.
fn may_be_managed(ours: &Ours) -> bool {
    !matches!(ours.recognised.form, Form::Elsewhere(_)) && !ours.shares_group
}

/// The line that keeps a project's file out of git.
fn exclusion(path: &Path) -> anyhow::Result<Option<Excluded>> {
    let tree = project_of(path).and_then(WorkTree::at);
    let tree = tree.context("--git-exclude: there is no git work tree around this folder")?;
    tree.exclusion(path).context("--git-exclude: cannot read .git/info/exclude")
}

/// If the file was edited at the last moment, the change must be planned again. That is not a failure.
fn unless_changed(error: FileError) -> anyhow::Result<Applied> {
    match error {
        FileError::Changed { .. } => Ok(Applied::Changed),
        error => Err(error.into()),
    }
}

/// Path of the hook program. For the machine-wide hooks.json it is a common path, because other accounts cannot enter
/// this account's state directory.
#[must_use]
pub(crate) fn program(state: &StateDir, scope: Scope) -> PathBuf {
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

/// Removes an empty folder. A missing folder, or one with content, is left alone.
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
