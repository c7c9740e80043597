//! A running collector beside real repositories: branch, commit and commits of a turn, in every place that shows them.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use e2e_support::collector::{self, Collector};
use e2e_support::player;
use e2e_support::skip;
use e2e_support::spans;
use e2e_support::wait::{SOON, eventually};
use e2e_support::world::World;
use serde_json::{Value, json};

/// A world with a repository `shop` at branch `main`, and a program `git` in front of the real one that notes each
/// start.
struct Place {
    world: World,
    number: Cell<u32>,
}

impl Place {
    /// `None` where there is no Git.
    fn new() -> Option<Self> {
        let world = World::new();
        if Command::new("git").arg("--version").output().is_err() {
            skip::skip("repositories of Git", "no git");
            return None;
        }
        let programs = world.scratch("programs");
        fs::create_dir(&programs).unwrap();
        let started = world.scratch("git-was-started");
        let script = format!("#!/bin/sh\n: > '{}'\n", started.display());
        fs::write(programs.join("git"), script).unwrap();
        fs::set_permissions(programs.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        let rest = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{rest}", programs.display());
        let place = Self { world: world.with_env("PATH", path), number: Cell::new(0) };
        fs::create_dir_all(place.folder("shop")).unwrap();
        place.git("shop", &["init", "-q", "-b", "main", "."]);
        let remote = "https://me:secret@git.example/acme/shop.git";
        place.git("shop", &["remote", "add", "origin", remote]);
        place.commit("shop");
        Some(place)
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.world.home().canonicalize().unwrap().join(name)
    }

    /// Runs the real Git and gives what it prints.
    fn git(&self, folder: &str, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.current_dir(self.folder(folder)).args(arguments).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.world.scratch("nobody"));
        command.envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@b.example")]);
        command.envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@b.example")]);
        let done = command.output().unwrap();
        assert!(done.status.success(), "git {arguments:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    fn head(&self, folder: &str) -> String {
        self.git(folder, &["rev-parse", "HEAD"])
    }

    /// Makes a commit. Returns what Git prints, and the commit's name.
    fn commit(&self, folder: &str) -> (String, String) {
        let said = self.git(folder, &["commit", "--allow-empty", "-m", "work"]);
        (said, self.head(folder))
    }

    /// Runs one hook of a session in `folder`.
    fn hook(&self, folder: &str, turn: &str, event: &str, own: &Value) {
        let mut body = json!({
            "hook_event_name": event, "conversation_id": folder, "generation_id": turn,
            "model": "gpt-5.5", "cursor_version": "3.7.19",
            "workspace_roots": [self.folder(folder)],
        });
        body.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        let reply = player::hook(&self.world, event, body.to_string().as_bytes());
        assert_eq!(reply.code, Some(0), "{reply:?}");
    }

    /// Begins a turn and waits until the repository was looked at.
    fn begin(&self, folder: &str) -> String {
        self.number.set(self.number.get() + 1);
        let turn = format!("turn-{}", self.number.get());
        self.hook(folder, &turn, "beforeSubmitPrompt", &json!({"prompt": "go"}));
        self.seen(folder, &turn, |seen| !seen.is_null());
        turn
    }

    /// Stops a turn. Returns the repository's state in that turn.
    fn end(&self, folder: &str, turn: &str) -> Value {
        let commit = self.head(folder);
        self.hook(folder, turn, "stop", &json!({"status": "completed"}));
        self.seen(folder, turn, |seen| seen["commit"] == *commit)
    }

    /// Waits until the turn's repository state satisfies `enough`, and returns that state.
    fn seen(&self, folder: &str, turn: &str, enough: impl Fn(&Value) -> bool) -> Value {
        eventually(&format!("the repository of {turn}"), SOON, || {
            let shown = self.world.run(&["show", folder, "--json"]);
            let shown: Value = serde_json::from_str(&shown.stdout).unwrap_or_default();
            let turns = shown["turns"].as_array().cloned().unwrap_or_default();
            let seen = turns
                .iter()
                .find(|one| one["generation"] == turn)
                .map(|turn| turn["repository"].clone());
            let log = || format!("{shown:#}\n{}", collector::log(&self.world));
            seen.filter(|seen| enough(seen)).ok_or_else(log)
        })
    }

    fn no_git_was_started(&self) {
        assert!(!self.world.scratch("git-was-started").exists(), "the collector started git");
    }
}

/// The attribute of a turn's span in the export of a session with the default content.
fn attribute(world: &World, session: &str, turn: &str, key: &str) -> String {
    let document = world.ok(&[
        "export",
        "--session",
        session,
        "--format",
        "otlp-json",
        "--content",
        "metadata",
    ]);
    let spans = spans::from_otlp_json(&document);
    let is_it = |span: &&spans::Span| {
        span.kind() == "generation" && span.attribute("cursor.generation.id") == turn
    };
    let found = spans.iter().find(is_it);
    found.unwrap_or_else(|| panic!("no {turn} in {spans:#?}")).attribute(key).to_owned()
}

#[test]
fn a_turn_shows_its_branch_and_commits_in_every_place() {
    let Some(place) = Place::new() else { return };
    let before = place.head("shop");
    let collector = Collector::start(&place.world);
    let turn = place.begin("shop");
    place.git("shop", &["checkout", "-q", "-b", "fix/lamp"]);
    // One commit that a hook tells of, and one that only the reflog knows.
    let (said, one) = place.commit("shop");
    let call = json!({"tool_name": "Shell", "tool_use_id": "s", "duration": 5,
        "tool_input": {"command": "git commit --allow-empty -m work"},
        "tool_output": json!({"output": said, "exitCode": 0}).to_string()});
    place.hook("shop", &turn, "postToolUse", &call);
    let (_, two) = place.commit("shop");
    let seen = place.end("shop", &turn);
    let expected = json!({
        "url": "https://git.example/acme/shop", "from_branch": "main", "from_commit": before,
        "branch": "fix/lamp", "commit": two, "commits": [one, two],
    });
    assert_eq!(seen, expected);

    // The next turn begins where the last one ended, and the session goes from the first to the last.
    let next = place.begin("shop");
    let (_, three) = place.commit("shop");
    let seen = place.end("shop", &next);
    assert_eq!((&seen["from_commit"], &seen["commits"]), (&json!(two), &json!([three])));
    let whole = json!({
        "url": "https://git.example/acme/shop", "from_branch": "main", "from_commit": before,
        "branch": "fix/lamp", "commit": three, "commits": [one, two, three],
    });
    let world = &place.world;
    assert_eq!(world.json(&["sessions", "--json"])[0]["repository"], whole);
    assert_eq!(collector.get("sessions").unwrap()["items"][0]["repository"], whole);
    assert_eq!(collector.get("sessions/shop").unwrap()["repository"], whole);
    for (key, value) in [
        ("vcs.ref.base.name", "main"),
        ("vcs.ref.base.revision", &before),
        ("vcs.ref.head.name", "fix/lamp"),
        ("vcs.ref.head.revision", &two),
        ("vcs.repository.url.full", "https://git.example/acme/shop"),
        ("vcs.repository.name", "shop"),
        ("vcs.owner.name", "acme"),
        ("hookspan.vcs.commits", &format!("[{one}, {two}]")),
    ] {
        assert_eq!(attribute(world, "shop", &turn, key), value, "{key}");
    }
    drop(collector);
    // A rebuild looks at nothing: the repository may be gone.
    fs::remove_dir_all(place.folder("shop")).unwrap();
    world.ok(&["rebuild"]);
    assert_eq!(world.json(&["sessions", "--json"])[0]["repository"], whole);
    place.no_git_was_started();
}

#[test]
fn worktrees_and_detached_heads_are_told_as_they_are() {
    let Some(place) = Place::new() else { return };
    let before = place.head("shop");
    let tree = ".cursor/worktrees/shop/kite";
    let path = place.folder(tree);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    place.git("shop", &["worktree", "add", "-q", "-b", "kite", path.to_str().unwrap()]);
    let _collector = Collector::start(&place.world);

    let turn = place.begin(tree);
    let (_, one) = place.commit(tree);
    // A commit of the main checkout meanwhile is no commit of this worktree.
    place.commit("shop");
    let seen = place.end(tree, &turn);
    assert_eq!(seen["branch"], "kite");
    assert_eq!((&seen["from_commit"], &seen["commits"]), (&json!(before), &json!([one])));

    place.git("shop", &["checkout", "-q", "--detach"]);
    let turn = place.begin("shop");
    let (_, two) = place.commit("shop");
    let seen = place.end("shop", &turn);
    assert_eq!((&seen["from_branch"], &seen["branch"]), (&Value::Null, &Value::Null));
    assert_eq!((&seen["commit"], &seen["commits"]), (&json!(two), &json!([two])));
    assert_eq!(attribute(&place.world, "shop", &turn, "vcs.ref.head.name"), "");
    assert_eq!(attribute(&place.world, "shop", &turn, "vcs.ref.head.revision"), two);

    // Branches move and nothing is made: no commits.
    let turn = place.begin("shop");
    place.git("shop", &["checkout", "-q", "main"]);
    place.git("shop", &["reset", "-q", "--hard", &before]);
    place.git("shop", &["merge", "-q", "kite"]);
    let seen = place.end("shop", &turn);
    assert_eq!((&seen["branch"], &seen["commit"]), (&json!("main"), &json!(one)));
    assert_eq!(seen["commits"], json!([]));
    place.no_git_was_started();
}

#[test]
fn a_repository_is_left_alone_where_the_configuration_says_so() {
    let Some(place) = Place::new() else { return };
    place.world.write_config("[evidence]\nrepository = false\n");
    let collector = Collector::start(&place.world);
    place.hook("shop", "turn-1", "beforeSubmitPrompt", &json!({"prompt": "go"}));
    let (said, commit) = place.commit("shop");
    let call = json!({"tool_name": "Shell", "tool_use_id": "s", "duration": 5,
        "tool_input": {"command": "git commit --allow-empty -m work"},
        "tool_output": json!({"output": said, "exitCode": 0}).to_string()});
    place.hook("shop", "turn-1", "postToolUse", &call);
    place.hook("shop", "turn-1", "stop", &json!({"status": "completed"}));
    collector.committed(3);
    let seen = place.seen("shop", "turn-1", |seen| !seen.is_null());
    // The commit in the command's output comes from a hook and not from the repository, so it is still shown.
    let only = json!({"url": null, "from_branch": null, "from_commit": null, "branch": null,
        "commit": null, "commits": [commit[..7]]});
    assert_eq!(seen, only);
    let log = place.world.ok(&["export", "--all", "--format", "jsonl", "--content", "full"]);
    assert!(!log.contains("hookspan.repository"), "{log}");
    place.no_git_was_started();
}
