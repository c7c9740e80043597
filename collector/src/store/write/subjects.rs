//! What recent hooks say their calls are about, for the labels of spans: read once, beside the writer, while the body is
//! at hand.

use std::collections::VecDeque;
use std::sync::Arc;

use hookspan_core::Span;
use hookspan_dashboard::line;

use super::Reading;

/// Hooks whose subjects are kept: several batches, since a span is written with the hook that begins it.
const MOST: usize = 16_384;

/// Subjects by place in the raw log. A hook that is not in here may have one; one that is here without has none.
#[derive(Debug, Default)]
pub(super) struct Subjects {
    /// Place of the first of `known`; the others follow it without a gap.
    first: u64,
    known: VecDeque<Option<Arc<str>>>,
}

/// What is known of a span's subject.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Subject<'a> {
    /// It has this one, or none.
    Known(Option<&'a str>),
    /// It stands in this hook, and is read when somebody looks.
    In(u64),
}

impl Subjects {
    pub(super) fn note(&mut self, seq: u64, reading: &Reading) {
        if seq != self.first + self.known.len() as u64 {
            self.known.clear();
            self.first = seq;
        }
        if self.known.len() >= MOST {
            self.known.pop_front();
            self.first += 1;
        }
        self.known.push_back(reading.subject.clone());
    }

    /// Forgets all: places given in a transaction that was rolled back are given again.
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }

    pub(super) fn of(&self, span: &Span) -> Subject<'_> {
        let Some((hook, _)) = line::subject_source(span) else { return Subject::Known(None) };
        let at = hook.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
        match at.and_then(|at| self.known.get(at)) {
            Some(subject) => Subject::Known(subject.as_deref()),
            None => Subject::In(hook),
        }
    }
}
