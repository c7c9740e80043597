//! Imports a staged file: divides its lines into batches, and decides how far time may pass after each batch.

use std::io::{self, BufRead as _, BufReader, Read as _};

use hookspan_core::{Hook, HookSource, Timestamp};

use super::line::{self, Ids, Line};
use super::stage::Staged;
use super::times::Time;
use crate::disk;
use crate::engine::{Batch, Horizon, ImportStep};
use crate::store::write::Preparer;

/// Lines of a batch.
const ROWS: usize = 1_000;
/// Maximum size of a batch in bytes. Only a single longer line may exceed it.
const BYTES: usize = 8 << 20;
/// Maximum length of a line. The rest of a longer line is dropped, and the hook is marked as cut.
const LONGEST: u64 = 64 << 20;
/// Value in `raw_hook.flags`: the body was longer than the maximum.
const CUT: u8 = 4;

/// How an import is divided into batches, found in a first pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// For each batch: its number of lines, and the earliest time in all the batches after it.
    blocks: Vec<(usize, i64)>,
    /// Lines in all.
    pub lines: u64,
}

impl Plan {
    /// Reads `staged` once.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn of(staged: &Staged) -> io::Result<Self> {
        let mut lines = Lines::open(staged)?;
        let mut plan = Self::default();
        let (mut rows, mut bytes, mut earliest) = (0, 0, i64::MAX);
        while let Some((line, _)) = lines.next()? {
            rows += 1;
            bytes += line.body.len();
            earliest = earliest.min(moment(&line).unwrap_or(staged.at).0);
            plan.lines += 1;
            if rows == ROWS || bytes >= BYTES {
                plan.blocks.push((rows, earliest));
                (rows, bytes, earliest) = (0, 0, i64::MAX);
            }
        }
        plan.blocks.push((rows, earliest));
        let mut later = i64::MAX;
        for (_, time) in plan.blocks.iter_mut().rev() {
            (*time, later) = (later, later.min(*time));
        }
        Ok(plan)
    }
}

/// Reads `staged` as divided by `plan`, and passes its batches to `sink`; the last batch is marked. The first `skip`
/// lines were imported before an interruption and are skipped.
///
/// # Errors
///
/// The file cannot be read, or `sink` returns an error.
pub(crate) fn take_in<E: From<io::Error>>(
    staged: &Staged,
    plan: &Plan,
    skip: u64,
    mut sink: impl FnMut(Batch) -> Result<(), E>,
) -> Result<(), E> {
    let mut lines = Lines::open(staged)?;
    let (mut ids, mut preparer, mut number) = (Ids::default(), Preparer::default(), 0);
    let last = plan.blocks.len().saturating_sub(1);
    for (index, (rows, later)) in plan.blocks.iter().enumerate() {
        for _ in 0..*rows {
            let Some((line, cut)) = lines.next()? else { break };
            let id = ids.id(&line);
            number += 1;
            if number > skip {
                add(&mut preparer, staged.at, number, line, id, cut);
            }
        }
        let arrivals = preparer.finish();
        let done = index == last;
        if arrivals.is_empty() && !done {
            continue;
        }
        let horizon = if done { Horizon::Still } else { Horizon::At(Timestamp(*later)) };
        let import = Some(ImportStep { run: staged.run.clone(), lines: number, done, error: None });
        sink(Batch { arrivals, import, horizon, ..Batch::default() })?;
    }
    Ok(())
}

fn add(preparer: &mut Preparer, at: Timestamp, number: u64, line: Line, id: [u8; 16], cut: bool) {
    // Lines without a time are placed one microsecond apart, so that they keep their order.
    let import_time = at.plus(i64::try_from(number).unwrap_or(0).saturating_mul(1_000));
    let hook = Hook {
        observed_at: moment(&line).unwrap_or(import_time),
        source: HookSource::Import,
        argument: line.argument,
        body: line.body,
        ..Hook::default()
    };
    preparer.add(id, if cut { CUT } else { 0 }, hook);
}

/// When a line was observed. Times in the copy always have a zone, because whoever made the copy knew which one
/// applies.
fn moment(line: &Line) -> Option<Timestamp> {
    match line.at? {
        Time::Exact(at) => Some(at),
        Time::Local(_) => None,
    }
}

struct Lines {
    input: BufReader<disk::Reading>,
    buffer: Vec<u8>,
    first: bool,
}

impl Lines {
    fn open(staged: &Staged) -> io::Result<Self> {
        let file = disk::Reading(disk::open_private(&staged.path)?);
        Ok(Self { input: BufReader::with_capacity(1 << 18, file), buffer: Vec::new(), first: true })
    }

    /// The next line that is not blank, and whether it was cut.
    fn next(&mut self) -> io::Result<Option<(Line, bool)>> {
        loop {
            self.buffer.clear();
            let read = (&mut self.input).take(LONGEST).read_until(b'\n', &mut self.buffer)?;
            if read == 0 {
                return Ok(None);
            }
            let cut = read as u64 == LONGEST && self.buffer.last() != Some(&b'\n');
            if cut {
                self.skip_line()?;
            }
            let mut text = self.buffer.as_slice();
            if std::mem::take(&mut self.first) {
                text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
            }
            let text = text.trim_ascii();
            if !text.is_empty() {
                return Ok(Some((line::read(text), cut)));
            }
        }
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let rest = self.input.fill_buf()?;
            let end = rest.iter().position(|byte| *byte == b'\n');
            let (used, done) = end.map_or((rest.len(), rest.is_empty()), |at| (at + 1, true));
            self.input.consume(used);
            if done {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dirs::StateDir;
    use crate::import::{Source, Zone, judge, pending, stage};

    fn staged(text: &str) -> (tempfile::TempDir, Staged) {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::at(temp.path().join("s"));
        dir.prepare().unwrap();
        let input = judge(Source::open(text.as_bytes()).unwrap(), false).unwrap();
        let mut zone = Zone::new(jiff::tz::TimeZone::UTC, "UTC".to_owned());
        let staged = stage(&dir, Timestamp(9_000), 1, input, &mut zone, |_| {}).unwrap().staged;
        assert_eq!(pending(&dir).unwrap(), std::slice::from_ref(&staged));
        (temp, staged)
    }

    fn batches(staged: &Staged, skip: u64) -> Vec<Batch> {
        let plan = Plan::of(staged).unwrap();
        let mut batches = Vec::new();
        take_in(staged, &plan, skip, |batch| {
            batches.push(batch);
            Ok::<_, io::Error>(())
        })
        .unwrap();
        batches
    }

    #[test]
    fn time_passes_only_to_the_earliest_line_that_is_still_to_come() {
        let text: String = (0..2_500)
            .map(|i| {
                let at = if i == 2_400 { 5 } else { 1_000 + i };
                format!("{{\"ts\": {at}, \"event\": {{\"n\": {i}}}}}\n\n")
            })
            .collect();
        let (_temp, staged) = staged(&text);
        let batches = batches(&staged, 0);
        let sizes: Vec<_> = batches.iter().map(|batch| batch.arrivals.len()).collect();
        assert_eq!(sizes, [1_000, 1_000, 500]);
        assert_eq!(batches[0].horizon, Horizon::At(Timestamp(5)));
        assert_eq!(batches[1].horizon, Horizon::At(Timestamp(5)));
        assert_eq!(batches[2].horizon, Horizon::Still);
        let done: Vec<_> = batches.iter().map(|batch| batch.import.clone().unwrap().done).collect();
        assert_eq!(done, [false, false, true]);
    }

    #[test]
    fn an_interrupted_import_goes_on_with_the_same_ids() {
        let text: String = (0..1_500).map(|i| format!("{{\"n\": {}}}\n", i % 2)).collect();
        let (_temp, staged) = staged(&text);
        let ids = |batches: Vec<Batch>| {
            batches.iter().flat_map(|batch| &batch.arrivals).map(|one| one.id).collect::<Vec<_>>()
        };
        let all = ids(batches(&staged, 0));
        assert_eq!(all.len(), 1_500);
        assert_eq!(ids(batches(&staged, 1_000)), all[1_000..]);
        assert!(ids(batches(&staged, 1_500)).is_empty());
    }

    #[test]
    fn lines_without_a_time_keep_their_order() {
        let (_temp, staged) = staged("\u{feff}{\"a\": 1}\r\n  \r\n{\"b\": 2}");
        let [batch] = &batches(&staged, 0)[..] else { panic!("one batch") };
        let times: Vec<_> = batch.arrivals.iter().map(|one| one.hook.observed_at.0).collect();
        assert_eq!(times, [10_000, 11_000]);
        assert!(batch.arrivals.iter().all(|one| one.hook.source == HookSource::Import));
    }

    #[test]
    fn an_empty_file_is_done_at_once() {
        let (_temp, staged) = staged("");
        assert_eq!(batches(&staged, 0).len(), 1);
    }
}
