// Asks the API. A problem is thrown as the server describes it, so that a page can say what to do.
/** @import { Answer, PostAnswer } from "../../types/answers" */

export class Problem extends Error {
  /** @param {number} status 0 when there was no answer @param {{ title?: string, detail?: string, hint?: string }} body */
  constructor(status, body) {
    super(body.title ?? `status ${status}`);
    this.status = status;
    this.detail = body.detail ?? "";
    this.hint = body.hint ?? "";
  }
}

/**
 * The answer of `GET /api/v1/{path}`; its type follows from the path.
 * @template {string} const P
 * @param {P} path @param {{ signal?: AbortSignal }} [options] @returns {Promise<Answer<P>>}
 */
export async function get(path, { signal } = {}) {
  return answer(await attempt(`/api/v1/${path}`, { signal }));
}

/**
 * The answer of `POST /api/v1/{path}`.
 * @template {string} const P
 * @param {P} path @param {unknown} body @returns {Promise<PostAnswer<P>>}
 */
export async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  return answer(await attempt(`/api/v1/${path}`, { method: "POST", headers, body: JSON.stringify(body) }));
}

/** @param {string} url @param {RequestInit} options */
async function attempt(url, options) {
  try {
    return await fetch(url, { ...options, credentials: "same-origin", redirect: "error" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw broken();
  }
}

function broken() {
  return new Problem(0, { title: "no answer", detail: "hookspan is not running, or the connection broke", hint: "hookspan serve" });
}

/** @param {Response} response */
async function answer(response) {
  const body = await response.json().catch(() => null);
  if (!response.ok) throw new Problem(response.status, body ?? {});
  // The answer was cut off: the page is being left, or the collector stopped while it answered.
  if (body === null) throw broken();
  return body;
}

/** Path segment of an id. @param {string | number} id */
export const enc = (id) => encodeURIComponent(id);
