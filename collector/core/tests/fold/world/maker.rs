//! Makes the parts of a session in order: turns, steps, thoughts.

use hookspan_core::{Hook, Timestamp, Tokens};
use serde_json::{Value, json};

use super::{Actor, MS, Maker, Surface, Thing};

/// One folder in all the spellings that hooks use. The parent of a conversation must not depend on the spelling.
const ROOTS: [&[&str]; 5] = [
    &["/w/app"],
    &["/w/app/"],
    &["file:///w/app"],
    &["vscode-remote://ssh-remote+forge/w/app", "/w/other"],
    &["/w/app", "/w/app-two"],
];

impl Maker {
    pub(super) fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    pub(super) fn wait(&mut self, low: i64, high: i64) {
        self.now += self.dice.between(low, high) * MS;
    }

    pub(super) fn send(&mut self, at: i64, name: &str, who: (&str, &str), model: &str, own: Value) {
        let (conversation, generation) = who;
        let version = if self.surface == Surface::Ide { "3.18.25" } else { "2026.07.23-e383d2b" };
        let mut body = json!({
            "conversation_id": conversation, "generation_id": generation, "model": model,
            "session_id": conversation, "hook_event_name": name, "cursor_version": version,
            "workspace_roots": ROOTS[self.hooks.len() % ROOTS.len()], "transcript_path": null,
        });
        if let (Some(body), Value::Object(own)) = (body.as_object_mut(), own) {
            body.extend(own);
            self.disturb(body, conversation);
        }
        self.names.push(name.to_owned());
        self.hooks.push(Hook {
            seq: self.hooks.len() as u64 + 1,
            observed_at: Timestamp(at),
            body: body.to_string().into_bytes(),
            ..Hook::default()
        });
    }

    pub(super) fn add(&mut self, thing: Thing, parent: Option<usize>) -> usize {
        self.things.push((thing, parent));
        self.things.len() - 1
    }

    pub(super) fn session(&mut self) {
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

    /// Makes one turn. Returns the time of its last hook.
    pub(super) fn turn(&mut self, root: &str, index: u64) -> i64 {
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
                input: Some(input),
                output: Some(self.dice.roll(900)),
                cache_read: Some(input / 2),
                cache_write: Some(input / 4),
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
        let is_odd = self.flavor.odd;
        let outlives = is_odd && self.surface == Surface::Ide && self.dice.roll(3) == 0;
        let outliving = outlives.then(|| self.hand_over(&own));
        let responds = self.dice.roll(5) > 0;
        let text = format!("answer {index}");
        if responds {
            self.wait(300, 4_000);
            let body = with(json!({"text": text}));
            self.send(self.now, "afterAgentResponse", (&conversation, &generation), model, body);
            self.add(Thing::Response { at: self.now }, Some(thing));
            if is_odd && tokens.is_some() && self.dice.roll(3) == 0 {
                // The same response again, but without tokens.
                self.wait(3, 20);
                let body = json!({"text": text});
                let who = (conversation.as_str(), generation.as_str());
                self.send(self.now, "afterAgentResponse", who, model, body);
                self.note_again();
            }
            self.wait(40, 60);
        } else {
            self.wait(300, 500);
        }
        let status = if self.dice.roll(6) == 0 { "aborted" } else { "completed" };
        let said = if is_odd && responds { 1 + self.dice.roll(2) } else { 2 };
        let body = json!({"status": status, "loop_count": 0});
        // The response has the counts, too.
        let body = if said == 1 { body } else { with(body) };
        self.send(self.now, "stop", (&conversation, &generation), model, body);
        last = last.max(self.now);
        self.things[thing].0 =
            Thing::Turn { prompt: prompted, stop: Some(self.now), response: responds, tokens };
        if let Some(outliving) = outliving {
            self.hand_back(outliving);
            last = self.now;
        }
        last
    }

    pub(super) fn step(&mut self, actor: &mut Actor, step: u64) {
        match self.dice.roll(if actor.depth < 3 { 14 } else { 11 }) {
            0 => drop(self.think(actor, step)),
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
                // The calls run in parallel: all begin before any ends.
                let begun = self.now;
                let mut latest = begun;
                self.serial = false;
                for at in 0..2 + self.dice.roll(3) as i64 {
                    self.now = begun + at * 5 * MS;
                    self.call(actor);
                    latest = latest.max(self.now);
                }
                self.now = latest;
                self.serial = true;
            }
            _ => self.call(actor),
        }
        self.wait(300, 2_000);
    }

    /// Makes a thought. Returns the time of its hook.
    pub(super) fn think(&mut self, actor: &Actor, step: u64) -> i64 {
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
        let at = self.now;
        self.send(at, "afterAgentThought", who, actor.model, body.clone());
        self.add(Thing::Thought { at, run }, Some(actor.thing));
        if self.flavor.odd && !suffix.is_empty() && self.dice.roll(2) == 0 {
            // The same thought again, but without its step.
            self.wait(3, 20);
            let who = (actor.conversation.as_str(), actor.generation.as_str());
            self.send(self.now, "afterAgentThought", who, actor.model, body);
            self.note_again();
        }
        self.wait(300, 600);
        at
    }
}
