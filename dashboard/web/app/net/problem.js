// Errors on the way to an answer, as the server describes them.

export class Problem extends Error {
  /** @param {number} status 0 when there was no answer @param {{ title?: string, detail?: string, hint?: string }} body */
  constructor(status, body) {
    super(body.title ?? `status ${status}`);
    this.status = status;
    this.detail = body.detail ?? "";
    this.hint = body.hint ?? "";
  }
}

export function broken() {
  return new Problem(0, { title: "no answer", detail: "hookspan is not running, or the connection broke", hint: "hookspan serve" });
}
