//! The scorecard: compares the result for every stream with what really happened.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use hookspan_core::Config;

use crate::rules::section;
use crate::support::{Store, fold, hooks};
use crate::truth::{Score, Truth, score};

/// The result for one stream.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) events: usize,
    pub(crate) score: Score,
    pub(crate) why: Option<String>,
}

/// Folds a stream and compares it with its truth.
pub(crate) fn line(name: &str, stream: &str, truth: &str) -> (Line, Store) {
    let hooks = hooks(stream);
    let store = fold(Config::default(), &hooks, 1_000);
    let truth = Truth::parse(truth, &hooks);
    let score = score(&truth, &store);
    (Line { name: name.to_owned(), events: hooks.len(), score, why: truth.why }, store)
}

/// The stream files of a folder, by name.
pub(crate) fn streams(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut streams: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|e| e == "jsonl")).collect();
    streams.sort();
    streams
}

/// All streams of a folder, by name.
pub(crate) fn lines(folder: &Path) -> Vec<Line> {
    let streams = streams(folder);
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    streams
        .iter()
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy();
            line(&name, &read(path), &read(&path.with_extension("truth"))).0
        })
        .collect()
}

/// The table's head.
pub(crate) const HEAD: &str = "\
| stream | hooks | spans | missing | extra | orphans | wrong parents | wrong durations | token error | times not told |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
";

/// One row of the table.
pub(crate) fn row(line: &Line) -> String {
    let score = &line.score;
    format!(
        "| {} | {} | {}/{} | {} | {} | {} | {} | {} | {} | {} |\n",
        line.name,
        line.events,
        score.spans,
        score.expected,
        score.missing.len(),
        score.extra.len(),
        score.orphans,
        score.wrong_parents.len(),
        score.wrong_durations.len(),
        score.token_error,
        score.untold,
    )
}

/// The table with its sum, and the reasons for the values that are not zero.
pub(crate) fn table(lines: &[Line]) -> String {
    let mut text = HEAD.to_owned();
    lines.iter().for_each(|line| text.push_str(&row(line)));
    let total = |get: fn(&Score) -> usize| lines.iter().map(|line| get(&line.score)).sum::<usize>();
    writeln!(
        text,
        "| **{} streams** | **{}** | **{}/{}** | **{}** | **{}** | **{}** | **{}** | **{}** | **{}** | **{}** |",
        lines.len(),
        lines.iter().map(|line| line.events).sum::<usize>(),
        total(|score| score.spans),
        total(|score| score.expected),
        total(|score| score.missing.len()),
        total(|score| score.extra.len()),
        total(|score| score.orphans),
        total(|score| score.wrong_parents.len()),
        total(|score| score.wrong_durations.len()),
        lines.iter().map(|line| line.score.token_error).sum::<u64>(),
        total(|score| score.untold),
    )
    .unwrap();
    text.push_str("\nWhat is not zero, and why:\n\n");
    for line in lines {
        if let Some(why) = &line.why {
            writeln!(text, "* `{}`: {why}.", line.name).unwrap();
        }
    }
    text
}

/// The whole of `SCORECARD.md`.
pub(crate) fn document(package: &Path) -> String {
    let mut all = lines(&package.join("../../tests/fixtures"));
    all.extend(lines(&package.join("tests/streams")));
    let outside = table(&lines(&package.join("tests/outside")));
    format!("{INTRODUCTION}\n{}{OUTSIDE}\n{outside}{}", table(&all), section(package))
}

const INTRODUCTION: &str = "\
# Scorecard

What hookspan makes of each stream of hooks in this repository, beside what really happened. The truth of a stream is
written by hand (`NAME.truth` beside `NAME.jsonl`, in `collector/core/tests/streams` and `tests/fixtures`); it says nothing
of how hookspan works, and any other tracer can be held against it.

* **spans**: found / expected. **missing**, **extra**: expected and not found, found and not expected.
* **orphans**: spans whose parent does not exist. **wrong parents**: spans below another span than the true one.
* **wrong durations**: spans that begin or end more than a millisecond away from the truth.
* **token error**: tokens too many or too few, in the rows or on the spans that carry usage, whichever is worse.
* **times not told**: starts and ends that no hook tells. They are inferred, marked as such, and counted neither right nor
  wrong.

Written by `cargo run -p hookspan-core --example scorecard`; a test keeps it current. With a recording of your own and its
truth as arguments, the command prints that row too. `ide-one-subagent` has the shape of a real recording of the IDE
(3.7.19) with one subagent. The recording it is modelled on, 125 hooks which are not ours to publish, gives 53 of 53 spans
and zero in every other column (`tests/fixtures/ide-3.7.19.truth`).
";

const OUTSIDE: &str = "
## Inputs of other people

The same for small streams modelled on what other people reported or captured (`collector/core/tests/outside`). Most of them
were wrong when they were tried first. Their truths come from hookspan's own result and were compared by eye with what the
reporter called right; they show a change and prove no result.
";
