// All sessions, newest activity first. Filter and page are in the address.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { get } from "../api.js";
import { bind } from "../keys.js";
import { count, duration } from "../format.js";
import { visible } from "../text.js";
import { Age, Loading, State, Trouble, throttle, useAnswer, useLive } from "../ui.js";

const STATES = ["running", "tool_open", "your_turn", "errored", "done", "stale"];

export function Sessions({ query, go }) {
  const params = new URLSearchParams(query);
  const { data, error, reload } = useAnswer(`sessions?${params}`);
  const [rows, setRows] = useState(null);
  const [next, setNext] = useState(null);
  const [at, setAt] = useState(-1);
  const filter = useRef(null);
  const list = useRef(null);
  useEffect(() => { document.title = "Sessions · hookspan"; }, []);
  useEffect(() => {
    if (!data) return;
    setRows(data.items);
    setNext(data.next);
  }, [data]);
  const set = (name, value) => {
    const changed = new URLSearchParams(query);
    changed.delete("cursor");
    if (value) changed.set(name, value);
    else changed.delete(name);
    go(`/sessions${changed.size ? `?${changed}` : ""}`, { replace: true });
  };
  const refresh = useMemo(() => throttle(reload, 1_000), [query]);
  useLive((event, session) => {
    if (event === "resync") reload();
    if (event !== "session") return;
    setRows((old) => {
      const found = old?.some((row) => row.id === session.id);
      // A filtered list cannot tell by itself whether a session still belongs.
      if (!found || params.size) refresh();
      if (!found) return old;
      return old.map((row) => (row.id === session.id ? session : row)).sort((a, b) => b.last_us - a.last_us);
    });
  }, [query]);
  const more = async () => {
    const page = new URLSearchParams(query);
    page.set("cursor", next);
    const answer = await get(`sessions?${page}`);
    setRows((old) => [...old, ...answer.items.filter((item) => !old.some((row) => row.id === item.id))]);
    setNext(answer.next);
  };
  const move = (step) => {
    if (!rows?.length) return;
    const to = Math.max(0, Math.min(rows.length - 1, at + step));
    setAt(to);
    list.current?.querySelectorAll("tbody a")[to]?.focus();
  };
  useEffect(() => bind({
    j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1),
    Enter: () => rows?.[at] && go(rows[at].url),
    "/": () => filter.current?.focus(),
  }), [rows, at]);
  return html`<div class="page">
    <header class="bar"><h1>Sessions</h1>
      <form class="filters" role="search" onSubmit=${(e) => e.preventDefault()}>
        <label class="field">state
          <select value=${params.get("state") ?? ""} onChange=${(e) => set("state", e.target.value)}>
            <option value="">all</option>${STATES.map((s) => html`<option value=${s}>${s.replace("_", " ")}</option>`)}
          </select></label>
        <label class="field">project
          <input size="12" value=${params.get("project") ?? ""} onChange=${(e) => set("project", e.target.value)} /></label>
        <label class="field">model
          <input size="12" value=${params.get("model") ?? ""} onChange=${(e) => set("model", e.target.value)} /></label>
        <label class="field"><input type="checkbox" checked=${params.get("status") === "error"} onChange=${(e) => set("status", e.target.checked ? "error" : "")} /> with errors</label>
        <input class="grow" ref=${filter} type="search" placeholder="/ first prompt, project or id" aria-label="Filter by first prompt, project or id"
          value=${params.get("q") ?? ""} onChange=${(e) => set("q", e.target.value)} />
      </form></header>
    ${error && html`<${Trouble} error=${error} reload=${reload} />`}
    ${!rows && !error && html`<${Loading} />`}
    ${rows && !rows.length && html`<${Nothing} filtered=${params.size > 0} />`}
    ${rows?.length > 0 && html`<div class="scroll"><table class="list" ref=${list}>
      <thead><tr><th>state</th><th>project</th><th class="wide">first prompt</th><th>model</th><th class="r">turns</th><th class="r">calls</th>
        <th class="r">errors</th><th class="r">active / wall</th><th class="r">tokens in / out</th><th class="r">last</th></tr></thead>
      <tbody>${rows.map((row, i) => html`<${Row} key=${row.id} row=${row} chosen=${i === at} go=${go} />`)}</tbody>
    </table>${next && html`<button type="button" class="more" onClick=${more}>Older sessions</button>`}</div>`}
  </div>`;
}

function Row({ row, chosen, go }) {
  const open = (event) => {
    if (event.target.closest("a")) return;
    go(row.url);
  };
  return html`<tr class=${chosen ? "chosen" : ""} onClick=${open}>
    <td><${State} state=${row.state} /></td>
    <td class="blurry">${visible(row.project ?? "–")}</td>
    <td class="wide"><a href=${row.url} class="blurry">${visible(row.first_prompt ?? row.id)}</a>
      ${row.state === "errored" && row.last_error && html` <span class="bad">${visible(row.last_error)}</span>`}</td>
    <td class="dim">${visible(row.model ?? "–")}</td>
    <td class="r num">${row.turns}</td>
    <td class="r num">${row.calls}${row.subagents > 0 && html`<span class="dim" title="subagents"> +${row.subagents}</span>`}</td>
    <td class=${`r num ${row.errors ? "bad" : "dim"}`}>${row.errors || "–"}</td>
    <td class="r num">${duration(row.active_us)} <span class="dim">/ ${duration(row.wall_us)}</span></td>
    <td class="r num">${row.tokens ? html`${count(row.tokens.input)} <span class="dim">/ ${count(row.tokens.output)}</span>` : "–"}</td>
    <td class="r dim"><${Age} since=${row.last_us} /></td>
  </tr>`;
}

export function Nothing({ filtered }) {
  if (filtered) return html`<section class="card narrow"><h2>No session matches</h2><p>Take a filter away.</p></section>`;
  return html`<section class="card narrow"><h2>Waiting for the first hook</h2>
    <ol><li><code>hookspan install</code> attaches hookspan to Cursor's hooks</li><li>restart Cursor</li>
    <li>send a prompt: the session appears here without a reload</li></ol>
    <p class="dim"><code>hookspan doctor</code> checks each step.</p></section>`;
}
