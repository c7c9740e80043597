// Makes hooks as Cursor sends them, for tests and pictures. The same arguments give the same lines.
import { readFileSync } from "node:fs";

/**
 * Texts that must stay text wherever they are shown: the corpus of the unit tests, and texts that could trick a page.
 */
export const HOSTILE = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(2)>",
  "\"><svg onload=alert(3)>",
  "javascript:alert(4)",
  "</script></style></title><b>bold</b>",
  "__proto__ constructor toString",
  "' OR 1=1; DROP TABLE span; --",
  "\" OR * NEAR(",
  ...JSON.parse(readFileSync(new URL("../corpus/ansi.json", import.meta.url), "utf8")).map((one) => one.input),
];

let made = 0;
const uuid = (seed) => `${(seed >>> 0).toString(16).padStart(8, "0")}-0000-4000-8000-${(made += 1).toString(16).padStart(12, "0")}`;

/** The hooks of one conversation, in the order of time. Times are milliseconds since the epoch. */
export class Talk {
  constructor({ at, project = "lighthouse", model = "gpt-5.5-medium", seed = 1 }) {
    Object.assign(this, { at, project, model, seed, lines: [], turns: 0, calls: 0 });
    this.id = uuid(seed);
  }

  hook(event, body = {}) {
    const common = {
      conversation_id: this.id, generation_id: this.generation ?? "", model: this.model, session_id: this.id, hook_event_name: event,
      cursor_version: "3.7.19", workspace_roots: [`/home/dev/src/${this.project}`], user_email: "dev@example.com", transcript_path: null,
    };
    this.lines.push({ at: this.at, text: JSON.stringify({ observed_at: new Date(this.at).toISOString(), event: { ...common, ...body } }) });
    return this;
  }

  wait(ms) {
    this.at += ms;
    return this;
  }

  start(prompt) {
    this.turns += 1;
    this.generation = uuid(this.seed);
    return this.hook("beforeSubmitPrompt", { composer_mode: "agent", prompt, attachments: [] });
  }

  think(ms, text = "What is asked, and what is there?") {
    return this.wait(ms).hook("afterAgentThought", { text, duration_ms: ms });
  }

  open(tool, input) {
    this.calls += 1;
    this.call = { tool_name: tool, tool_input: input, tool_use_id: `call_${this.id.slice(-6)}_${this.calls}` };
    return this.hook("preToolUse", this.call);
  }

  /** A call from start to end. If `failed` is given, it is the error message. */
  tool(tool, input, ms, { output = "{}", failed = null, wait = 0 } = {}) {
    this.open(tool, input).wait(ms + wait);
    if (failed) return this.hook("postToolUseFailure", { ...this.call, error_message: failed, failure_type: "error", is_interrupt: false, duration: ms });
    return this.hook("postToolUse", { ...this.call, tool_output: output, duration: ms });
  }

  shell(command, ms, { output = "", exit = 0, wait = 0 } = {}) {
    return this.tool("Shell", { command, cwd: "", timeout: 30_000 }, ms, { output: JSON.stringify({ output, exitCode: exit }), wait });
  }

  end(text = "Done.", tokens = { input_tokens: 31_000, output_tokens: 420, cache_read_tokens: 22_000, cache_write_tokens: 0 }) {
    return this.wait(1_800).hook("afterAgentResponse", { text, ...tokens }).wait(40).hook("stop", { status: "completed", loop_count: 0, ...tokens });
  }
}

/** The hooks of all talks in the order of time, in the form that `hookspan import` reads. */
export function jsonl(...talks) {
  return `${talks.flatMap((talk) => talk.lines).sort((a, b) => a.at - b.at).map(({ text }) => text).join("\n")}\n`;
}

/** A session in which every text that a user or a tool may choose is hostile. */
export function hostile(at) {
  const talk = new Talk({ at, project: "<b>evil</b>", model: "<i>model</i>", seed: 666 });
  for (const [i, text] of HOSTILE.entries()) {
    talk.wait(500).start(`${text} ${i}`).think(300, text);
    talk.shell(text, 200, { output: `${text}\n${text}`, exit: i % 2 });
    talk.tool("Read", { file_path: `/home/dev/src/${text}` }, 3, { output: JSON.stringify({ [text]: { [text]: text } }) });
    talk.tool("StrReplace", { file_path: `/home/dev/src/x/${i}.rs`, old_string: text, new_string: `${text}\n${text}` }, 4, i % 3 ? {} : { failed: text });
    talk.end(text);
  }
  return talk;
}

/** A long session of `turns` turns, each with about a hundred spans. */
export function long(at, turns, seed = 7) {
  const talk = new Talk({ at, project: "collector", seed });
  let state = seed;
  const random = (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % below;
  };
  const files = Array.from({ length: 160 }, (_, i) => `/home/dev/src/collector/src/part${i}.rs`);
  const commands = Array.from({ length: 60 }, (_, i) => `cargo test -p part${i}`);
  for (let turn = 0; turn < turns; turn += 1) {
    talk.start(`turn ${turn}: make part${random(160)} faster`);
    for (let k = 0; k < 98; k += 1) {
      const file = files[random(files.length)];
      const kind = random(10);
      if (kind < 3) talk.think(200 + random(900));
      else if (kind < 6) talk.tool("Read", { file_path: file }, 1 + random(6));
      else if (kind < 7) talk.tool("Grep", { pattern: "fn deliver", path: file }, 5 + random(60));
      else if (kind < 8) talk.tool("StrReplace", { file_path: file, old_string: "a", new_string: "b" }, 4 + random(9));
      else talk.shell(commands[random(commands.length)], 300 + random(9_000), { exit: random(20) === 0 ? 101 : 0, wait: random(4) === 0 ? random(4_000) : 0 });
      talk.wait(random(60));
    }
    talk.end().wait(random(3) ? 5_000 + random(40_000) : 200_000 + random(4_000_000));
  }
  return talk;
}
