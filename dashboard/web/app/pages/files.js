// Files that agents read and changed in a period.
/** @import { FileRow } from "../../types/answers" */
/** @import { PageProps } from "../../types/app" */
import { html, useLayoutEffect, useRef } from "../ui/html.js";
import { count, plural } from "../format/quantity.js";
import { date } from "../format/time.js";
import { visible } from "../format/text.js";
import { useRows } from "../ui/chosen-row.js";
import { Age } from "../ui/clock.js";
import { iso, saveCsv } from "../ui/csv.js";
import { Field, onText, SortHead, useQuery } from "../ui/fields.js";
import { bind } from "../ui/keys.js";
import { Lines } from "../ui/lines.js";
import { Page, useTitle } from "../ui/page.js";
import { Saved } from "../ui/saved.js";
import { useRange } from "../ui/range.js";
import { useAnswer } from "../ui/use-answer.js";
import { sheet } from "../ui/sheet.js";

await sheet("pages");

/** @param {PageProps} props */
export function Files({ query, go }) {
  const { params, set } = useQuery("/files", query, go);
  const range = useRange({ params, set }, { first: 30 });
  const sort = params.get("sort") ?? "last";
  const asked = new URLSearchParams({ ...range.asked, sort });
  for (const name of ["project", "q", "session"]) if (params.get(name)) asked.set(name, params.get(name) ?? "");
  const { data, error, reload } = useAnswer(`files?${asked}`, (event) => event === "spans" || event === "resync", 3_000);
  const filter = useRef(/** @type {HTMLInputElement | null} */ (null));
  const rows = data?.items ?? [];
  const { at, list, keys } = useRows(rows.length);
  useTitle("Files");
  useLayoutEffect(() => bind({
    ...keys,
    Enter: () => rows[at] && go(withRange(rows[at].url, params)), "/": () => filter.current?.focus(),
  }), [data, at, query]);
  /** @param {string} name @param {string} [label] */
  const head = (name, label = name) => html`<${SortHead} label=${label} now=${sort === name ? "desc" : null} sort=${() => set("sort", name === "last" ? "" : name)} />`;
  const tools = html`${range.control}<${Field} name="project" params=${params} set=${set} />
    <input class="grow" ref=${filter} type="search" placeholder="/ part of a path" aria-label="Part of a path" value=${params.get("q") ?? ""} onChange=${onText((text) => set("q", text.trim()))} />
    <button type="button" disabled=${!rows.length} onClick=${() => save(rows)}>CSV</button>`;
  return html`<${Page} title="Files" tools=${tools} error=${error} reload=${reload} ready=${data}>${() => data && html`<${Saved} page="files" params=${params} />
    <p class="dim found-line" role="status"><span class="num">${plural(data.total, "file")}</span>${data.total > rows.length && ` · the first ${rows.length} in this order`}${data.since_us !== null && html` · <span class="warn">the newest touches only, since ${date(data.since_us)}: choose a shorter period</span>`}</p>
    ${rows.length === 0 ? html`<p class="dim pad-y">No agent read or changed a file that matches in this period. ${range.days < 365 && html`<button type="button" class="link" onClick=${() => set({ days: "365", from_us: "", to_us: "" })}>Show a year</button>`}</p>`
    : html`<table class="list numbers files" ref=${list}><thead><tr><th class="wide">file</th><th>project</th>${head("reads")}${head("edits")}${head("lines")}${head("errors", "failed")}${head("sessions")}${head("last")}</tr></thead>
      <tbody>${rows.map((row, i) => html`<${Row} key=${row.url} row=${row} chosen=${i === at} url=${withRange(row.url, params)} />`)}</tbody></table>`}`}<//>`;
}

/** An address with the period of this page. @param {string} url @param {URLSearchParams} params */
export function withRange(url, params) {
  const kept = ["days", "from_us", "to_us"].flatMap((name) => (params.get(name) ? [`${name}=${params.get(name)}`] : []));
  return [url, ...kept].join("&");
}

/** @param {{ row: FileRow, chosen: boolean, url: string }} props */
function Row({ row, chosen, url }) {
  const at = row.path.lastIndexOf("/") + 1;
  return html`<tr class=${chosen ? "chosen" : ""}>
    <td class="wide"><a class="blurry" href=${url}><span class="dim">${visible(row.path.slice(0, at))}</span>${visible(row.path.slice(at))}</a></td>
    <td class="dim blurry">${visible(row.project ?? "outside")}</td>
    <td class="r num">${row.reads ? count(row.reads) : html`<span class="dim">–</span>`}</td>
    <td class="r num">${row.edits ? count(row.edits) : html`<span class="dim">–</span>`}</td>
    <td class="r num"><${Lines} of=${row} /></td>
    <td class=${`r num ${row.errors ? "bad" : "dim"}`}>${row.errors || "–"}</td>
    <td class="r num">${row.sessions}</td><td class="r dim"><${Age} since=${row.last_us} /></td></tr>`;
}

/** @param {FileRow[]} rows */
function save(rows) {
  saveCsv("files", ["project", "path", "reads", "edits", "lines added", "lines removed", "failed", "sessions", "last"],
    rows.map((row) => [row.project, row.path, row.reads, row.edits, row.added, row.removed, row.errors, row.sessions, iso(row.last_us)]));
}
