//! Prepares hooks for the raw log: parses them, and packs them with their neighbours.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use hookspan_core::content::Content;
use hookspan_core::{Event, EventKind, Hook, Reader};
use hookspan_view::subject::{self, subject_field};

use crate::store::codec::{self, Packed, Packer};

/// Maximum bytes of a pack before compression. To show one hook, a page decompresses its whole pack.
const PACK_BYTES: usize = 64 << 10;
/// Maximum number of kept buffers, for conversations that alternate.
const SPARE: usize = 32;

/// A hook ready for the raw log. Parsing and packing happened outside the writer's thread.
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
    /// The parsed event, until the fold takes it.
    pub event: Option<Event>,
    /// The part of the event that the raw log stores.
    pub reading: Reading,
}

/// Where a body is stored.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The pack: this body alone, or with others of its conversation and batch.
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

/// Makes arrivals. It reuses its buffers between hooks.
#[derive(Debug, Default)]
pub struct Preparer {
    reader: Reader,
    packer: Packer,
    arrivals: Vec<Arrival>,
    /// Open packs, by conversation. No pack holds hooks of two conversations, so that deleting one conversation removes its
    /// packs completely.
    open: BTreeMap<Arc<str>, Open>,
    spare: Vec<Open>,
    nothing: Arc<Packed>,
}

/// An open pack.
#[derive(Debug, Default)]
struct Open {
    bytes: Vec<u8>,
    /// Indexes of its hooks among the arrivals.
    hooks: Vec<usize>,
}

impl Preparer {
    /// Parses a hook and packs it with others of its conversation. [`Self::finish`] returns it.
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
            // Without a conversation id the hook's session is unknown, so it is packed alone.
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

    /// Returns the added hooks in their order.
    pub fn finish(&mut self) -> Vec<Arrival> {
        for (_, open) in std::mem::take(&mut self.open) {
            self.close(open);
        }
        std::mem::take(&mut self.arrivals)
    }

    /// Parses and packs one hook alone.
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

/// The parsed facts of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The conversation, empty when it has none.
    pub conversation: Arc<str>,
    /// The event's name, empty when it has none.
    pub name: Cow<'static, str>,
    /// Whether its body could not be parsed.
    pub malformed: bool,
    /// Whether its name is one that hookspan does not know.
    pub unknown: bool,
    /// Fields that no hook of Cursor is known to send.
    pub unseen: Vec<Box<str>>,
    /// Words of its lists that no hook of Cursor is known to send.
    pub unseen_values: Vec<Box<str>>,
    /// The version that sent it, if the payload says so and contains something unknown.
    pub version: Option<Box<str>>,
    /// The call's subject (a command, a query, a task), if only the body holds it.
    pub subject: Option<Arc<str>>,
}

impl Reading {
    /// The stored facts of `event`, and of the content that holds its subject, see [`subject_field`].
    #[must_use]
    pub fn of(event: &Event, content: Option<&Content>) -> Self {
        let unread = matches!(event.kind, EventKind::Malformed);
        // Only the part before the damage was parsed. The hook counts as damaged all the same.
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
