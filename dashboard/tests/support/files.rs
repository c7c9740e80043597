//! The files of the list.

use std::collections::{BTreeMap, BTreeSet};

use hookspan_core::Status;
use hookspan_view::Result;
use hookspan_view::facet;
use hookspan_view::line::LineKind;
use hookspan_view::source::{FileSums, Files, Touch, Touched, WantedFiles};

use super::ListSource;

impl ListSource {
    fn touched(&self, period: (i64, i64)) -> Vec<((String, String), Touch)> {
        let data = self.data();
        let mut found = Vec::new();
        for (row, stored) in (1..).zip(&data.spans) {
            let span = &stored.span;
            let Some(file) = facet::file(span) else { continue };
            let name = (file.project.unwrap_or_default(), file.path);
            if !(period.0..=period.1).contains(&span.start.0) {
                continue;
            }
            let lines = |key| span.number(key).map(|lines| lines as u64);
            let touch = Touch {
                row,
                id: span.id,
                root: span.root.to_string(),
                trace: span.trace,
                start: span.start,
                length_ns: span.length_ns(),
                edits: LineKind::of(span) == LineKind::Edits,
                added: lines("hookspan.edit.lines_added"),
                removed: lines("hookspan.edit.lines_removed"),
                failed: matches!(span.status, Status::Error { .. }),
                open: span.end.is_none(),
            };
            found.push((name, touch));
        }
        found.sort_by_key(|(_, touch)| core::cmp::Reverse((touch.start, touch.row)));
        found
    }
}

impl Files for ListSource {
    fn files(&self, wanted: &WantedFiles) -> Result<Touched> {
        let mut files: BTreeMap<(String, String), (FileSums, BTreeSet<String>)> = BTreeMap::new();
        for ((project, path), touch) in self.touched(wanted.period) {
            let of = |wanted: &Option<String>, value: &str| {
                wanted.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(value))
            };
            let text = wanted.text.as_ref().is_none_or(|text| path.contains(text.as_str()));
            if !text || !of(&wanted.project, &project) || !of(&wanted.session, &touch.root) {
                continue;
            }
            let (sums, sessions) = files.entry((project, path)).or_default();
            sessions.insert(touch.root.clone());
            sums.last_ns = sums.last_ns.max(touch.start.0);
            sums.errors += u64::from(touch.failed);
            sums.reads += u64::from(!touch.edits);
            sums.edits += u64::from(touch.edits);
            let done = touch.added.filter(|_| !touch.failed);
            sums.added = done.map(|lines| sums.added.unwrap_or(0) + lines).or(sums.added);
        }
        let file = |((project, path), (sums, sessions)): (_, (FileSums, BTreeSet<String>))| {
            let project = Some(project).filter(|name: &String| !name.is_empty());
            FileSums { project, path, sessions: sessions.len() as u64, ..sums }
        };
        Ok(Touched { files: files.into_iter().map(file).collect(), since: None })
    }

    fn touches(
        &self,
        project: &str,
        path: &str,
        period: (i64, i64),
        limit: usize,
    ) -> Result<Vec<Touch>> {
        let touched = self.touched(period).into_iter();
        let of = touched.filter(|((at, name), _)| (at.as_str(), name.as_str()) == (project, path));
        Ok(of.map(|(_, touch)| touch).take(limit).collect())
    }
}
