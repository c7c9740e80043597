// The real collector with a state directory of its own, for tests of the pages, the speed script and the pictures.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const root = new URL("../../../../", import.meta.url);
/** The program: HOOKSPAN_BIN, else the debug build, which reads the pages from this folder. */
export const PROGRAM = process.env.HOOKSPAN_BIN ?? fileURLToPath(new URL("target/debug/hookspan", root));
/** A recorded session of the project's own. */
export const RECORDED = readFileSync(new URL("tests/fixtures/ide-one-subagent.jsonl", root), "utf8");

/** Why there is no collector, or null. */
export function noCollector() {
  return existsSync(PROGRAM) ? null : `there is no ${PROGRAM}: cargo build, or set HOOKSPAN_BIN`;
}

export class Collector {
  constructor() {
    this.dir = mkdtempSync(join(tmpdir(), "hookspan-ui-"));
    this.port = 0;
  }

  /** Writes its configuration file. */
  configure(text) {
    const folder = join(this.dir, "config", "hookspan");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "config.toml"), text, { mode: 0o600 });
    return this;
  }

  /** Environment without anything of the person's own. */
  get env() {
    return { PATH: process.env.PATH, HOME: this.dir, HOOKSPAN_DIR: join(this.dir, "state"), XDG_CONFIG_HOME: join(this.dir, "config") };
  }

  /** Starts serving; the address stays the same over a restart. */
  async start() {
    this.child = spawn(PROGRAM, ["serve", "--listen", `127.0.0.1:${this.port}`], { env: this.env, stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    this.child.stderr.on("data", (data) => { said += data; });
    this.base = await new Promise((resolve, reject) => {
      this.child.once("error", reject);
      this.child.once("exit", (code) => reject(new Error(`hookspan ended with ${code}: ${said}`)));
      createInterface({ input: this.child.stdout }).once("line", resolve);
    });
    this.port = Number(new URL(this.base).port);
    this.base = new URL(this.base).origin;
    return this;
  }

  /** An address that signs one browser in, once. */
  get login() {
    return execFileSync(PROGRAM, ["open", "--print"], { env: this.env, encoding: "utf8" }).trim();
  }

  /** Stops it the way a person does, and waits. */
  async stop() {
    const { child } = this;
    if (!child || child.exitCode !== null) return;
    const ended = new Promise((resolve) => { child.once("close", resolve); });
    child.kill("SIGTERM");
    await ended;
  }

  /** Takes hooks in: JSON Lines, as they would come. Works while it serves and while it does not. */
  async take(lines) {
    const child = spawn(PROGRAM, ["import", "--json", "-"], { env: this.env, stdio: ["pipe", "pipe", "pipe"] });
    let out = "";
    child.stdout.on("data", (data) => { out += data; });
    child.stderr.on("data", (data) => { out += data; });
    child.stdin.end(lines);
    const code = await new Promise((resolve) => { child.once("close", resolve); });
    if (code !== 0) throw new Error(`import ended with ${code}: ${out}`);
    return JSON.parse(out);
  }

  async close() {
    await this.stop();
    rmSync(this.dir, { recursive: true, force: true });
  }
}
