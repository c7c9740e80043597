// A real collector with its own state directory, for tests of the pages, for the speed script and for the pictures.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const root = new URL("../../../../", import.meta.url);
/** The program: HOOKSPAN_BIN, otherwise the debug build, which serves the pages from this folder. */
export const PROGRAM = process.env.HOOKSPAN_BIN ?? fileURLToPath(new URL("target/debug/hookspan", root));
/** A recorded session from the project's fixtures. */
export const RECORDED = readFileSync(new URL("tests/fixtures/ide-one-subagent.jsonl", root), "utf8");

/** Why no collector can be started, or null. */
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

  /** An environment without the user's own variables. */
  get env() {
    return { PATH: process.env.PATH, HOME: this.dir, HOOKSPAN_DIR: join(this.dir, "state"), XDG_CONFIG_HOME: join(this.dir, "config") };
  }

  /** Starts the collector. After a restart it has the same address. */
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

  /** Stops the collector as a user does, and waits for its end. */
  async stop() {
    const { child } = this;
    if (!child || child.exitCode !== null) return;
    const ended = new Promise((resolve) => { child.once("close", resolve); });
    child.kill("SIGTERM");
    await ended;
  }

  /** Imports hooks as JSON Lines, whether or not the collector is running. */
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
