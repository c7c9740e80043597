//! Makes file operations fail on purpose, in tests.
//!
//! A [`Plan`] counts the operations of the threads that follow it, and makes some of them fail. Threads without a plan
//! are not affected, so tests can run in parallel.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Operation;

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The operation is not carried out.
    Before,
    /// The operation is carried out but reports an error. Only for operations that change names; other operations fail
    /// before they do anything.
    Behind,
}

/// Which operations fail: `count` operations, beginning with number `first`. Operations are counted from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub first: u64,
    pub count: u64,
    pub errno: i32,
    pub how: How,
}

/// A fault, and the operations that it made fail.
#[derive(Clone, Debug)]
pub(crate) struct Plan(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    fault: Fault,
    seen: u64,
    failed: Vec<Operation>,
}

thread_local! {
    static PLAN: RefCell<Option<Plan>> = const { RefCell::new(None) };
}

impl Plan {
    /// Begins a plan for this thread. It holds until the guard is dropped.
    pub(crate) fn begin(fault: Fault) -> (Self, Guard) {
        let plan = Self(Arc::new(Mutex::new(State { fault, seen: 0, failed: Vec::new() })));
        let guard = plan.follow();
        (plan, guard)
    }

    /// Makes this thread follow the plan, too.
    pub(crate) fn follow(&self) -> Guard {
        PLAN.with(|plan| *plan.borrow_mut() = Some(self.clone()));
        Guard
    }

    /// Operations that were failed.
    pub(crate) fn failed(&self) -> Vec<Operation> {
        self.state().failed.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an operation. Returns how it must fail, if at all.
    fn next(&self, operation: Operation) -> Option<(How, io::Error)> {
        let mut state = self.state();
        state.seen += 1;
        let Fault { first, count, errno, how } = state.fault;
        let due = state.seen >= first && state.seen - first < count;
        due.then(|| {
            state.failed.push(operation);
            let named = [Operation::Link, Operation::Rename, Operation::Remove, Operation::Create];
            let how = if named.contains(&operation) { how } else { How::Before };
            (how, io::Error::from_raw_os_error(errno))
        })
    }
}

/// Ends the faults of a thread.
pub(crate) struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        PLAN.with(|plan| *plan.borrow_mut() = None);
    }
}

/// The plan of this thread, to be followed by a thread that it starts.
pub(crate) fn plan() -> Option<Plan> {
    PLAN.with(|plan| plan.borrow().clone())
}

pub(super) fn tried<T>(
    operation: Operation,
    work: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    match plan().and_then(|plan| plan.next(operation)) {
        None => work(),
        Some((How::Before, error)) => Err(error),
        Some((How::Behind, error)) => work().and(Err(error)),
    }
}

pub(super) fn really(work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    if plan().is_some() { Ok(()) } else { work() }
}
