use std::path::{Path, PathBuf};

use hookspan_core::{Hook, HookSource, Timestamp};
use hookspan_view::source::{LineFilter, Query};
use serde_json::json;

use super::*;
use crate::engine::{Batch as Hooks, Engine, Horizon, Signals};
use crate::store::prune::Selection;
use crate::store::search as files;
use crate::store::write::Preparer;
use crate::store::write::Store;

struct World {
    dir: tempfile::TempDir,
    engine: Engine,
    index: Index,
    indexer: Indexer,
}

fn engine(database: &Path) -> Engine {
    let mut store = Store::open(database).unwrap();
    store.begin("e1").unwrap();
    let config = hookspan_core::Config::default();
    Engine::new(store, config, Signals::default(), never())
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("hookspan.db");
        let path = dir.path().join("search.db");
        let engine = engine(&database);
        let indexer = Indexer {
            readers: Readers::new(&database),
            path: path.clone(),
            lag: Arc::new(AtomicU64::new(0)),
            behind: Arc::default(),
            redaction: Redaction::default(),
        };
        Self { dir, engine, index: Index::open(&path).unwrap(), indexer }
    }

    fn path(&self) -> PathBuf {
        self.indexer.path.clone()
    }

    /// Adds a turn of `root` with one command and its output, finished or not. Then indexes everything.
    fn turn(&mut self, root: &str, at: i64, command: &str, output: &str, finished: bool) {
        self.store(root, at, command, output, finished);
        self.follow();
    }

    /// [`Self::turn`], but for the index.
    fn store(&mut self, root: &str, at: i64, command: &str, output: &str, finished: bool) {
        let hook = |second: i64, name: &str, own: serde_json::Value| {
            let mut body = json!({
                "hook_event_name": name, "conversation_id": root, "generation_id": format!("{root}-{at}"),
                "workspace_roots": ["/home/dev/api"], "model": "m",
            });
            body.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
            let observed_at = Timestamp((1_780_000_000 + at + second) * 1_000_000_000);
            let mut id = [0; 16];
            id[..8].copy_from_slice(&observed_at.0.to_be_bytes());
            id[8..12].copy_from_slice(&root.as_bytes()[..4]);
            let body = body.to_string().into_bytes();
            let hook = Hook { observed_at, source: HookSource::Import, body, ..Hook::default() };
            Preparer::default().prepare(id, 0, hook)
        };
        let call =
            json!({"tool_name": "Shell", "tool_use_id": "t1", "tool_input": {"command": command}});
        let mut done = call.clone();
        done["tool_output"] = json!(output);
        done["duration"] = json!(500);
        let mut arrivals = vec![
            hook(0, "beforeSubmitPrompt", json!({"prompt": format!("please run it for {root}")})),
            hook(1, "preToolUse", call),
            hook(2, "postToolUse", done),
        ];
        if finished {
            arrivals.push(hook(3, "stop", json!({"status": "completed"})));
        }
        self.engine.take(Hooks { arrivals, ..Hooks::default() }).unwrap();
        if finished {
            let end = Timestamp((1_780_000_000 + at + 3_600) * 1_000_000_000);
            let horizon = Horizon::At(end);
            self.engine.take(Hooks { horizon, ..Hooks::default() }).unwrap();
        }
    }

    fn follow(&mut self) {
        while self.indexer.step(&mut self.index).unwrap() {}
    }

    fn find(&self, terms: &[&str]) -> Vec<(String, String)> {
        let terms = terms.iter().map(|term| (*term).to_owned()).collect();
        let query = Query { terms, filter: LineFilter::default(), field: None };
        let db = files::reader(&self.path()).unwrap().unwrap();
        let found = query::search(&db, &query, None, 50, |_| true).unwrap();
        found.hits.into_iter().map(|hit| (hit.root, hit.field)).collect()
    }

    /// The files that contain the text anywhere in their bytes.
    fn holds(&self, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(self.dir.path()).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                found.push(path.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
        found
    }
}

fn hit(root: &str, field: &str) -> (String, String) {
    (root.to_owned(), field.to_owned())
}

/// On a busy machine the index starts late. It once reported that nothing was missing, although it had not looked yet.
#[test]
fn an_index_that_has_not_begun_says_that_it_is_behind() {
    let mut world = World::new();
    world.store("root", 0, "ls", "out", true);
    let (readers, path) = (Readers::new(world.dir.path().join("hookspan.db")), world.path());
    let behind = Arc::new(AtomicBool::new(true));
    let search =
        Search::start(readers, &path, Redaction::default(), never(), Arc::clone(&behind)).unwrap();
    let handle = search.handle();
    assert!(handle.lag() > 0, "nothing is indexed");
    while handle.lag() <= 1 {
        std::thread::yield_now();
    }
    assert_eq!(world.find(&["ls"]), [], "it gives way, and has counted what waits");
    behind.store(false, Ordering::Relaxed);
    while handle.lag() > 0 {
        std::thread::yield_now();
    }
    assert!(!world.find(&["ls"]).is_empty());
}

#[test]
fn words_phrases_and_parts_of_words_are_found_newest_first() {
    let mut world = World::new();
    world.turn("aaaa", 0, "cargo test --workspace", "deliver timeout after 50 ms", true);
    world.turn("bbbb", 10_000, "cargo build", "Finished in src/main.rs", true);
    assert_eq!(world.find(&["cargo"]), [hit("bbbb", "input"), hit("aaaa", "input")]);
    assert_eq!(world.find(&["TIMEOUT", "deliver"]), [hit("aaaa", "output")]);
    assert_eq!(world.find(&["deliver timeout"]), [hit("aaaa", "output")]);
    assert_eq!(world.find(&["timeout deliver"]), []);
    assert_eq!(world.find(&["src/main.rs"]), [hit("bbbb", "output")]);
    assert_eq!(world.find(&["rkspa"]), [hit("aaaa", "input")]);
    assert_eq!(world.find(&["please", "run"]).len(), 2);
    // Two letters are searched as beginnings of words, so that a shorter query never finds less than a longer one.
    assert_eq!(world.find(&["ca"]), [hit("bbbb", "input"), hit("aaaa", "input")]);
    assert_eq!(world.find(&["ca", "please"]).len(), world.find(&["cargo", "please"]).len());
    for nothing in ["\" OR * NEAR(", "foo-bar", "ca*", "xyzzy", "%", "_a_", "'; DROP TABLE doc; --"]
    {
        assert_eq!(world.find(&[nothing]), [], "{nothing}");
    }
}

#[test]
fn a_running_turn_is_found_and_nothing_is_indexed_twice() {
    let mut world = World::new();
    world.turn("aaaa", 0, "make lighthouse", "", false);
    assert_eq!(world.find(&["lighthouse"]), [hit("aaaa", "input")]);
    let horizon = Horizon::At(Timestamp(1_790_000_000_000_000_000));
    world.engine.take(Hooks { horizon, ..Hooks::default() }).unwrap();
    world.follow();
    assert_eq!(world.find(&["lighthouse"]), [hit("aaaa", "input")]);
}

#[test]
fn secrets_are_not_in_the_index_and_a_deleted_session_is_in_no_file() {
    let mut world = World::new();
    let secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    world.turn("aaaa", 0, &format!("GITHUB_TOKEN={secret} gh pr list"), "zebrafish", true);
    world.turn("bbbb", 10_000, "echo walrus", "walrus", true);
    let index: Vec<_> =
        world.holds(secret).into_iter().filter(|name| name.starts_with("search")).collect();
    assert_eq!(index, Vec::<String>::new());
    assert_eq!(world.find(&["zebrafish"]), [hit("aaaa", "output")]);

    let patience = Duration::from_secs(5);
    let roots = ["aaaa".to_owned()];
    let deleted = world.engine.delete(&Selection::sessions(&roots), patience).unwrap();
    assert_eq!((deleted.sessions, deleted.hooks), (1, 4));
    assert!(deleted.spans >= 3, "{deleted:?}");
    world.index.delete(&roots).unwrap();
    assert_eq!(world.find(&["zebrafish"]), []);
    for text in ["zebrafish", "aaaa", secret] {
        assert_eq!(world.holds(text), Vec::<String>::new(), "{text}");
    }
    assert_eq!(world.find(&["walrus"]).len(), 2);
    assert_eq!(world.engine.delete(&Selection::sessions(&roots), patience).unwrap().spans, 0);

    // The tables must be those that a rebuild makes from the rest.
    let tables = |world: &World| {
        let db = Connection::open(world.dir.path().join("hookspan.db")).unwrap();
        let mut read = db
            .prepare(
                "SELECT day, dimension, name, count FROM histogram
                 UNION ALL SELECT hour, dimension, name, hours FROM heat
                 UNION ALL SELECT quarter, project, model, turns + active_ns + other FROM turn_time
                 UNION ALL SELECT 0, project, path, 0 FROM file",
            )
            .unwrap();
        let rows = read.query_map([], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, String>(1)?,
                row.get::<_, String>(2)?,
                row.get::<_, i64>(3)?,
            ))
        });
        rows.unwrap().collect::<rusqlite::Result<Vec<_>>>().unwrap()
    };
    let left = tables(&world);
    assert!(!left.is_empty());
    world.engine.store().start_rebuild("e2").unwrap();
    world.engine = engine(&world.dir.path().join("hookspan.db"));
    world.engine.catch_up(|_, _| {}).unwrap();
    let horizon = Horizon::At(Timestamp(1_780_013_600_000_000_000));
    world.engine.take(Hooks { horizon, ..Hooks::default() }).unwrap();
    assert_eq!(tables(&world), left);
}

#[test]
fn a_damaged_index_is_made_anew() {
    let mut world = World::new();
    world.turn("aaaa", 0, "make lighthouse", "", true);
    let path = world.path();
    drop(world.index);
    std::fs::write(&path, b"no database at all, but long enough to look at").unwrap();
    world.index = Index::open(&path).unwrap();
    world.follow();
    assert_eq!(world.find(&["lighthouse"]), [hit("aaaa", "input")]);
}

#[test]
fn what_a_power_cut_took_from_the_store_is_indexed_when_it_comes_again() {
    let mut world = World::new();
    let database = world.dir.path().join("hookspan.db");
    world.turn("aaaa", 0, "make lighthouse", "", true);
    assert!(world.engine.store().checkpoint().unwrap());
    let before = std::fs::read(&database).unwrap();
    world.turn("bbbb", 100, "make walrus", "", true);
    assert_eq!(world.find(&["walrus"]), [hit("bbbb", "input")]);

    // The commits of the second turn were lost, and their numbers are given again.
    let path = world.path();
    drop((world.engine, world.indexer));
    for suffix in ["-wal", "-shm"] {
        let _gone = std::fs::remove_file(world.dir.path().join(format!("hookspan.db{suffix}")));
    }
    std::fs::write(&database, before).unwrap();
    world.engine = engine(&database);
    let (readers, lag) = (Readers::new(&database), Arc::new(AtomicU64::new(0)));
    world.indexer =
        Indexer { readers, path, lag, behind: Arc::default(), redaction: Redaction::default() };
    world.turn("cccc", 200, "make otter", "", true);
    assert_eq!(world.find(&["otter"]), [hit("cccc", "input")]);
    assert_eq!(world.find(&["lighthouse"]), [hit("aaaa", "input")]);
}

#[test]
fn while_hooks_wait_only_few_settled_spans_are_indexed() {
    let mut world = World::new();
    for number in 0..8_i32 {
        let root = format!("aaa{number}");
        world.store(&root, i64::from(number) * 10_000, "make lighthouse", "", true);
    }
    world.store("bbbb", 80_000, "make walrus", "", false);
    let Indexer { readers, behind, .. } = &world.indexer;
    let place = |index: &Index| place(index).unwrap().settled;
    let all = readers.with(read::last_settled).unwrap();
    assert!(all > SPANS_BETWEEN as i64, "{all}");

    behind.store(true, Ordering::Relaxed);
    assert!(world.indexer.step(&mut world.index).unwrap());
    assert_eq!(place(&world.index), SPANS_BETWEEN as i64);
    while place(&world.index) < all {
        assert!(world.indexer.step(&mut world.index).unwrap());
    }
    assert!(world.indexer.step(&mut world.index).unwrap(), "a running turn waits");
    assert_eq!(world.find(&["walrus"]), []);

    behind.store(false, Ordering::Relaxed);
    world.follow();
    assert_eq!(world.find(&["walrus"]), [hit("bbbb", "input")]);
}

#[test]
fn an_index_that_cannot_be_opened_at_first_is_opened_later() {
    let world = World::new();
    // As if the process had no descriptor left: the file cannot be created, although nothing is wrong with it.
    let path = world.dir.path().join("later").join("search.db");
    let search =
        Search::start(world.indexer.readers, &path, Redaction::default(), never(), Arc::default())
            .unwrap();
    let handle = search.handle();
    let error = handle.delete(&["aaaa".to_owned()]).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("cannot be opened"), "{text}");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    let began = crate::clock::instant();
    while handle.delete(&["aaaa".to_owned()]).is_err() {
        assert!(began.elapsed() < Duration::from_secs(30), "the index is never opened");
        std::thread::yield_now();
    }
    assert!(path.exists());
}

#[test]
fn an_index_that_is_locked_is_not_made_anew() {
    let mut world = World::new();
    world.turn("aaaa", 0, "make lighthouse", "", true);
    let path = world.path();
    drop(world.index);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    Index::open(&path).unwrap_err();
    other.execute_batch("ROLLBACK").unwrap();
    drop(other);
    world.index = Index::open(&path).unwrap();
    assert_eq!(
        world.find(&["lighthouse"]),
        [hit("aaaa", "input")],
        "without reading the store again"
    );
}
