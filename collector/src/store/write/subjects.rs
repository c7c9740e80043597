//! Subjects of recent hooks, for the labels of spans. They are read outside the writer's thread, while the body is
//! still in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use hookspan_core::Span;
use hookspan_view::subject::subject_source;

use super::Reading;

/// Maximum number of hooks whose subjects are kept. That is several batches, because a span is written together with
/// its first hook.
const MOST: usize = 16_384;

/// Subjects by hook number. For a hook outside the range, the subject is not known. A hook within the range that has no
/// entry has no subject.
#[derive(Debug, Default)]
pub(super) struct Subjects {
    /// Number of the first hook in `known`. The others follow without gaps.
    first: u64,
    known: VecDeque<Option<Arc<str>>>,
}

/// What is known about a span's subject.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Subject<'a> {
    /// The subject is known: this text, or none.
    Known(Option<&'a str>),
    /// The subject is in this hook. It is read when a page needs it.
    In(u64),
}

impl<'a> Subject<'a> {
    /// The text, or the hook that holds it.
    pub(super) fn columns(&self) -> (Option<&'a str>, Option<i64>) {
        match *self {
            Self::Known(subject) => (subject, None),
            Self::In(hook) => (None, Some(hook.cast_signed())),
        }
    }
}

impl Subjects {
    /// Notes the subject of the hook at `seq`. Numbers that were skipped since the previous hook (after a deletion) get
    /// no subject. A large gap clears the list.
    pub(super) fn note(&mut self, seq: u64, reading: &Reading) {
        let next = self.first + self.known.len() as u64;
        match seq.checked_sub(next).map(usize::try_from) {
            Some(Ok(missing)) if missing < MOST && !self.known.is_empty() => {
                self.known.extend(std::iter::repeat_n(None, missing));
            }
            _ => {
                self.known.clear();
                self.first = seq;
            }
        }
        self.known.push_back(reading.subject.clone());
        let over = self.known.len().saturating_sub(MOST);
        self.known.drain(..over);
        self.first += over as u64;
    }

    /// Clears the list, because numbers from a transaction that was rolled back are given again.
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }

    pub(super) fn of(&self, span: &Span) -> Subject<'_> {
        let Some((hook, _)) = subject_source(span) else { return Subject::Known(None) };
        let at = hook.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
        match at.and_then(|at| self.known.get(at)) {
            Some(subject) => Subject::Known(subject.as_deref()),
            None => Subject::In(hook),
        }
    }
}

#[cfg(test)]
mod tests {
    use hookspan_core::Hook;

    use super::*;
    use crate::store::write::Preparer;

    fn reading(subject: &str) -> Reading {
        let body = format!(
            "{{\"hook_event_name\":\"preToolUse\",\"conversation_id\":\"c\",\"tool_name\":\"Shell\",
              \"tool_input\":{{\"command\":\"{subject}\"}}}}"
        );
        let hook = Hook { body: body.into_bytes(), ..Hook::default() };
        Preparer::default().prepare([0; 16], 0, hook).reading
    }

    /// The known subjects, by number.
    fn known(subjects: &Subjects) -> Vec<(u64, Option<&str>)> {
        (subjects.first..).zip(subjects.known.iter().map(Option::as_deref)).collect()
    }

    #[test]
    fn a_gap_that_a_deletion_left_forgets_nothing_and_what_goes_back_all() {
        let mut subjects = Subjects::default();
        for seq in [2, 3, 6] {
            subjects.note(seq, &reading(&format!("run {seq}")));
        }
        let expected =
            [(2, Some("run 2")), (3, Some("run 3")), (4, None), (5, None), (6, Some("run 6"))];
        assert_eq!(known(&subjects), expected);
        subjects.note(5, &reading("again"));
        assert_eq!(known(&subjects), [(5, Some("again"))]);
        subjects.note(6 + MOST as u64, &reading("far on"));
        assert_eq!(known(&subjects), [(6 + MOST as u64, Some("far on"))]);
    }

    #[test]
    fn the_latest_are_kept() {
        let (mut subjects, some) = (Subjects::default(), reading("x"));
        for seq in 1..=MOST as u64 + 1 {
            subjects.note(seq, &some);
        }
        subjects.note(MOST as u64 + 5, &some);
        assert_eq!((subjects.first, subjects.known.len()), (6, MOST));
    }
}
