// Asking the API. A problem is thrown as it came, so that a page can say what to do.

export class Problem extends Error {
  constructor(status, body) {
    super(body.title ?? `status ${status}`);
    this.status = status;
    this.detail = body.detail ?? "";
    this.hint = body.hint ?? "";
  }
}

export async function get(path, { signal } = {}) {
  return answer(await attempt(`/api/v1/${path}`, { signal }));
}

export async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  return answer(await attempt(`/api/v1/${path}`, { method: "POST", headers, body: JSON.stringify(body) }));
}

async function attempt(url, options) {
  try {
    return await fetch(url, { ...options, credentials: "same-origin", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw broken();
  }
}

function broken() {
  return new Problem(0, { title: "no answer", detail: "hookspan is not running, or the connection broke", hint: "hookspan serve" });
}

async function answer(response) {
  const body = await response.json().catch(() => null);
  if (!response.ok) throw new Problem(response.status, body ?? {});
  // Cut off: the page is being left, or the collector stopped in the middle.
  if (body === null) throw broken();
  return body;
}

/** Path segment of an id. */
export const enc = encodeURIComponent;
