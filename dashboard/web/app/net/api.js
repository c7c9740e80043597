// Calls the API. Throws a problem as the server describes it, so that a page can say what to do.
/** @import { Answer, PostAnswer } from "../../types/answers" */
import { door } from "./door.js";
import { broken, Problem } from "./problem.js";

export { Problem };

/**
 * The answer of `GET /api/v1/{path}`. Its type follows from the path.
 * @template {string} const P
 * @param {P} path @param {{ signal?: AbortSignal }} [options] @returns {Promise<Answer<P>>}
 */
export async function get(path, { signal } = {}) {
  return answer(await attempt("GET", `/api/v1/${path}`, "", signal));
}

/**
 * The answer of `POST /api/v1/{path}`.
 * @template {string} const P
 * @param {P} path @param {unknown} body @returns {Promise<PostAnswer<P>>}
 */
export async function post(path, body) {
  return answer(await attempt("POST", `/api/v1/${path}`, JSON.stringify(body)));
}

/** The body of `GET /api/v1/{path}`, as it comes. @param {string} path @param {AbortSignal} signal */
export async function stream(path, signal) {
  const response = await attempt("GET", `/api/v1/${path}`, "", signal);
  if (!response.ok || !response.body) throw new Problem(response.status, {});
  return response.body;
}

/** @param {string} method @param {string} target @param {string} body @param {AbortSignal} [signal] @returns {Promise<Response>} */
async function attempt(method, target, body, signal, again = true) {
  await door.enter();
  signal?.throwIfAborted();
  const signed = door.sign(method, target, body);
  /** @type {Record<string, string>} */
  const headers = signed ? { Authorization: `Hookspan ${signed.text}` } : {};
  if (method === "POST") headers["Content-Type"] = "application/json";
  /** @type {Response} */
  let response;
  try {
    response = await fetch(target, { method, headers, signal, body: method === "POST" ? body : undefined, credentials: "omit", redirect: "error" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    door.doubt();
    throw broken();
  }
  if (!signed || signed.proves(response)) return response;
  // The collector was restarted, or another program answers.
  if (response.status === 401 && again) {
    door.lost();
    return attempt(method, target, body, signal, false);
  }
  door.doubt();
  if (response.ok) throw broken();
  return response;
}

/** @param {Response} response */
async function answer(response) {
  const body = await response.json().catch(() => null);
  if (!response.ok) throw new Problem(response.status, body ?? {});
  // The answer is incomplete: the page is being left, or the collector stopped.
  if (body === null) throw broken();
  return body;
}

/** Downloads a file by a link that is signed for one request. @param {string} path */
export async function save(path) {
  const link = document.createElement("a");
  link.href = await door.link(`/api/v1/${path}`);
  link.download = "";
  link.click();
}

/** Path segment of an id. @param {string | number} id */
export const enc = (id) => encodeURIComponent(id);
