//! Generates sessions and knows what really happened in them: the hooks that Cursor would send, and the spans that
//! should exist if only some kinds of hook arrive.

use std::collections::{BTreeMap, BTreeSet};

use hookspan_core::{Hook, Tokens};

#[path = "world/calls.rs"]
mod calls;
#[path = "world/expected.rs"]
mod expected;
#[path = "world/maker.rs"]
mod maker;
#[path = "world/odd.rs"]
mod odd;

const MS: i64 = 1_000_000;

/// Where the agent runs. Each surface sends its own subset of the hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surface {
    Ide,
    Cli,
    /// The CLI with `-p`: no prompt, no response, no stop.
    Print,
}

/// What a session may contain besides ordinary things.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flavor {
    /// Equal commands and files, and subagents in parallel. Only a complete stream can tell them apart.
    pub(crate) crowded: bool,
    /// Missing or reused ids, other roots, cut bodies, and other things that hosts do.
    pub(crate) odd: bool,
}

/// A generator of small seeded numbers. The same seed always makes the same session.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.roll(u64::try_from(high - low).unwrap()) as i64
    }
}

/// A thing that happened, and the hooks that report it.
#[derive(Clone, Debug)]
enum Thing {
    Session {
        start: i64,
        end: i64,
    },
    Turn {
        prompt: Option<i64>,
        stop: Option<i64>,
        response: bool,
        tokens: Option<Tokens>,
    },
    Thought {
        at: i64,
        run: i64,
    },
    Response {
        at: i64,
    },
    Compaction {
        at: i64,
    },
    Call(Told),
    /// A delegating call: its pre hook, and the event that ends it.
    Task {
        tool: &'static str,
        agent: &'static str,
        id: String,
        pre: i64,
        stop: Option<i64>,
        thought: Option<i64>,
    },
    Agent {
        agent: &'static str,
        id: String,
        start: Option<i64>,
        stop: Option<(i64, i64)>,
    },
}

/// The hooks of one call, each with the time at which it was received.
#[derive(Clone, Debug, Default)]
struct Told {
    name: String,
    /// The call's name if only the specific layer remains.
    bare: String,
    id: String,
    pre: i64,
    /// Specific hooks: name and time.
    before: Option<(&'static str, i64)>,
    after: Option<(&'static str, i64)>,
    /// Name and time of the end in the generic layer.
    post: Option<(&'static str, i64)>,
    run: i64,
    /// Whether the specific end hook contains the duration, too.
    after_has_run: bool,
}

/// A session that was made up.
pub(crate) struct World {
    pub(crate) surface: Surface,
    pub(crate) hooks: Vec<Hook>,
    /// The event of each hook.
    names: Vec<String>,
    things: Vec<(Thing, Option<usize>)>,
    /// Number of hooks that repeat another hook in other words.
    pub(crate) again: usize,
    /// The odd things in it.
    pub(crate) oddities: BTreeSet<&'static str>,
}

/// All odd things that a session may hold.
pub(crate) const ODDITIES: [&str; 10] = [
    "an id twice",
    "calls without ids",
    "hooks without a turn",
    "hooks without a conversation",
    "ends that say less",
    "cut bodies",
    "calls of most of an hour",
    "other roots",
    "two wordings",
    "children that outlive",
];

struct Maker {
    dice: Dice,
    surface: Surface,
    flavor: Flavor,
    hooks: Vec<Hook>,
    names: Vec<String>,
    things: Vec<(Thing, Option<usize>)>,
    now: i64,
    count: u64,
    again: usize,
    /// Nothing else runs at the same time in the actor's conversation.
    serial: bool,
    /// For each conversation, the id of the last call that has ended.
    over: BTreeMap<String, String>,
    /// Conversations with a hook.
    seen: BTreeSet<String>,
    oddities: BTreeSet<&'static str>,
}

/// Who acts: the root or a child.
#[derive(Clone)]
struct Actor {
    conversation: String,
    generation: String,
    /// The id that the CLI's hooks for tools contain instead of the generation.
    exec: String,
    model: &'static str,
    thing: usize,
    depth: u32,
}

/// Makes up a session.
pub(crate) fn make(seed: u64, surface: Surface, flavor: Flavor) -> World {
    let mut maker = Maker {
        dice: Dice::new(seed),
        surface,
        flavor,
        hooks: Vec::new(),
        names: Vec::new(),
        things: Vec::new(),
        now: 1_780_000_000_000 * MS,
        count: 0,
        again: 0,
        serial: true,
        over: BTreeMap::new(),
        seen: BTreeSet::new(),
        oddities: BTreeSet::new(),
    };
    maker.session();
    let Maker { hooks, names, things, again, oddities, .. } = maker;
    World { surface, hooks, names, things, again, oddities }
}

impl World {
    /// The kinds of hook the session holds.
    pub(crate) fn kinds(&self) -> BTreeSet<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    /// The session's hooks without those of one kind.
    pub(crate) fn without(&self, lost: &str) -> Vec<Hook> {
        let hooks = self.hooks.iter().zip(&self.names);
        hooks.filter(|(_, name)| *name != lost).map(|(hook, _)| hook.clone()).collect()
    }
}
