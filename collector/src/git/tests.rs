//! Tests repositories that Git has made, and invalid or hostile ones.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crossbeam_channel::{bounded, never};
use hookspan_core::repository::RepositoryState;
use hookspan_core::{Hook, HookSource, Timestamp};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use super::*;
use crate::clock;
use crate::engine::{Engine, Horizon, Signals};
use crate::store::open::Readers;
use crate::store::read;
use crate::store::write::Store;

struct Folder {
    temp: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        Self { temp: tempfile::tempdir().unwrap() }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.temp.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes the files of a repository at branch `main` and commit `aaaa…`.
    fn repository(&self, name: &str) {
        self.write(&format!("{name}/.git/HEAD"), "ref: refs/heads/main\n");
        self.write(&format!("{name}/.git/refs/heads/main"), &format!("{}\n", id('a')));
        let config = "[core]\n\tbare = false\n[remote \"up\"]\n\turl = https://git.example/up/r\n\
                      [remote \"origin\"]\n\turl = https://me:secret@git.example/o/r.git ; mine\n";
        self.write(&format!("{name}/.git/config"), config);
    }

    fn look(&self, name: &str) -> Option<RepositoryState> {
        repository::look(&self.at(name), Some(0))
    }

    /// Runs Git. Returns false if Git is not installed.
    fn git(&self, folder: &str, arguments: &[&str]) -> bool {
        let mut command = Command::new("git");
        command.current_dir(self.at(folder)).args(arguments).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.temp.path());
        command.envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@b.example")]);
        command.envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@b.example")]);
        match command.output() {
            Ok(done) => {
                assert!(done.status.success(), "{arguments:?}: {done:?}");
                true
            }
            Err(error) => {
                eprintln!("skipped: git cannot be started: {error}");
                false
            }
        }
    }
}

fn id(digit: char) -> String {
    digit.to_string().repeat(40)
}

fn branch(state: &RepositoryState) -> Option<&str> {
    state.branch.as_deref()
}

#[test]
fn a_repository_is_found_from_a_folder_deep_inside_and_its_credentials_are_not() {
    let folder = Folder::new();
    folder.repository("shop");
    fs::create_dir_all(folder.at("shop/a/b")).unwrap();
    let state = folder.look("shop/a/b").unwrap();
    assert_eq!(branch(&state), Some("main"));
    assert_eq!(state.commit.as_deref(), Some(&*id('a')));
    assert_eq!(state.url.as_deref(), Some("https://git.example/o/r"));
    assert_eq!(folder.look("elsewhere"), None, "no folder, no repository");
}

#[test]
fn packed_refs_detached_heads_and_new_branches() {
    let folder = Folder::new();
    folder.repository("r");
    fs::remove_file(folder.at("r/.git/refs/heads/main")).unwrap();
    let packed = format!(
        "# pack-refs with: peeled\n{} refs/heads/mainly\n{} refs/heads/main\n^{}\n",
        id('b'),
        id('c'),
        id('d')
    );
    folder.write("r/.git/packed-refs", &packed);
    assert_eq!(folder.look("r").unwrap().commit.as_deref(), Some(&*id('c')));
    folder.write("r/.git/HEAD", &format!("{}\n", id('e')));
    let state = folder.look("r").unwrap();
    assert_eq!((branch(&state), state.commit.as_deref()), (None, Some(&*id('e'))));
    folder.write("r/.git/HEAD", "ref: refs/heads/new\n");
    let state = folder.look("r").unwrap();
    assert_eq!((branch(&state), state.commit.as_deref()), (Some("new"), None));
    // The refs are in a form that hookspan does not read. So there must be no branch.
    folder.write("r/.git/HEAD", "ref: refs/heads/.invalid\n");
    let state = folder.look("r").unwrap();
    assert_eq!((branch(&state), state.commit.as_deref()), (None, None));
    assert!(state.url.is_some());
}

#[test]
fn refs_that_are_stored_elsewhere_are_unknown_and_not_those_left_over() {
    let folder = Folder::new();
    for form in ["reftable", "reftable:///srv/refs", "files:///srv/refs"] {
        folder.repository("r");
        let log = format!("{} {} a <a@b.example> 100 +0000\tcommit: x\n", id('a'), id('b'));
        folder.write("r/.git/logs/HEAD", &log);
        let config = fs::read_to_string(folder.at("r/.git/config")).unwrap();
        folder.write("r/.git/config", &format!("{config}[Extensions]\n\trefStorage = {form}\n"));
        let state = folder.look("r").unwrap();
        assert_eq!((branch(&state), state.commit.as_deref()), (None, None), "{form}");
        assert_eq!(state.commits, [""; 0].map(Arc::from), "{form}");
        assert_eq!(state.url.as_deref(), Some("https://git.example/o/r"));
        folder.write("r/.git/config", &format!("{config}[extensions]\n\trefstorage = files\n"));
        assert_eq!(branch(&folder.look("r").unwrap()), Some("main"));
    }
}

#[test]
fn what_git_itself_makes_is_read_as_git_reads_it() {
    let folder = Folder::new();
    fs::create_dir_all(folder.at("r")).unwrap();
    if !folder.git("r", &["init", "-q", "-b", "main", "."]) {
        return;
    }
    let commit = |at: &str| folder.git(at, &["commit", "-q", "--allow-empty", "-m", "one"]);
    commit("r");
    commit("r");
    let state = folder.look("r").unwrap();
    assert_eq!(
        (branch(&state), state.commits.len(), state.url.is_some()),
        (Some("main"), 2, false)
    );
    assert_eq!(state.commit.as_ref(), state.commits.last());
    let none =
        repository::look(&folder.at("r"), Some(clock::now().0 / 1_000_000_000 + 60)).unwrap();
    assert!(none.commits.is_empty(), "nothing is committed from the next minute on");

    folder.git("r", &["worktree", "add", "-q", "-b", "fix/a", "../tree"]);
    commit("tree");
    let tree = folder.look("tree").unwrap();
    assert_eq!(branch(&tree), Some("fix/a"));
    assert_ne!(tree.commit, state.commit);
    folder.git("r", &["pack-refs", "--all"]);
    assert_eq!(folder.look("tree").unwrap().commit, tree.commit);
    folder.git("tree", &["checkout", "-q", "--detach"]);
    let detached = folder.look("tree").unwrap();
    assert_eq!((branch(&detached), &detached.commit), (None, &tree.commit));

    let module = ["-c", "protocol.file.allow=always", "submodule", "add", "-q", "../r", "sub"];
    fs::create_dir_all(folder.at("whole")).unwrap();
    folder.git("whole", &["init", "-q", "-b", "trunk", "."]);
    folder.git("whole", &module);
    let sub = folder.look("whole/sub").unwrap();
    assert_eq!((branch(&sub), &sub.commit), (Some("main"), &state.commit));
}

#[test]
fn a_hostile_repository_leads_nowhere_and_hangs_nothing() {
    let folder = Folder::new();
    folder.repository("private");
    let fifo = |name: &str| {
        let path = folder.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    };
    let nothing = |name: &str| assert_eq!(folder.look(name), None, "{name}");
    let link = |to: PathBuf, name: &str| {
        let path = folder.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
    };
    link(folder.at("private/.git"), "linked/.git");
    nothing("linked");
    folder.write("points/.git", "gitdir: ../private/.git\n");
    nothing("points");
    fifo("waits/.git");
    nothing("waits");
    fifo("head/.git/HEAD");
    nothing("head");
    link(folder.at("private/.git/HEAD"), "head-link/.git/HEAD");
    nothing("head-link");
    folder.write("up/.git/HEAD", "ref: refs/heads/../../../private/.git/refs/heads/main\n");
    nothing("up");
    folder.write("refs/.git/HEAD", "ref: refs/heads/main\n");
    link(folder.at("private/.git/refs"), "refs/.git/refs");
    assert_eq!(folder.look("refs").unwrap().commit, None);
    folder.write("large/.git/HEAD", &"x".repeat(1 << 20));
    nothing("large");
    folder.write("text/.git/HEAD", "ref: refs/heads/a\u{1b}[31m\n");
    nothing("text");
    folder.write("include/.git/HEAD", "\n");
    folder.write("include/.git/config", "[include]\n\tpath = /etc/passwd\n[remote \"origin\"]\n");
    nothing("include");
    assert_eq!(repository::look(Path::new("relative"), None), None);
    assert_eq!(repository::look(&folder.at("private/../private"), None), None);
}

#[test]
fn a_worktree_must_be_named_back() {
    let folder = Folder::new();
    folder.repository("r");
    let admin = "r/.git/worktrees/tree";
    folder.write(&format!("{admin}/HEAD"), "ref: refs/heads/main\n");
    folder.write(&format!("{admin}/commondir"), "../..\n");
    let own = folder.at(admin);
    folder.write("tree/.git", &format!("gitdir: {}\n", own.display()));
    folder.write(&format!("{admin}/gitdir"), &format!("{}\n", folder.at("tree/.git").display()));
    assert_eq!(branch(&folder.look("tree").unwrap()), Some("main"));
    folder.write("other/.git", &format!("gitdir: {}\n", own.display()));
    assert_eq!(folder.look("other"), None);
}

struct World {
    folder: Folder,
    engine: Engine,
    watch: Watch,
    looks: Receiver<Look>,
    preparer: Preparer,
}

impl World {
    fn new() -> Self {
        let folder = Folder::new();
        folder.repository("shop");
        let store = Store::open(&folder.at("hookspan.db")).unwrap();
        let config = hookspan_core::Config::default();
        let mut engine = Engine::new(store, config, Signals::default(), never());
        engine.restore().unwrap();
        let (look, looks) = bounded(LOOKS);
        Self { folder, engine, watch: Watch::new(look), looks, preparer: Preparer::default() }
    }

    /// A hook arrives now, and every look that it causes is made.
    fn hook(&mut self, at: Timestamp, name: &str, own: &serde_json::Value) {
        let mut body = json!({
            "hook_event_name": name, "conversation_id": "c", "generation_id": "g", "model": "m",
            "cursor_version": "3.7.19", "workspace_roots": [self.folder.at("shop")],
        });
        for (key, value) in own.as_object().unwrap() {
            body[key] = value.clone();
        }
        let body = body.to_string().into_bytes();
        let hook = Hook { observed_at: at, source: HookSource::Shim, body, ..Hook::default() };
        let digest = Sha256::digest(&hook.body);
        let arrival = self.preparer.prepare(std::array::from_fn(|at| digest[at]), 0, hook);
        let looks = self.watch.reasons(std::slice::from_ref(&arrival), clock::now());
        self.take(vec![arrival]);
        assert_eq!(self.watch.ask(looks), None);
    }

    fn take(&mut self, arrivals: Vec<Arrival>) {
        self.engine.take(Batch { arrivals, ..Batch::default() }).unwrap();
    }

    fn answer(&mut self) {
        while let Ok(look) = self.looks.try_recv() {
            let seen = answer(&look, &mut self.preparer);
            self.take(seen.into_iter().collect());
        }
    }

    fn turns(&self) -> Vec<hookspan_core::TurnSummary> {
        Readers::new(self.folder.at("hookspan.db")).with(|db| read::turns(db, "c")).unwrap()
    }
}

#[test]
fn a_turn_tells_where_it_began_and_ended_and_a_rebuild_looks_at_nothing() {
    let mut world = World::new();
    let now = clock::now();
    world.hook(now.plus(-3_000_000_000), "beforeSubmitPrompt", &json!({"prompt": "go"}));
    world.answer();
    world.folder.write("shop/.git/HEAD", "ref: refs/heads/fix/a\n");
    world.folder.write("shop/.git/refs/heads/fix/a", &id('b'));
    let seconds = now.0 / 1_000_000_000;
    let log = format!("{} {} a <a@b.example> {seconds} +0000\tcommit: x\n", id('a'), id('b'));
    world.folder.write("shop/.git/logs/HEAD", &log);
    let output = format!("{{\"output\":\"[fix/a {}] x\\n\"}}", &id('b')[..7]);
    let call = json!({"tool_name": "Shell", "tool_use_id": "s", "tool_output": output,
                      "tool_input": {"command": "git commit -m x"}, "duration": 5});
    world.hook(now.plus(-1_000_000_000), "postToolUse", &call);
    world.hook(now.plus(-500_000_000), "stop", &json!({"status": "completed"}));
    let before = world.turns().remove(0);
    world.answer();
    let turn = world.turns().remove(0);
    let seen = turn.repository.clone().unwrap();
    assert_eq!(seen.url.as_deref(), Some("https://git.example/o/r"));
    assert_eq!(
        (seen.from_branch.as_deref(), seen.from_commit),
        (Some("main"), Some(id('a').into()))
    );
    assert_eq!((seen.branch.as_deref(), seen.commit), (Some("fix/a"), Some(id('b').into())));
    assert_eq!(seen.commits, [id('b').into()]);
    // The look does not lengthen the turn. Before it, only the command's output named the commit.
    assert_eq!((before.ended_at, before.started_at), (turn.ended_at, turn.started_at));
    assert_eq!(before.repository.unwrap().commits, [id('b')[..7].into()]);

    fs::remove_dir_all(world.folder.at("shop")).unwrap();
    world.engine.store().start_rebuild("again").unwrap();
    let store = Store::open(&world.folder.at("hookspan.db")).unwrap();
    let config = hookspan_core::Config::default();
    world.engine = Engine::new(store, config, Signals::default(), never());
    world.engine.restore().unwrap();
    world.engine.catch_up(|_, _| {}).unwrap();
    let horizon = Horizon::End(clock::now());
    world.engine.take(Batch { horizon, ..Batch::default() }).unwrap();
    assert_eq!(world.turns().remove(0), turn);
}

/// A turn in three roots: one without a repository, one where a commit is made in the second of the prompt and another
/// one later, and a folder of the first root's repository.
#[test]
fn commits_in_other_roots_are_of_the_turn_and_its_branch_stays_that_of_the_first() {
    let mut world = World::new();
    world.folder.repository("lib");
    fs::create_dir_all(world.folder.at("shop/docs")).unwrap();
    fs::create_dir_all(world.folder.at("plain")).unwrap();
    let roots = ["shop", "lib", "plain", "shop/docs"].map(|name| world.folder.at(name));
    let own = |more: serde_json::Value| {
        let mut own = json!({"workspace_roots": roots});
        own.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        own
    };
    let now = clock::now();
    let seconds = now.0 / 1_000_000_000 - 3;
    let began = Timestamp(seconds * 1_000_000_000 + 500_000_000);
    let read = json!({"file_path": world.folder.at("lib/a.rs"), "tool_name": "Read",
                      "tool_input": {"file_path": world.folder.at("lib/a.rs")}, "tool_use_id": "r"});
    world.hook(began, "beforeSubmitPrompt", &own(json!({"prompt": "go"})));
    world.hook(began.plus(1_000_000), "preToolUse", &own(read));
    world.answer();
    let line = |from: char, to: char, at: i64| {
        format!("{} {} a <a@b.example> {at} +0000\tcommit: x\n", id(from), id(to))
    };
    let log = line('a', 'b', seconds) + &line('b', 'c', seconds + 1);
    world.folder.write("lib/.git/logs/HEAD", &log);
    world.folder.write("lib/.git/HEAD", "ref: refs/heads/other\n");
    world.folder.write("shop/.git/logs/HEAD", &line('a', 'd', seconds + 2));
    world.folder.write("shop/.git/refs/heads/main", &id('d'));
    world.hook(began.plus(2_000_000_000), "stop", &own(json!({"status": "completed"})));
    world.answer();
    let seen = world.turns().remove(0).repository.unwrap();
    assert_eq!(seen.commits, [id('d').into(), id('c').into()]);
    assert_eq!((seen.branch.as_deref(), seen.commit), (Some("main"), Some(id('d').into())));
    assert_eq!(seen.from_branch.as_deref(), Some("main"));
}

#[test]
fn only_fresh_hooks_of_roots_are_a_reason_and_each_turn_is_two() {
    let mut world = World::new();
    let now = clock::now();
    let count = |world: &World| world.looks.try_iter().count();
    world.hook(now.plus(-60_000_000_000), "beforeSubmitPrompt", &json!({"prompt": "old"}));
    let child = json!({"conversation_id": "child", "tool_name": "Read", "tool_use_id": "r"});
    world.hook(now, "preToolUse", &child);
    let remote = json!({"prompt": "x", "conversation_id": "far",
                        "workspace_roots": ["vscode-remote://ssh-remote+host/home/u/shop"]});
    world.hook(now, "beforeSubmitPrompt", &remote);
    assert_eq!(count(&world), 0);
    world.hook(now, "beforeSubmitPrompt", &json!({"prompt": "x"}));
    world.hook(now.plus(1), "preToolUse", &json!({"tool_name": "Read", "tool_use_id": "r"}));
    world.hook(now.plus(2), "stop", &json!({"status": "completed"}));
    world.hook(now.plus(3), "stop", &json!({"status": "completed", "loop_count": 1}));
    world.hook(now.plus(4), "afterAgentResponse", &json!({"text": "late"}));
    world.hook(now.plus(5), "sessionEnd", &json!({"reason": "completed"}));
    assert_eq!(count(&world), 2);
}

#[test]
fn what_was_seen_of_a_session_that_is_gone_brings_nothing_back() {
    let mut world = World::new();
    world.hook(clock::now(), "beforeSubmitPrompt", &json!({"prompt": "x"}));
    let look = world.looks.try_recv().unwrap();
    let what = crate::store::prune::Selection { sessions: vec!["c".into()], ..Default::default() };
    world.engine.delete(&what, std::time::Duration::from_secs(5)).unwrap();
    let seen = answer(&look, &mut world.preparer).unwrap();
    world.take(vec![seen]);
    assert!(world.turns().is_empty());
}
