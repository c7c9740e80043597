//! Makes up sessions and knows what really happened in them: hooks as Cursor would send them, and the spans that should
//! exist given which kinds of hook arrive.

use std::collections::BTreeSet;

use hookspan_core::{Hook, Timestamp, Tokens};
use serde_json::{Value, json};

use crate::truth::{Fact, Truth};

const MS: i64 = 1_000_000;

/// Where the agent runs; each sends its own part of the hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surface {
    Ide,
    Cli,
    /// The CLI with `-p`: no prompt, no response, no stop.
    Print,
}

/// What a session may hold besides the plain things.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flavor {
    /// Equal commands and files, subagents in parallel: only a whole stream tells them apart.
    pub(crate) crowded: bool,
}

/// Small, seeded numbers; the same seed makes the same session for ever.
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

/// A thing that happened, and which hooks tell of it.
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
    /// A delegating call: its pre, and what ends it.
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

/// The hooks of one call, by when they were received.
#[derive(Clone, Debug, Default)]
struct Told {
    name: String,
    /// Its name when only the specific layer is left.
    bare: String,
    id: String,
    pre: i64,
    /// Specific hooks: name and time.
    before: Option<(&'static str, i64)>,
    after: Option<(&'static str, i64)>,
    /// Name and time of the end in the generic layer.
    post: Option<(&'static str, i64)>,
    run: i64,
    /// Whether the specific end tells the duration too.
    after_has_run: bool,
}

/// A session that was made up.
pub(crate) struct World {
    pub(crate) surface: Surface,
    pub(crate) hooks: Vec<Hook>,
    /// The event of each hook.
    names: Vec<String>,
    things: Vec<(Thing, Option<usize>)>,
}

struct Maker {
    dice: Dice,
    surface: Surface,
    flavor: Flavor,
    hooks: Vec<Hook>,
    names: Vec<String>,
    things: Vec<(Thing, Option<usize>)>,
    now: i64,
    count: u64,
}

/// Who acts: the root or a child.
#[derive(Clone)]
struct Actor {
    conversation: String,
    generation: String,
    /// What exec-layer hooks of the CLI say instead.
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
    };
    maker.session();
    World { surface, hooks: maker.hooks, names: maker.names, things: maker.things }
}

impl Maker {
    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    fn wait(&mut self, low: i64, high: i64) {
        self.now += self.dice.between(low, high) * MS;
    }

    fn send(&mut self, at: i64, name: &str, who: (&str, &str), model: &str, own: Value) {
        let (conversation, generation) = who;
        let version = if self.surface == Surface::Ide { "3.18.25" } else { "2026.07.23-e383d2b" };
        let mut body = json!({
            "conversation_id": conversation, "generation_id": generation, "model": model,
            "session_id": conversation, "hook_event_name": name, "cursor_version": version,
            "workspace_roots": ["/w/app"], "transcript_path": null,
        });
        if let (Some(body), Value::Object(own)) = (body.as_object_mut(), own) {
            body.extend(own);
        }
        self.names.push(name.to_owned());
        self.hooks.push(Hook {
            seq: self.hooks.len() as u64 + 1,
            observed_at: Timestamp(at),
            body: body.to_string().into_bytes(),
            ..Hook::default()
        });
    }

    fn add(&mut self, thing: Thing, parent: Option<usize>) -> usize {
        self.things.push((thing, parent));
        self.things.len() - 1
    }

    fn session(&mut self) {
        let root = format!("root-{}", self.dice.roll(1 << 40));
        let bare = if self.surface == Surface::Ide { "" } else { root.as_str() };
        let bare = bare.to_owned();
        let mut start = self.now;
        let prints = self.surface == Surface::Print;
        if prints || self.dice.roll(4) > 0 {
            let own = json!({"is_background_agent": false, "composer_mode": "agent"});
            self.send(self.now, "sessionStart", (&root, &bare), "default", own);
            if self.dice.roll(2) == 0 {
                self.wait(300, 3_000);
            }
        }
        let turns = if prints { 1 } else { 1 + self.dice.roll(4) };
        let mut last = self.now;
        for index in 0..turns {
            if index > 0 {
                match self.dice.roll(8) {
                    0 => self.wait(7_200_000, 7_300_000),
                    1 => self.wait(2_400_000, 2_500_000),
                    _ => self.wait(3_000, 60_000),
                }
                if self.now - last > 3_600_000 * MS {
                    self.add(Thing::Session { start, end: last }, None);
                    start = self.now;
                }
            }
            last = self.turn(&root, index);
        }
        if prints || self.dice.roll(2) == 0 {
            self.wait(500, 4_000);
            let own = json!({"reason": "completed", "duration_ms": 0, "final_status": "completed"});
            self.send(self.now, "sessionEnd", (&root, &bare), "default", own);
            last = self.now;
        }
        self.add(Thing::Session { start, end: last }, None);
    }

    /// One turn. Gives the time of its last hook.
    fn turn(&mut self, root: &str, index: u64) -> i64 {
        let generation = format!("turn-{index}-{root}");
        let model = "gpt-5.5-medium";
        let (prompt, stop, response, tokens) = (None, None, false, None);
        let thing = self.add(Thing::Turn { prompt, stop, response, tokens }, None);
        let mut own = Actor {
            conversation: root.to_owned(),
            exec: if self.surface == Surface::Ide { generation.clone() } else { root.to_owned() },
            generation,
            model: "gpt-5.5",
            thing,
            depth: 0,
        };
        let who = |actor: &Actor| (actor.conversation.clone(), actor.generation.clone());
        let (conversation, generation) = who(&own);
        let prints = self.surface == Surface::Print;
        let mut prompted = None;
        if !prints {
            prompted = Some(self.now);
            let body = json!({"prompt": "go on", "attachments": [], "composer_mode": "agent"});
            self.send(self.now, "beforeSubmitPrompt", (&conversation, &generation), model, body);
            self.wait(300, 3_000);
        }
        if self.surface != Surface::Ide {
            self.think(&own, 0);
        }
        let steps = 1 + self.dice.roll(6);
        for step in 0..steps {
            self.step(&mut own, step + 1);
        }
        if self.surface != Surface::Ide {
            self.think(&own, 99);
        }
        let mut last = self.hooks.iter().map(|hook| hook.observed_at.0).max().unwrap_or(self.now);
        if prints {
            return last;
        }
        let tokens = (self.dice.roll(4) > 0).then(|| {
            let input = 1_000 + self.dice.roll(50_000);
            Tokens {
                input,
                output: self.dice.roll(900),
                cache_read: input / 2,
                cache_write: input / 4,
            }
        });
        let counts = tokens.map_or(json!({}), |t| {
            json!({"input_tokens": t.input, "output_tokens": t.output,
                "cache_read_tokens": t.cache_read, "cache_write_tokens": t.cache_write})
        });
        let with = |mut own: Value| {
            if let (Some(own), Value::Object(counts)) = (own.as_object_mut(), counts.clone()) {
                own.extend(counts);
            }
            own
        };
        let responds = self.dice.roll(5) > 0;
        let text = format!("answer {index}");
        if responds {
            self.wait(300, 4_000);
            let body = with(json!({"text": text}));
            self.send(self.now, "afterAgentResponse", (&conversation, &generation), model, body);
            self.add(Thing::Response { at: self.now }, Some(thing));
            self.wait(40, 60);
        } else {
            self.wait(300, 500);
        }
        let status = if self.dice.roll(6) == 0 { "aborted" } else { "completed" };
        let body = with(json!({"status": status, "loop_count": 0}));
        self.send(self.now, "stop", (&conversation, &generation), model, body);
        last = last.max(self.now);
        self.things[thing].0 =
            Thing::Turn { prompt: prompted, stop: Some(self.now), response: responds, tokens };
        last
    }

    fn step(&mut self, actor: &mut Actor, step: u64) {
        match self.dice.roll(if actor.depth < 3 { 14 } else { 11 }) {
            0 => self.think(actor, step),
            1 if actor.depth == 0 && self.surface == Surface::Ide => {
                let tokens = self.next();
                let body = json!({"trigger": "auto", "context_tokens": tokens});
                let who = (actor.conversation.as_str(), actor.generation.as_str());
                self.send(self.now, "preCompact", who, "gpt-4.1-mini", body);
                self.add(Thing::Compaction { at: self.now }, Some(actor.thing));
            }
            2 if actor.depth == 0 => {
                let who = (actor.conversation.as_str(), actor.generation.as_str());
                self.send(self.now, "somethingNew", who, actor.model, json!({"x": step}));
            }
            11.. if self.surface == Surface::Ide => self.delegate(actor),
            11.. if actor.depth == 0 => self.delegate_on_the_cli(actor),
            3 | 4 => {
                // In parallel: all begin before any ends.
                let begun = self.now;
                let mut latest = begun;
                for at in 0..2 + self.dice.roll(3) as i64 {
                    self.now = begun + at * 5 * MS;
                    self.call(actor);
                    latest = latest.max(self.now);
                }
                self.now = latest;
            }
            _ => self.call(actor),
        }
        self.wait(300, 2_000);
    }

    fn think(&mut self, actor: &Actor, step: u64) {
        let run = self.dice.between(50, 280) * MS;
        self.now += run;
        let suffix = if self.surface == Surface::Ide && self.dice.roll(2) == 0 {
            String::new()
        } else {
            format!("-{step}-ab{}d", self.next() % 10)
        };
        let number = self.next();
        let generation = format!("{}{suffix}", actor.generation);
        let body = json!({"text": format!("hm {number}"), "duration_ms": run / MS});
        let who = (actor.conversation.as_str(), generation.as_str());
        self.send(self.now, "afterAgentThought", who, actor.model, body);
        self.add(Thing::Thought { at: self.now, run }, Some(actor.thing));
        self.wait(300, 600);
    }

    /// One tool call of any kind.
    fn call(&mut self, actor: &Actor) {
        let number = self.next();
        let equal = self.flavor.crowded && self.dice.roll(3) == 0;
        let file = format!("/w/app/{}.rs", if equal { 0 } else { number });
        let command = format!("tool-{} run", if equal { 0 } else { number });
        let kind = self.dice.roll(6);
        let (tool, input) = match kind {
            0 | 1 => ("Read".to_owned(), json!({"file_path": file})),
            2 => ("Grep".to_owned(), json!({"pattern": format!("x{number}"), "path": file})),
            3 => ("Shell".to_owned(), json!({"command": command, "cwd": ""})),
            4 => (format!("MCP:look_{number}"), json!({"q": number})),
            _ => ("Write".to_owned(), json!({"file_path": file, "content": "a"})),
        };
        let id = format!("call_{number}\nfc_{number}");
        let run = self.dice.between(1, 2_000) * MS / 4 + 250_000;
        let outcome = self.dice.roll(12);
        let (pre, begins) = (self.now, self.now + self.dice.between(20, 45) * MS);
        let ends = begins + self.dice.between(20, 45) * MS + run;
        let mut told = Told { id: id.clone(), pre, run, ..Told::default() };
        let program = command.split(' ').next().unwrap_or_default().to_owned();
        told.name = match kind {
            3 => format!("execute_tool Shell {program}"),
            4 => format!("execute_tool look_{number}"),
            _ => format!("execute_tool {tool}"),
        };
        told.bare = told.name.clone();
        let who = (actor.conversation.as_str(), actor.exec.as_str());
        let generic = json!({"tool_name": tool, "tool_input": input, "tool_use_id": id});
        let with = |mut body: Value, more: Value| {
            if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
                body.extend(more);
            }
            body
        };
        self.send(pre, "preToolUse", who, actor.model, generic.clone());
        let duration = run as f64 / 1e6;
        let fails = outcome < 2;
        let hangs = outcome == 2;
        let specific = self.surface == Surface::Ide || kind < 2;
        if specific && !(fails && kind < 2) {
            let inner = input.to_string();
            let before = match kind {
                0 | 1 => Some(("beforeReadFile", json!({"file_path": file, "content": "x"}))),
                3 => Some(("beforeShellExecution", json!({"command": command, "cwd": ""}))),
                4 => Some((
                    "beforeMCPExecution",
                    json!({"tool_name": format!("look_{number}"), "tool_input": inner, "command": "srv"}),
                )),
                _ => None,
            };
            if let Some((name, body)) = before {
                self.send(begins, name, who, actor.model, body);
                told.before = Some((name, begins));
            }
            let after = match kind {
                3 => Some((
                    "afterShellExecution",
                    json!({"command": command, "output": "x", "duration": duration}),
                )),
                4 => Some((
                    "afterMCPExecution",
                    json!({"tool_name": format!("look_{number}"), "tool_input": inner,
                        "result_json": "{\"isError\":false}", "duration": duration}),
                )),
                5 => Some((
                    "afterFileEdit",
                    json!({"file_path": file, "edits": [{"old_string": "", "new_string": "a"}]}),
                )),
                _ => None,
            };
            if let Some((name, body)) = after.filter(|_| !fails && !hangs) {
                let at = ends - 10 * MS;
                self.send(at, name, who, actor.model, body);
                told.after = Some((name, at));
                told.after_has_run = kind != 5;
            }
        }
        self.now = ends;
        if fails {
            let body =
                json!({"error_message": "no", "failure_type": "error", "duration": duration});
            self.send(ends, "postToolUseFailure", who, actor.model, with(generic, body));
            told.post = Some(("postToolUseFailure", ends));
        } else if !hangs {
            let body = json!({"tool_output": "{}", "duration": duration});
            self.send(ends, "postToolUse", who, actor.model, with(generic, body));
            told.post = Some(("postToolUse", ends));
        }
        self.add(Thing::Call(told), Some(actor.thing));
    }

    /// Hands work to a child, as the IDE tells it.
    fn delegate(&mut self, actor: &Actor) {
        let parallel = self.flavor.crowded && actor.depth == 0 && self.dice.roll(3) == 0;
        let models: &[&'static str] =
            if parallel { &["composer-2.5-fast", "gpt-5.5-mini"] } else { &["composer-2.5-fast"] };
        let mut open = Vec::new();
        for &model in models {
            let number = self.next();
            let id = format!("call_{number}\nfc_{number}");
            let input = json!({"description": "d", "prompt": "look around",
                "subagent_type": "explore", "run_in_background": false});
            let body = json!({"tool_name": "Subagent", "tool_input": input, "tool_use_id": id});
            let who = (actor.conversation.clone(), actor.exec.clone());
            self.send(self.now, "preToolUse", (&who.0, &who.1), "", body);
            let pre = self.now;
            self.wait(100, 400);
            let start = self.now;
            let body = json!({"subagent_id": id, "tool_call_id": id, "subagent_type": "explore",
                "task": "look around", "parent_conversation_id": actor.conversation,
                "subagent_model": model, "is_parallel_worker": false});
            self.send(start, "subagentStart", (&who.0, &who.0), model, body);
            let task = Thing::Task {
                tool: "Subagent",
                agent: "explore",
                id: id.clone(),
                pre,
                stop: None,
                thought: None,
            };
            let task = self.add(task, Some(actor.thing));
            let agent = Thing::Agent { agent: "explore", id: id.clone(), start: None, stop: None };
            let agent = self.add(agent, Some(task));
            let conversation = format!("child-{number}-{}", actor.conversation);
            open.push((id, model, pre, start, task, agent, conversation));
            self.wait(10, 20);
        }
        self.wait(2_000, 8_000);
        for (_, model, _, _, _, agent, conversation) in &open {
            let mut child = Actor {
                generation: format!("gen-{conversation}"),
                exec: format!("gen-{conversation}"),
                conversation: conversation.clone(),
                model,
                thing: *agent,
                depth: actor.depth + 1,
            };
            // Something that names the child before anything else in it does.
            self.call(&child);
            self.wait(300, 900);
            for step in 0..self.dice.roll(4) {
                self.step(&mut child, step);
            }
        }
        self.wait(500, 10_000);
        for (id, model, pre, start, task, agent, _) in open {
            let stop = self.now;
            let run = (stop - start) / MS;
            let body = json!({"subagent_id": id, "subagent_type": "explore", "status": "completed",
                "duration_ms": run, "task": "look around", "summary": "ok",
                "parent_conversation_id": actor.conversation});
            let who = actor.conversation.clone();
            self.send(stop, "subagentStop", (&who, &who), model, body);
            self.things[task].0 = Thing::Task {
                tool: "Subagent",
                agent: "explore",
                id: id.clone(),
                pre,
                stop: Some(stop),
                thought: None,
            };
            self.things[agent].0 = Thing::Agent {
                agent: "explore",
                id,
                start: Some(start),
                stop: Some((stop, run * MS)),
            };
            self.wait(10, 20);
        }
    }

    /// Hands work to a child, as the CLI tells it: only the next thought of the parent ends it.
    fn delegate_on_the_cli(&mut self, actor: &Actor) {
        let number = self.next();
        let id = format!("toolu_{number}");
        let input = json!({"description": "d", "prompt": "look around",
            "subagent_type": "prober", "run_in_background": false});
        let body = json!({"tool_name": "Task", "tool_input": input, "tool_use_id": id});
        let pre = self.now;
        let who = (actor.conversation.clone(), actor.generation.clone());
        self.send(pre, "preToolUse", (&who.0, &who.1), "", body);
        let task = Thing::Task {
            tool: "Task",
            agent: "prober",
            id: id.clone(),
            pre,
            stop: None,
            thought: None,
        };
        let task = self.add(task, Some(actor.thing));
        self.wait(1_000, 5_000);
        let (start, id_of_agent) = (Some(self.now), String::new());
        let agent = Thing::Agent { agent: "subagent", id: id_of_agent, start, stop: None };
        let agent = self.add(agent, Some(task));
        let conversation = format!("child-{number}-{}", actor.conversation);
        let child = Actor {
            generation: format!("gen-{conversation}"),
            exec: conversation.clone(),
            conversation,
            model: "claude-4.5-sonnet-thinking",
            thing: agent,
            depth: 1,
        };
        self.think(&child, 0);
        for _ in 0..1 + self.dice.roll(3) {
            self.call(&child);
            self.wait(300, 900);
        }
        self.wait(2_000, 9_000);
        // Beyond every step of the turn itself: a step is a thought's key.
        self.think(actor, 100 + number);
        let at = self.hooks.last().map_or(self.now, |hook| hook.observed_at.0);
        self.things[task].0 =
            Thing::Task { tool: "Task", agent: "prober", id, pre, stop: None, thought: Some(at) };
    }
}

impl World {
    /// The kinds of hook the session holds.
    pub(crate) fn kinds(&self) -> BTreeSet<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    /// The session's hooks but for those of one kind.
    pub(crate) fn without(&self, lost: &str) -> Vec<Hook> {
        let hooks = self.hooks.iter().zip(&self.names);
        hooks.filter(|(_, name)| *name != lost).map(|(hook, _)| hook.clone()).collect()
    }

    /// The spans that should exist when hooks of the kind `lost` never arrive. This is the stated degradation:
    ///
    /// * what only the lost hook tells (a thought, a response, a compaction) is missing; everything else is there, below
    ///   the same parent or, if that is missing, below the next one up;
    /// * a time only the lost hook tells is not told; a duration in another hook still is;
    /// * on the CLI, without the pre of a delegating call nothing names the delegation, and the child is a session of its
    ///   own; in print mode, without thoughts, calls before the first delegation are a turn of their own.
    pub(crate) fn truth(&self, lost: Option<&str>) -> Truth {
        let mut truth = Truth::default();
        let mut index: Vec<Option<usize>> = vec![None; self.things.len()];
        let has = |name: &str| lost != Some(name);
        let split = self.split(lost);
        let mut early = None;
        // Parents come before children, but a session only after all of its turns.
        for (at, (thing, above)) in self.things.iter().enumerate() {
            let mut fact = Fact::default();
            match thing {
                Thing::Session { start, end } => {
                    fact.name = "cursor.session".to_owned();
                    if lost.is_none() {
                        (fact.start, fact.end) = (Some(*start), Some(*end));
                    }
                }
                Thing::Turn { prompt, stop, response, tokens } => {
                    let is_call =
                        |(thing, _): &_| matches!(thing, Thing::Call(_) | Thing::Task { .. });
                    if self.surface == Surface::Print
                        && !has("afterAgentThought")
                        && split.is_none()
                        && !self.things.iter().any(is_call)
                    {
                        continue;
                    }
                    fact.name = "invoke_agent cursor".to_owned();
                    fact.start = match self.surface {
                        Surface::Print => {
                            split.or(self.first_thought().filter(|_| has("afterAgentThought")))
                        }
                        _ => prompt.filter(|_| has("beforeSubmitPrompt")),
                    };
                    fact.end = stop.filter(|_| has("stop"));
                    let told = has("stop") || (*response && has("afterAgentResponse"));
                    fact.tokens = tokens.filter(|_| told);
                }
                Thing::Thought { at, run } => {
                    if !has("afterAgentThought") {
                        continue;
                    }
                    fact.name = "agent_thought".to_owned();
                    (fact.start, fact.end) = (Some(at - run), Some(*at));
                }
                Thing::Response { at } => {
                    if !has("afterAgentResponse") {
                        continue;
                    }
                    fact.name = "chat gpt-5.5-medium".to_owned();
                    fact.end = Some(*at);
                }
                Thing::Compaction { at } => {
                    if !has("preCompact") {
                        continue;
                    }
                    fact.name = "context_compaction".to_owned();
                    (fact.start, fact.end) = (Some(*at), Some(*at));
                }
                Thing::Call(told) => match told.fact(lost) {
                    Some(told) => fact = told,
                    None => continue,
                },
                Thing::Task { tool, agent, id, pre, stop, thought } => {
                    if !has("preToolUse") {
                        continue;
                    }
                    fact.name = format!("execute_tool {tool} {agent}");
                    fact.id = Some(id.escape_debug().to_string());
                    fact.start = Some(*pre);
                    let stop = stop.filter(|_| has("subagentStop"));
                    fact.end = stop.or(thought.filter(|_| has("afterAgentThought")));
                }
                Thing::Agent { agent, id, start, stop } => {
                    let on_the_cli = id.is_empty();
                    if on_the_cli {
                        // It begins with a thought.
                        fact.start = start.filter(|_| has("afterAgentThought"));
                    }
                    fact.name = format!("invoke_agent {agent}");
                    if on_the_cli && !has("preToolUse") {
                        // Nobody names the child's parent: a session and a turn of its own.
                        let session = Fact { name: "cursor.session".to_owned(), ..Fact::default() };
                        truth.facts.push(session);
                        fact.name = "invoke_agent cursor".to_owned();
                        index[at] = Some(truth.facts.len());
                        truth.facts.push(fact);
                        continue;
                    }
                    if !on_the_cli {
                        fact.id = Some(id.escape_debug().to_string());
                        let (stop, run) = stop.filter(|_| has("subagentStop")).unzip();
                        fact.end = stop;
                        let began = stop.zip(run).map(|(stop, run)| stop - run);
                        fact.start = began.or(start.filter(|_| has("subagentStart")));
                    }
                }
            }
            fact.parent = self.above(*above, &index);
            let is_early = |until: i64| self.first(at).is_some_and(|first| first < until);
            if fact.parent.is_some_and(|parent| truth.facts[parent].parent.is_none())
                && fact.parent == index[self.turn()]
                && split.is_some_and(is_early)
            {
                let turn = *early.get_or_insert_with(|| {
                    let name = "invoke_agent cursor".to_owned();
                    truth.facts.push(Fact { name, ..Fact::default() });
                    truth.facts.len() - 1
                });
                fact.parent = Some(turn);
            }
            index[at] = Some(truth.facts.len());
            truth.facts.push(fact);
        }
        truth
    }

    /// The nearest thing above that has a span.
    fn above(&self, mut above: Option<usize>, index: &[Option<usize>]) -> Option<usize> {
        while let Some(at) = above {
            if let Some(fact) = index[at] {
                return Some(fact);
            }
            above = self.things[at].1;
        }
        None
    }

    fn turn(&self) -> usize {
        let is_turn = |(thing, _): &(Thing, Option<usize>)| matches!(thing, Thing::Turn { .. });
        self.things.iter().position(is_turn).unwrap_or_default()
    }

    /// In print mode a turn begins with a thought.
    fn first_thought(&self) -> Option<i64> {
        self.things.iter().find_map(|(thing, _)| match thing {
            Thing::Thought { at, run } => Some(at - run),
            _ => None,
        })
    }

    /// In print mode without thoughts, when the first hook comes that names the turn.
    fn split(&self, lost: Option<&str>) -> Option<i64> {
        if self.surface != Surface::Print || lost != Some("afterAgentThought") {
            return None;
        }
        let named = self.hooks.iter().filter(|hook| {
            let body: Value = serde_json::from_slice(&hook.body).unwrap();
            let generation = body["generation_id"].as_str().unwrap_or_default();
            body["hook_event_name"] != "afterAgentThought" && generation.starts_with("turn-")
        });
        named.map(|hook| hook.observed_at.0).min()
    }

    /// When the first hook of a call came.
    fn first(&self, at: usize) -> Option<i64> {
        match &self.things[at].0 {
            Thing::Call(told) => Some(told.pre),
            _ => None,
        }
    }
}

impl Told {
    /// The call's span, as far as the hooks that are left tell of it.
    fn fact(&self, lost: Option<&str>) -> Option<Fact> {
        let has = |hook: &(&'static str, i64)| lost != Some(hook.0);
        let pre = Some(self.pre).filter(|_| lost != Some("preToolUse"));
        let before = self.before.filter(has);
        let after = self.after.filter(has);
        let post = self.post.filter(has);
        if pre.is_none() && before.is_none() && after.is_none() && post.is_none() {
            return None;
        }
        let named = pre.is_some() || post.is_some();
        let read = before.filter(|hook| hook.0 == "beforeReadFile").map(|(_, at)| at);
        let opened = pre.or(before.filter(|hook| hook.0 != "beforeReadFile").map(|(_, at)| at));
        let end = post.or(after).map(|(_, at)| at);
        let has_run = post.is_some() || (after.is_some() && self.after_has_run);
        let began = end.filter(|_| has_run).map(|end| end - self.run);
        let start = match (opened, began) {
            (Some(opened), Some(began)) => Some(opened.max(began)),
            (opened, began) => opened.or(began),
        };
        Some(Fact {
            name: if named { self.name.clone() } else { self.bare.clone() },
            id: named.then(|| self.id.escape_debug().to_string()),
            start: start.or(read),
            end,
            ..Fact::default()
        })
    }
}
