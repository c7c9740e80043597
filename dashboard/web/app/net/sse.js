// Reads a stream of server-sent events. An EventSource cannot sign its request.

/** @typedef {{ event: string, data: string, id: string | null }} Message */

/** Calls `take` for each event, until the stream ends. @param {ReadableStream<Uint8Array>} body @param {(message: Message) => unknown} take */
export async function readEvents(body, take) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new Parser(take);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    parser.push(decoder.decode(value, { stream: true }));
  }
}

/** Splits text into events. Text after the last empty line waits for more. */
export class Parser {
  /** @param {(message: Message) => unknown} take */
  constructor(take) {
    this.take = take;
    this.rest = "";
    this.event = "message";
    /** @type {string[]} */
    this.data = [];
    /** @type {string | null} */
    this.id = null;
  }

  /** @param {string} text */
  push(text) {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.line(line.endsWith("\r") ? line.slice(0, -1) : line);
  }

  /** @param {string} line */
  line(line) {
    if (line === "") {
      if (this.data.length > 0) this.take({ event: this.event, data: this.data.join("\n"), id: this.id });
      this.event = "message";
      this.data = [];
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.event = value;
    else if (field === "data") this.data.push(value);
    else if (field === "id" && !value.includes("\0")) this.id = value;
  }
}
