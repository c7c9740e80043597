//! Converts a file to JSON Lines with one record per line, in the form that [`super::take_in`] reads. A record that
//! already is a line is copied byte for byte.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use hookspan_core::Timestamp;

use super::line::{self, Line};
use super::records::{Item, Kind, Records};
use super::sniff::{self, Form};
use super::times::{Time, Zone};
use crate::hooks_json::events;
use crate::text;

/// Columns of a line that are shown.
const SHOWN: usize = 60;

/// Text that was not understood or not imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Remark {
    /// Lines that are not JSON. They are stored as malformed.
    NotJson,
    /// Objects that are cut off or broken. They are stored as malformed.
    Broken,
    /// Objects of more than 64 MiB. They are cut, and stored as malformed.
    Cut,
    /// A log's own text; left out.
    Text,
    /// Answers of hook programs. They are left out.
    Answer,
    /// A last object that was cut off by damage of the archive. It is left out.
    Unfinished,
}

impl Remark {
    /// A word for scripts.
    #[must_use]
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::NotJson => "not_json",
            Self::Broken => "broken_json",
            Self::Cut => "too_long",
            Self::Text => "log_text",
            Self::Answer => "hook_answer",
            Self::Unfinished => "unfinished",
        }
    }

    /// Description for a person: `3 lines were not JSON (kept raw)`.
    #[must_use]
    pub(crate) fn sentence(self, count: u64) -> String {
        let (noun, rest) = match self {
            Self::NotJson => ("line", "not JSON (kept raw)"),
            Self::Broken => ("object", "not valid JSON (kept raw)"),
            Self::Cut => ("object", "longer than 64 MiB (kept shortened)"),
            Self::Text => ("line", "text around the hooks (left out)"),
            Self::Answer => ("answer", "written by a hook program (left out)"),
            Self::Unfinished => ("object", "cut off where the archive is damaged (left out)"),
        };
        let verb = if count == 1 { "was" } else { "were" };
        format!("{} {verb} {rest}", text::counted(count, noun))
    }
}

/// Number of occurrences, and the first one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// How often.
    pub count: u64,
    /// The first line.
    pub line: u64,
    /// Its beginning, made safe for a terminal.
    pub shown: String,
}

/// Remarks, by kind.
pub(crate) type Remarks = BTreeMap<Remark, Found>;

/// Copies all records of `input` to `out`. `progress` is called after each.
pub(super) fn copy<R: Read>(
    input: R,
    form: Form,
    zone: &mut Zone,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(),
) -> io::Result<Copied> {
    let mut records = Records::new(input);
    let mut copier = Copier { form, zone, out, time: None, remarks: Remarks::new(), end: None };
    while let Some(item) = records.next()? {
        copier.item(&item)?;
        progress();
    }
    let Copier { remarks, end, .. } = copier;
    Ok(Copied { remarks, end })
}

/// Result of a copy.
pub(super) struct Copied {
    pub(super) remarks: Remarks,
    /// The last object, if the input ended inside it. It is written only if the input itself was complete.
    pub(super) end: Option<(Vec<u8>, u64)>,
}

struct Copier<'a> {
    form: Form,
    zone: &'a mut Zone,
    out: &'a mut dyn Write,
    /// The last time found in a log. An entry without a time gets this one.
    time: Option<Timestamp>,
    remarks: Remarks,
    end: Option<(Vec<u8>, u64)>,
}

impl Copier<'_> {
    fn item(&mut self, item: &Item<'_>) -> io::Result<()> {
        match item.kind {
            Kind::Object => self.object(item),
            Kind::Text => self.text(item),
            Kind::Broken if !item.prefix.is_empty() && sniff::time_of(item.prefix).is_none() => {
                self.text(item)
            }
            Kind::Broken => {
                self.remark(Remark::Broken, item);
                self.malformed(item)
            }
            Kind::Cut => {
                self.remark(Remark::Cut, item);
                self.malformed(item)
            }
            Kind::Unfinished => {
                self.end = Some((self.line(item), item.line));
                Ok(())
            }
        }
    }

    fn object(&mut self, item: &Item<'_>) -> io::Result<()> {
        let is_empty = item.body.len() < 8
            && item.body.iter().filter(|byte| !byte.is_ascii_whitespace()).count() == 2;
        if sniff::is_answer(item.body) || self.form.log && is_empty {
            self.remark(Remark::Answer, item);
            return Ok(());
        }
        let line = self.line(item);
        self.write(&line)
    }

    /// The object as a line. If its own line is complete, that line is used.
    fn line(&mut self, item: &Item<'_>) -> Vec<u8> {
        let Line { at, argument, body } = line::read(item.body);
        let (before, name) = before(item.prefix);
        let says_its_time = match at {
            Some(Time::Exact(_)) => true,
            Some(Time::Local(_)) => false,
            None => !self.form.log,
        };
        let is_plain = says_its_time && item.prefix.is_empty() && !item.body.contains(&b'\n');
        let stamp = at.or(before).and_then(|time| self.zone.resolve(time, item.line));
        if is_plain {
            return item.body.to_vec();
        }
        let time = if self.form.log { stamp.or(self.time) } else { stamp };
        self.time = time;
        Line { at: None, argument: argument.or(name), body }.write(time)
    }

    /// A line without an object: either a malformed hook, or text of the log.
    fn text(&mut self, item: &Item<'_>) -> io::Result<()> {
        let line = [item.prefix, item.body].concat();
        if sniff::is_rule(&line) {
            return Ok(());
        }
        if !self.form.log {
            self.remark(Remark::NotJson, item);
            return self.malformed(item);
        }
        let time = sniff::time_of(&line).and_then(|time| self.zone.resolve(time, item.line));
        self.time = time.or(self.time);
        // If the text before a hook was understood as a time, nothing of the line is lost.
        if time.is_none() {
            self.remark(Remark::Text, item);
        }
        Ok(())
    }

    fn malformed(&mut self, item: &Item<'_>) -> io::Result<()> {
        let time = before(item.prefix).0.and_then(|time| self.zone.resolve(time, item.line));
        let body = item.body.to_vec();
        let is_plain = time.is_none() && item.prefix.is_empty() && !body.contains(&b'\n');
        let line =
            if is_plain { body } else { Line { at: None, argument: None, body }.write(time) };
        self.write(&line)
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.out.write_all(line)?;
        self.out.write_all(b"\n")
    }

    fn remark(&mut self, remark: Remark, item: &Item<'_>) {
        let found = self.remarks.entry(remark).or_default();
        found.count += 1;
        if found.count == 1 {
            let line = if item.prefix.is_empty() { item.body } else { item.prefix };
            let line = line.get(..line.len().min(4 * SHOWN)).unwrap_or_default();
            found.line = item.line;
            found.shown = text::visible(&String::from_utf8_lossy(line), SHOWN);
        }
    }
}

/// Reads the text before a hook in a log: a time, and perhaps the event's name.
fn before(prefix: &[u8]) -> (Option<Time>, Option<String>) {
    let prefix = String::from_utf8_lossy(prefix);
    let (time, rest) = match Time::before(&prefix) {
        Some((time, rest)) => (Some(time), rest),
        None => (None, &*prefix),
    };
    let mut words = rest.split(|c: char| !c.is_ascii_alphanumeric());
    let name = words.rfind(|word| events::is_known(word));
    (time, name.map(str::to_owned))
}

#[cfg(test)]
mod tests;
