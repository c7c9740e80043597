//! What really happened, decided by a seed before any hook is written.

use serde_json::{Value, json};

use crate::random::Random;

/// Milliseconds since 1970 of day 0 of a campaign.
pub const DAY_ZERO_MS: u64 = 1_767_225_600_000;
/// Milliseconds of a day.
pub const DAY_MS: u64 = 86_400_000;

/// The sessions of one seed. Each seed has days of its own, so that sums over days contain nothing of other seeds.
#[derive(Clone, Debug)]
pub struct Story {
    /// The seed.
    pub seed: u64,
    /// Start of its first day, milliseconds since 1970.
    pub from_ms: u64,
    /// What happened, in order.
    pub sessions: Vec<Session>,
}

/// Which hooks tell of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layers {
    /// preToolUse and postToolUse alone.
    Generic,
    /// The generic events and the tool's own event (beforeShellExecution ...).
    Both,
    /// Only the tool's own event. No call has an id, and a file's hook does not report a duration.
    Specific,
    /// Only the events after a call, of both layers.
    Ends,
}

/// A conversation of a person with the agent.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its conversation.
    pub id: String,
    /// The folder it works in.
    pub workspace: String,
    /// Which hooks tell of calls.
    pub layers: Layers,
    /// Whether calls have ids.
    pub ids: bool,
    /// Whether a `sessionEnd` ends it.
    pub ends: bool,
    /// Its turns, in order.
    pub turns: Vec<Turn>,
}

/// A prompt, and everything until its stop.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Its generation id.
    pub generation: String,
    /// The model.
    pub model: String,
    /// A word that is in this prompt and in no other.
    pub word: String,
    /// Milliseconds since 1970.
    pub start: u64,
    /// Milliseconds since 1970.
    pub end: u64,
    /// completed, aborted, error.
    pub status: &'static str,
    /// Input, output, read from and written to the cache.
    pub tokens: Option<[u64; 4]>,
    /// Calls of the agent itself.
    pub calls: Vec<Call>,
    /// Delegations, one after the other or in parallel.
    pub agents: Vec<Agent>,
    /// Whether parallel delegations use the same model. Then no hook tells whose child a conversation is.
    pub alike: bool,
}

/// A delegation with a conversation of its own.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The id of the call, which is also the subagent's id.
    pub id: String,
    /// The child's conversation.
    pub conversation: String,
    /// The child's generation.
    pub generation: String,
    /// The child's model.
    pub model: String,
    /// Milliseconds since 1970.
    pub start: u64,
    /// Milliseconds since 1970.
    pub end: u64,
    /// Whether it ended in an error.
    pub failed: bool,
    /// What it did.
    pub calls: Vec<Call>,
    /// What it delegated itself.
    pub agents: Vec<Self>,
}

/// One tool call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its id.
    pub id: String,
    /// What was called.
    pub tool: Tool,
    /// When its first hook came, milliseconds since 1970.
    pub start: u64,
    /// What Cursor measured.
    pub duration: u64,
    /// No hook tells that it ended.
    pub hangs: bool,
    /// No hook reports the duration: the call hangs, or only a single hook reports it.
    pub untold: bool,
    /// Whether it failed.
    pub failed: bool,
    /// Text that occurs in this call and in no other.
    pub mark: String,
    /// Old and new text of an edit.
    pub edit: Option<(String, String)>,
}

/// The tools of the stories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// A command.
    Shell,
    /// A file is read.
    Read,
    /// A search.
    Grep,
    /// A part of a file is replaced.
    StrReplace,
    /// A file is written over.
    Write,
    /// A server's tool.
    Mcp,
}

impl Tool {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Shell, Self::Read, Self::Grep, Self::StrReplace, Self::Write, Self::Mcp];

    /// Tools that have an event of their own.
    pub const WITH_EVENTS: [Self; 4] = [Self::Shell, Self::Read, Self::Write, Self::Mcp];

    /// The name that figures stand under.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shell => "Shell",
            Self::Read => "Read",
            Self::Grep => "Grep",
            Self::StrReplace => "StrReplace",
            Self::Write => "Write",
            Self::Mcp => "get_pr",
        }
    }

    /// The word of its kind.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Read | Self::Grep => "tools",
            Self::StrReplace | Self::Write => "edits",
            Self::Mcp => "mcp",
        }
    }
}

/// What a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Nothing that an outcome tells.
    Build,
    /// It runs tests.
    Tests,
    /// It commits.
    Commit,
    /// It opens a pull request.
    PullRequest,
}

impl Call {
    /// What its command is for. No random number decides, so that stories are those of earlier campaigns.
    #[must_use]
    pub fn deed(&self) -> Deed {
        let number = self.number();
        match number % 7 {
            0 | 1 if self.tool == Tool::Shell => Deed::Tests,
            2 if self.tool == Tool::Shell => Deed::Commit,
            3 if self.tool == Tool::Shell => Deed::PullRequest,
            _ => Deed::Build,
        }
    }

    fn number(&self) -> u64 {
        self.mark.rsplit('x').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }

    /// The command of a shell call.
    #[must_use]
    pub fn command(&self) -> String {
        let words = match self.deed() {
            Deed::Build => "make",
            Deed::Tests => "cargo test -p",
            Deed::Commit => "git commit -am",
            Deed::PullRequest => "gh pr create --title",
        };
        format!("{words} {}", self.mark)
    }

    /// What it prints. A command that fails commits and opens nothing.
    #[must_use]
    pub fn output(&self) -> String {
        match self.deed() {
            Deed::Commit if !self.failed => {
                format!(
                    "[main {:07x}] {}\n 1 file changed\n",
                    0x0ab_0000 + self.number(),
                    self.mark
                )
            }
            Deed::PullRequest if !self.failed => self.pull_request() + "\n",
            _ => "x\n".to_owned(),
        }
    }

    /// The address of the pull request that it opens.
    #[must_use]
    pub fn pull_request(&self) -> String {
        format!("https://git.example/acme/app/pull/{}", self.number())
    }

    /// The file it works on, relative to the workspace.
    #[must_use]
    pub fn path(&self) -> String {
        format!("src/{} {}.rs", self.tool.name(), self.mark.len() % 3)
    }

    /// Lines that it adds and removes.
    #[must_use]
    pub fn lines(&self) -> (i64, i64) {
        let Some((old, new)) = &self.edit else { return (0, 0) };
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let mut table = vec![vec![0_i64; new.len() + 1]; old.len() + 1];
        for (a, left) in old.iter().enumerate() {
            for (b, right) in new.iter().enumerate() {
                table[a + 1][b + 1] = match left == right {
                    true => table[a][b] + 1,
                    false => table[a][b + 1].max(table[a + 1][b]),
                };
            }
        }
        let kept = table[old.len()][new.len()];
        (new.len() as i64 - kept, old.len() as i64 - kept)
    }

    /// `tool_input` of the generic hooks.
    #[must_use]
    pub fn input(&self, workspace: &str) -> Value {
        let path = format!("{workspace}/{}", self.path());
        match self.tool {
            Tool::Shell => {
                json!({"command": self.command(), "cwd": "", "timeout": 30_000})
            }
            Tool::Read => json!({"file_path": path, "offset": self.mark.len()}),
            Tool::Grep => json!({"pattern": self.mark, "path": workspace}),
            Tool::StrReplace => {
                let (old, new) = self.edit.clone().unwrap_or_default();
                json!({"path": path, "old_string": old, "new_string": new})
            }
            Tool::Write => {
                let (_, new) = self.edit.clone().unwrap_or_default();
                json!({"file_path": path, "content": new})
            }
            Tool::Mcp => json!({"number": self.mark}),
        }
    }
}

impl Agent {
    /// It and the agents below it.
    #[must_use]
    pub fn with_below(&self) -> Vec<&Self> {
        let below = self.agents.iter().flat_map(Self::with_below);
        std::iter::once(self).chain(below).collect()
    }
}

impl Turn {
    /// Delegations at any depth.
    pub fn all_agents(&self) -> impl Iterator<Item = &Agent> {
        self.agents.iter().flat_map(Agent::with_below)
    }

    /// Calls at any depth, without the delegating ones.
    pub fn all_calls(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().chain(self.all_agents().flat_map(|agent| &agent.calls))
    }

    /// Everything in it that failed, itself included.
    #[must_use]
    pub fn errors(&self) -> u64 {
        let calls = self.all_calls().filter(|call| call.failed).count();
        let agents = self.all_agents().filter(|agent| agent.failed).count();
        // A failed subagent counts once; the call that delegated to it repeats the failure.
        (calls + agents) as u64 + u64::from(self.status == "error")
    }
}

impl Session {
    /// The name that figures stand under.
    #[must_use]
    pub fn project(&self) -> &str {
        self.workspace.rsplit('/').next().unwrap_or_default()
    }

    /// Calls at any depth.
    pub fn all_calls(&self) -> impl Iterator<Item = &Call> {
        self.turns.iter().flat_map(Turn::all_calls)
    }

    /// Everything in it that failed.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.turns.iter().map(Turn::errors).sum()
    }

    /// Sums over the turns that reported tokens.
    #[must_use]
    pub fn tokens(&self) -> Option<[u64; 4]> {
        let all = self.turns.iter().filter_map(|turn| turn.tokens);
        all.reduce(|sum, more| std::array::from_fn(|at| sum[at] + more[at]))
    }
}

/// Makes the story of a seed. Its days begin at `day`.
#[must_use]
pub fn story(seed: u64, day: u64) -> Story {
    let mut random = Random::from_seed(seed.wrapping_mul(0x9e37_79b9) ^ 0x00ac_1e50);
    let from_ms = DAY_ZERO_MS + day * DAY_MS;
    // Sessions begin at any time of the day, so midnight may come between any two hooks.
    let at = from_ms + 3_600_000 + random.bits() % (20 * 3_600_000);
    let mut maker = Maker { seed, random: random.clone(), at, busy: at, made: 0 };
    let count = 1 + random.bits() % 3;
    let sessions = (0..count).map(|number| maker.session(number)).collect();
    Story { seed, from_ms, sessions }
}

/// Models of parallel delegations.
const MODELS: [&str; 3] = ["composer-2.5", "haiku-5", "flash-3"];

/// What the hooks of a session tell about calls.
#[derive(Clone, Copy)]
struct Means {
    layers: Layers,
    ids: bool,
}

impl Means {
    /// Whether this way reports delegations. That needs ids, and the hooks before calls.
    fn delegates(self) -> bool {
        self.ids && self.layers != Layers::Ends
    }
}

struct Maker {
    seed: u64,
    random: Random,
    /// The time, milliseconds since 1970.
    at: u64,
    /// When the last of the parallel calls ends.
    busy: u64,
    made: u64,
}

impl Maker {
    fn one_in(&mut self, of: u64) -> bool {
        self.random.bits().is_multiple_of(of)
    }

    fn id(&mut self, what: &str) -> String {
        self.made += 1;
        format!(
            "{what}{:06x}-{:04x}-4000-8000-{:012x}",
            self.seed,
            self.made,
            self.random.bits() >> 16
        )
    }

    fn pass(&mut self, from: u64, to: u64) -> u64 {
        self.at += self.random.between(from, to);
        self.at
    }

    fn session(&mut self, number: u64) -> Session {
        self.pass(2 * 3_600_000, 4 * 3_600_000);
        let folder = if self.one_in(3) { 0 } else { number };
        let layers = [Layers::Generic, Layers::Both, Layers::Specific, Layers::Ends];
        let layers = layers[(self.random.bits() % 4) as usize];
        let ids = layers != Layers::Specific && !self.one_in(4);
        let (ends, turns) = (self.one_in(2), 1 + self.random.bits() % 3);
        let means = Means { layers, ids };
        Session {
            id: self.id("c"),
            workspace: format!("/home/dev/p{}-{folder}", self.seed),
            layers,
            ids,
            ends,
            turns: (0..turns).map(|_| self.turn(means)).collect(),
        }
    }

    fn turn(&mut self, means: Means) -> Turn {
        let start = self.pass(20_000, 200_000);
        let (generation, model) = (self.id("a"), ["gpt-5.5", "sonnet-5"][self.made as usize % 2]);
        let (steps, alike) = (self.random.bits() % 5, self.one_in(4));
        let (mut calls, mut agents) = (Vec::new(), Vec::new());
        for _ in 0..steps {
            match means.delegates() && self.one_in(3) {
                true => self.agents(&mut agents, means, alike),
                false => calls.push(self.call(means)),
            }
        }
        self.at = self.at.max(self.busy);
        let status = ["completed", "completed", "completed", "aborted", "error"];
        let status = status[(self.random.bits() % 5) as usize];
        let tokens = (!self.one_in(4)).then(|| {
            let (read, write) = (self.random.bits() % 900, self.random.bits() % 90);
            [read + write + self.random.bits() % 5_000, 1 + self.random.bits() % 500, read, write]
        });
        let end = self.pass(1_500, 9_000);
        let word = format!("zebra{}x{}", self.seed, self.made);
        let model = model.to_owned();
        Turn { generation, model, word, start, end, status, tokens, calls, agents, alike }
    }

    /// One delegation, or two or three in parallel.
    fn agents(&mut self, into: &mut Vec<Agent>, means: Means, alike: bool) {
        let mut last = self.at;
        let many = if self.one_in(3) { 2 + self.random.bits() % 2 } else { 1 };
        for number in 0..many as usize {
            let model = if alike { 0 } else { number };
            let agent = self.agent(means, MODELS[model], true);
            last = last.max(agent.end);
            self.at = agent.start + 400;
            into.push(agent);
        }
        self.at = last;
    }

    fn agent(&mut self, means: Means, model: &str, may_delegate: bool) -> Agent {
        let start = self.pass(1_000, 4_000);
        self.pass(1_000, 2_000);
        let mut calls: Vec<_> = (0..1 + self.random.bits() % 3).map(|_| self.call(means)).collect();
        let mut agents = Vec::new();
        if may_delegate && self.one_in(4) {
            self.at = self.at.max(self.busy);
            agents.push(self.agent(means, &format!("{model}-nano"), false));
            calls.extend((0..self.random.bits() % 2).map(|_| self.call(means)));
        }
        self.at = self.at.max(self.busy);
        Agent {
            id: self.id("d"),
            conversation: self.id("e"),
            generation: self.id("f"),
            model: model.to_owned(),
            start,
            end: self.pass(1_500, 3_000),
            failed: self.one_in(5),
            calls,
            agents,
        }
    }

    /// Calls that hooks can tell apart may run in parallel.
    fn call(&mut self, Means { layers, ids }: Means) -> Call {
        let start = self.pass(1_000, 4_000);
        let specific = layers == Layers::Specific;
        let tools = if specific { &Tool::WITH_EVENTS[..] } else { &Tool::ALL[..] };
        let tool = tools[(self.random.bits() % tools.len() as u64) as usize];
        let duration = self.random.between(20, 9_000);
        self.busy = self.busy.max(start + duration + 600);
        let beside = (ids || specific) && self.one_in(3);
        self.at = if beside { start + 500 } else { self.busy };
        let id = self.id("b");
        let edits = matches!(tool, Tool::StrReplace | Tool::Write);
        let mark = format!("m{}x{}", self.seed, self.made);
        // Two equal hooks about a file within 5 s would count as one, so the new text of each edit begins with its own
        // line.
        let own = if specific { format!("{mark}\n") } else { String::new() };
        let edit = edits.then(|| (self.text(), own + &self.text()));
        // Without ids, an equal read after a hanging one would look like a hook that was delivered twice, so such a
        // read never hangs.
        let hangs =
            !edits && layers != Layers::Ends && (ids || tool != Tool::Read) && self.one_in(12);
        // A tool's own event never reports that a command failed.
        let may_fail = !edits && !hangs && (!specific || tool == Tool::Mcp);
        let failed = may_fail && self.one_in(4);
        let untold = hangs || (specific && matches!(tool, Tool::Read | Tool::Write));
        Call { id, tool, start, duration, hangs, untold, failed, mark, edit }
    }

    /// A text of a few lines, some of them repeated. It may be empty and may lack its last newline.
    fn text(&mut self) -> String {
        let count = self.random.bits() % 8;
        let words = ["{", "}", "let a = 1;", "", "b();", "c();", "// d"];
        let line = |random: &mut Random| words[(random.bits() % 7) as usize];
        let lines: Vec<&str> = (0..count).map(|_| line(&mut self.random)).collect();
        let end = if lines.is_empty() || (self.one_in(3) && lines.last() != Some(&"")) {
            ""
        } else {
            "\n"
        };
        lines.join("\n") + end
    }
}
