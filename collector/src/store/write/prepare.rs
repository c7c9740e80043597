//! Hooks on their way into the raw log: read, and packed with their neighbours.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use hookspan_core::content::Content;
use hookspan_core::{Event, EventKind, Hook, Reader};
use hookspan_view::subject::{self, subject_field};

use crate::store::codec::{self, Packed, Packer};

/// Bytes of a pack, before compression. What a page asks of a single hook unpacks all of it.
const PACK_BYTES: usize = 64 << 10;
/// Buffers kept between packs: conversations that take turns.
const SPARE: usize = 32;

/// A hook on its way into the raw log: packed and read, both outside the writer's thread.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Unique: wall clock big-endian, then the record's own id.
    pub id: [u8; 16],
    /// See `raw_hook.flags`.
    pub flags: u8,
    /// The hook without its body; its `seq` is given when it is written.
    pub hook: Hook,
    /// Its body.
    pub body: Stored,
    /// Its reading, until the fold takes it.
    pub event: Option<Event>,
    /// The part of the reading that the raw log notes.
    pub reading: Reading,
}

/// Where a body stands.
#[derive(Clone, Debug)]
pub struct Stored {
    /// It alone, or with others of its conversation that came with it.
    pub pack: Arc<Packed>,
    /// Its first byte in the pack.
    pub start: u64,
    /// Its bytes.
    pub len: u64,
    /// Its own checksum.
    pub xxh64: i64,
}

impl Stored {
    /// Whether the pack holds nothing else.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.len == self.pack.len
    }
}

/// Makes arrivals. It keeps its working memory between hooks.
#[derive(Debug, Default)]
pub struct Preparer {
    reader: Reader,
    packer: Packer,
    arrivals: Vec<Arrival>,
    /// Packs that may grow, by conversation: what is deleted with a conversation is in no pack of another one.
    open: BTreeMap<Arc<str>, Open>,
    spare: Vec<Open>,
    nothing: Arc<Packed>,
}

/// A pack in the making.
#[derive(Debug, Default)]
struct Open {
    bytes: Vec<u8>,
    /// Places of its hooks among the arrivals.
    hooks: Vec<usize>,
}

impl Preparer {
    /// Reads a hook, and packs it with others of its conversation. [`Self::finish`] gives it back.
    pub fn add(&mut self, id: [u8; 16], flags: u8, mut hook: Hook) {
        let (event, content) = self.reader.read_with(&hook, subject_field);
        let reading = Reading::of(&event, content.as_ref());
        let body = std::mem::take(&mut hook.body);
        let place = self.arrivals.len();
        let (len, xxh64) = (body.len() as u64, codec::checksum(&body));
        let stored = Stored { pack: Arc::clone(&self.nothing), start: 0, len, xxh64 };
        let conversation = Arc::clone(&reading.conversation);
        self.arrivals.push(Arrival { id, flags, hook, body: stored, event: Some(event), reading });
        if conversation.is_empty() || body.len() >= PACK_BYTES {
            // Without a conversation nobody knows whose it is.
            self.seal(&body, &[place]);
            return;
        }
        let open =
            self.open.entry(conversation).or_insert_with(|| self.spare.pop().unwrap_or_default());
        let mut full = Open::default();
        if open.bytes.len() + body.len() > PACK_BYTES {
            full = std::mem::replace(open, self.spare.pop().unwrap_or_default());
        }
        if let Some(arrival) = self.arrivals.get_mut(place) {
            arrival.body.start = open.bytes.len() as u64;
        }
        open.bytes.extend_from_slice(&body);
        open.hooks.push(place);
        self.close(full);
    }

    /// How many hooks wait for [`Self::finish`].
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.arrivals.len()
    }

    /// When the last of them was received.
    #[must_use]
    pub fn last(&self) -> Option<&Hook> {
        self.arrivals.last().map(|arrival| &arrival.hook)
    }

    /// What was added, in that order.
    pub fn finish(&mut self) -> Vec<Arrival> {
        for (_, open) in std::mem::take(&mut self.open) {
            self.close(open);
        }
        std::mem::take(&mut self.arrivals)
    }

    /// Reads and packs a hook alone.
    pub fn prepare(&mut self, id: [u8; 16], flags: u8, hook: Hook) -> Arrival {
        let mut alone = Self {
            reader: std::mem::take(&mut self.reader),
            packer: std::mem::take(&mut self.packer),
            ..Self::default()
        };
        alone.add(id, flags, hook);
        let arrival = alone.finish().pop();
        (self.reader, self.packer) = (alone.reader, alone.packer);
        arrival.unwrap_or_else(|| unreachable!("one was added"))
    }

    fn close(&mut self, mut open: Open) {
        if !open.hooks.is_empty() {
            self.seal(&open.bytes, &open.hooks);
            open.bytes.clear();
            open.hooks.clear();
        }
        if open.bytes.capacity() > 0 && self.spare.len() < SPARE {
            self.spare.push(open);
        }
    }

    fn seal(&mut self, bytes: &[u8], hooks: &[usize]) {
        let pack = Arc::new(self.packer.pack(bytes));
        for place in hooks {
            if let Some(arrival) = self.arrivals.get_mut(*place) {
                arrival.body.pack = Arc::clone(&pack);
            }
        }
    }
}

/// What a hook was read as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The conversation, empty when it has none.
    pub conversation: Arc<str>,
    /// The event's name, empty when it has none.
    pub name: Cow<'static, str>,
    /// Whether it could not be read.
    pub malformed: bool,
    /// Whether its name is one that hookspan does not know.
    pub unknown: bool,
    /// Fields that no hook of Cursor is known to send.
    pub unseen: Vec<Box<str>>,
    /// Words of its lists that no hook of Cursor is known to send.
    pub unseen_values: Vec<Box<str>>,
    /// The version that sent it, where it says so and something in it is new.
    pub version: Option<Box<str>>,
    /// What the call is about (a command, a query, a task), when that stands in the body alone.
    pub subject: Option<Arc<str>>,
}

impl Reading {
    /// What is noted of `event`, and of the content that tells what it is about, see [`subject_field`].
    #[must_use]
    pub fn of(event: &Event, content: Option<&Content>) -> Self {
        let unread = matches!(event.kind, EventKind::Malformed);
        // Of a damaged body the part before the damage was read: it counts as damaged all the same.
        let malformed = unread || event.damaged;
        let name = if unread { Cow::Borrowed("") } else { event.name.clone() };
        let unknown = matches!(event.kind, EventKind::Unknown { is_new: true, .. });
        let version = event.about.cursor_version.as_deref();
        let is_new = unknown || !event.unseen.is_empty() || !event.unseen_values.is_empty();
        Self {
            conversation: event.conversation.clone(),
            name,
            malformed,
            unknown,
            unseen: event.unseen.clone(),
            unseen_values: event.unseen_values.clone(),
            version: version.filter(|_| is_new).map(Into::into),
            subject: content.and_then(subject::subject).map(Into::into),
        }
    }
}
