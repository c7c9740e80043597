// What people add to a session: a star, tags and a note.
/** @import { Marks as Mark } from "../../types/answers" */
import { visible } from "../format/text.js";
import { enc, post } from "../net/api.js";
import { html, useState } from "./html.js";
import { notify } from "./notify.js";

/** @typedef {{ id: string, marks: Mark, done: (marks: Mark) => unknown }} Props */

/** Changes the marks of a session. @param {string} id @param {object} change @param {Props["done"]} done */
export function mark(id, change, done) {
  post(`sessions/${enc(id)}/marks`, change).then(done, (error) => notify(error.detail ?? error.message));
}

/** @param {Props} props */
export function Star({ id, marks, done }) {
  return html`<button type="button" class="star" aria-label="star" title="star (*)" aria-pressed=${marks.starred} onClick=${() => mark(id, { starred: !marks.starred }, done)}>${marks.starred ? "★" : "☆"}</button>`;
}

/** A tag that leads to the sessions with it. @param {{ tag: string }} props */
export function Tag({ tag }) {
  return html`<a class="blurry" href=${`/sessions?tag=${enc(tag)}`}>#${visible(tag)}</a>`;
}

/** All marks of one session, to read and to change. @param {Props} props */
export function Marks({ id, marks, done }) {
  const [writing, setWriting] = useState(false);
  /** @param {Event} event @param {string} name */
  const typed = (event, name) => {
    event.preventDefault();
    const field = /** @type {HTMLInputElement} */ (/** @type {HTMLFormElement} */ (event.currentTarget).elements.namedItem(name));
    return field.value.trim();
  };
  /** @param {SubmitEvent} event */
  const add = (event) => {
    const form = /** @type {HTMLFormElement} */ (event.currentTarget);
    const tag = typed(event, "tag");
    if (tag) mark(id, { add_tags: [tag.replace(/^#/, "")] }, (now) => { form.reset(); done(now); });
  };
  /** @param {SubmitEvent} event */
  const keep = (event) => mark(id, { note: typed(event, "note") }, (now) => { setWriting(false); done(now); });
  return html`<span class="marks"><${Star} id=${id} marks=${marks} done=${done} />
    ${marks.tags.map((tag) => html`<span class="chip" key=${tag}><${Tag} tag=${tag} /> <button type="button" class="link" aria-label=${`remove the tag ${visible(tag)}`} onClick=${() => mark(id, { remove_tags: [tag] }, done)}>✕</button></span>`)}
    <form onSubmit=${add}><input name="tag" size="5" maxLength="40" pattern='[^\s,"]+' title="one word" placeholder="+ tag" aria-label="Add a tag" autocomplete="off" /></form>
    <button type="button" class="link blurry" aria-expanded=${writing} title=${visible(marks.note)} onClick=${() => setWriting(!writing)}>${marks.note ? `✎ ${visible(marks.note.split("\n")[0].slice(0, 40))}` : "+ note"}</button>
    ${writing && html`<form class="note card" onSubmit=${keep}><textarea name="note" rows="5" maxLength="2000" aria-label="Note" value=${marks.note}></textarea><button>save</button></form>`}</span>`;
}
