//! Prepares hooks for the raw log: parses them, and packs hooks of a conversation together.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use hookspan_core::content::Content;
use hookspan_core::{Event, EventKind, Hook, Reader, workspace_roots};
use hookspan_view::subject::{self, subject_field};

use crate::store::codec::{self, Packed, Packer};

/// Maximum size of a pack before compression. To show one hook, a page decompresses its whole pack.
const PACK_BYTES: usize = 64 << 10;
/// Maximum number of buffers kept for the next conversations.
const SPARE: usize = 32;

/// A hook that is ready for the raw log. It was parsed and packed outside the writer's thread.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Unique: the wall clock, big-endian, followed by the record's own id.
    pub id: [u8; 16],
    /// See `raw_hook.flags`.
    pub flags: u8,
    /// The hook without its body; its `seq` is given when it is written.
    pub hook: Hook,
    /// Its body.
    pub body: Stored,
    /// The parsed event, until the fold takes it.
    pub event: Option<Event>,
    /// All workspace roots, of a hook that ends a turn or a session.
    pub roots: Vec<String>,
    /// The part of the event that the raw log stores.
    pub reading: Reading,
}

/// Where a body is stored.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The pack: this body alone, or together with other bodies of its conversation and batch.
    pub pack: Arc<Packed>,
    /// Its first byte in the pack.
    pub start: u64,
    /// Its bytes.
    pub len: u64,
    /// Its own checksum.
    pub xxh64: i64,
}

impl Stored {
    /// Whether this body is the only one in the pack.
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
    /// Open packs by conversation. A pack never contains hooks of two conversations, so deleting one conversation
    /// removes its packs completely.
    open: BTreeMap<Arc<str>, Open>,
    spare: Vec<Open>,
    nothing: Arc<Packed>,
}

/// An open pack.
#[derive(Debug, Default)]
struct Open {
    bytes: Vec<u8>,
    /// Indexes of the pack's hooks among the arrivals.
    hooks: Vec<usize>,
}

impl Preparer {
    /// Parses a hook and adds it to the pack of its conversation. [`Self::finish`] returns it.
    pub fn add(&mut self, id: [u8; 16], flags: u8, mut hook: Hook) {
        let (event, content) = self.reader.read_with(&hook, subject_field);
        let reading = Reading::of(&event, content.as_ref());
        let ends = matches!(event.kind, EventKind::Stop(_) | EventKind::SessionEnd(_));
        let roots = if ends { workspace_roots(&hook) } else { Vec::new() };
        let body = std::mem::take(&mut hook.body);
        let place = self.arrivals.len();
        let (len, xxh64) = (body.len() as u64, codec::checksum(&body));
        let stored = Stored { pack: Arc::clone(&self.nothing), start: 0, len, xxh64 };
        let conversation = Arc::clone(&reading.conversation);
        let event = Some(event);
        self.arrivals.push(Arrival { id, flags, hook, body: stored, event, roots, reading });
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

    /// Number of hooks that [`Self::finish`] would return.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.arrivals.len()
    }

    /// When the last of these hooks was received.
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
    /// The conversation; empty if the hook has none.
    pub conversation: Arc<str>,
    /// The event's name; empty if the hook has none.
    pub name: Cow<'static, str>,
    /// Whether its body could not be parsed.
    pub malformed: bool,
    /// Whether its name is one that hookspan does not know.
    pub unknown: bool,
    /// Fields that no known hook of Cursor sends.
    pub unseen: Vec<Box<str>>,
    /// Words from closed lists that no known hook of Cursor sends.
    pub unseen_values: Vec<Box<str>>,
    /// The version that sent the hook. Set only if the payload contains it and also contains something unknown.
    pub version: Option<Box<str>>,
    /// The call's subject (a command, a query, a task), if only the body holds it.
    pub subject: Option<Arc<str>>,
}

impl Reading {
    /// The facts of `event` that the raw log stores. The content that contains the event's subject was read together
    /// with it, see [`subject_field`].
    #[must_use]
    pub fn of(event: &Event, content: Option<&Content>) -> Self {
        let unread = matches!(event.kind, EventKind::Malformed);
        // If only the part before the damage was parsed, the hook still counts as damaged.
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
