//! Credentials that exist only in this run's memory: codes, keys of pages, keys of requests.

use std::collections::{HashMap, VecDeque};

use crate::guard::proof::{Bytes32, Verifier};

/// Maximum number of codes. A further one replaces the oldest.
const CODES_MAX: usize = 32;
/// Maximum number of keys that admit a page of a signed-in browser without a code. A further one replaces the oldest.
const PAGES_MAX: usize = 1_024;
/// Maximum number of request keys, one per open or closed page. A further one replaces the least recently used.
const TABS_MAX: usize = 1_024;
/// Maximum distance by which the requests of one page may arrive out of order.
const WINDOW: u64 = 128;

/// See the module.
#[derive(Default)]
pub(super) struct Credentials {
    codes: VecDeque<Code>,
    pages: VecDeque<Page>,
    tabs: HashMap<String, Tab>,
    /// Counts uses of tabs.
    uses: u64,
}

struct Code {
    id: String,
    verifier: Verifier,
    until_ns: i64,
    used: bool,
}

struct Page {
    id: String,
    verifier: Verifier,
    session: String,
}

/// The key for one page's requests, and the request numbers that were used.
pub(super) struct Tab {
    key: Bytes32,
    session: String,
    highest: u64,
    /// Bit n: the number `highest - n` was used.
    seen: u128,
    used: u64,
}

impl Tab {
    pub(super) fn new(key: Bytes32, session: &str) -> Self {
        Self { key, session: session.to_owned(), highest: 0, seen: 1, used: 0 }
    }

    /// Whether this number is used for the first time.
    fn take(&mut self, number: u64) -> bool {
        if number > self.highest {
            let by = number - self.highest;
            self.seen = if by < WINDOW { self.seen << by } else { 0 };
            self.highest = number;
        }
        let back = self.highest - number;
        if back >= WINDOW || self.seen & (1 << back) != 0 {
            return false;
        }
        self.seen |= 1 << back;
        true
    }
}

impl Credentials {
    pub(super) fn add_code(&mut self, id: &str, verifier: Verifier, until_ns: i64) {
        push(
            &mut self.codes,
            CODES_MAX,
            Code { id: id.to_owned(), verifier, until_ns, used: false },
        );
    }

    pub(super) fn code(&self, id: &str, now_ns: i64) -> Option<Verifier> {
        let found = self.codes.iter().find(|code| code.id == id)?;
        (!found.used && now_ns < found.until_ns).then_some(found.verifier)
    }

    pub(super) fn code_used(&self, id: &str, now_ns: i64) -> Option<bool> {
        let found = self.codes.iter().find(|code| code.id == id)?;
        (found.used || now_ns < found.until_ns).then_some(found.used)
    }

    /// False if it was used before.
    pub(super) fn use_code(&mut self, id: &str) -> bool {
        let found = self.codes.iter_mut().find(|code| code.id == id);
        found.is_some_and(|code| !core::mem::replace(&mut code.used, true))
    }

    pub(super) fn add_page(&mut self, id: &str, verifier: Verifier, session: &str) {
        let page = Page { id: id.to_owned(), verifier, session: session.to_owned() };
        push(&mut self.pages, PAGES_MAX, page);
    }

    pub(super) fn page(&self, id: &str) -> Option<(&str, Verifier)> {
        let found = self.pages.iter().find(|page| page.id == id)?;
        Some((&found.session, found.verifier))
    }

    pub(super) fn add_tab(&mut self, id: &str, tab: Tab) {
        if self.tabs.len() >= TABS_MAX {
            let idle = self.tabs.iter().min_by_key(|(_, tab)| tab.used).map(|(id, _)| id.clone());
            idle.map(|id| self.tabs.remove(&id));
        }
        self.uses += 1;
        self.tabs.insert(id.to_owned(), Tab { used: self.uses, ..tab });
    }

    /// The session and the key of the tab `id`. `holds` must confirm that this key made the proof, and the number must
    /// be new.
    pub(super) fn admit(
        &mut self,
        id: &str,
        number: u64,
        holds: impl FnOnce(&Bytes32) -> bool,
    ) -> Option<(String, Bytes32)> {
        let tab = self.tabs.get_mut(id)?;
        if !holds(&tab.key) || !tab.take(number) {
            return None;
        }
        self.uses += 1;
        tab.used = self.uses;
        Some((tab.session.clone(), tab.key))
    }

    pub(super) fn forget(&mut self, session: &str) {
        self.pages.retain(|page| page.session != session);
        self.tabs.retain(|_, tab| tab.session != session);
    }
}

fn push<T>(list: &mut VecDeque<T>, max: usize, item: T) {
    if list.len() >= max {
        list.pop_front();
    }
    list.push_back(item);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::proof::sha256;

    #[test]
    fn a_number_is_taken_once_in_any_order() {
        let mut tab = Tab::new(sha256(b"k"), "s");
        assert!(!tab.take(0), "numbers start at one");
        assert!(tab.take(3) && tab.take(1) && tab.take(2));
        assert!(!tab.take(1) && !tab.take(2) && !tab.take(3));
        assert!(tab.take(200) && !tab.take(3) && !tab.take(72));
        assert!(tab.take(73) && !tab.take(73) && tab.take(u64::MAX) && !tab.take(u64::MAX));
        assert!(!tab.take(200));
    }

    #[test]
    fn lists_are_bounded_and_the_tab_that_is_used_stays() {
        let verifier = Verifier::of(&sha256(b"v"));
        let mut all = Credentials::default();
        for n in 0..2 * TABS_MAX {
            all.add_code(&n.to_string(), verifier, 1);
            all.add_page(&n.to_string(), verifier, "s");
            all.add_tab(&n.to_string(), Tab::new(sha256(b"k"), "s"));
            assert!(all.admit("0", n as u64 + 1, |_| true).is_some());
        }
        assert_eq!(
            (all.codes.len(), all.pages.len(), all.tabs.len()),
            (CODES_MAX, PAGES_MAX, TABS_MAX)
        );
        all.forget("s");
        assert_eq!((all.pages.len(), all.tabs.len()), (0, 0));
    }
}
