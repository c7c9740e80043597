// Tests the tree that is made from an agent's Markdown: what is formatted, what stays text, and that hostile text costs
// little.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { entities, markdown } from "../../app/conversation/markdown.js";

/** A tree as short text: each tag with its content. */
const short = (blocks) => blocks.map((one) => (typeof one === "string" ? one : `<${[one.tag, one.name, one.href, one.start].filter(Boolean).join(" ")}>${short(one.kids)}</>`)).join("");
const all = (blocks) => blocks.flatMap((one) => (typeof one === "string" ? [] : [one, ...all(one.kids)]));

test("blocks and inline text become nodes of known tags", () => {
  for (const [text, tree] of [
    ["# Hi *you*", "<p md-h md-h1>Hi <em>you</></>"],
    ["a **b** `c` ~~d~~", "<p>a <strong>b</> <code>c</> <del>d</></>"],
    ["- a\n- b", "<ul><li>a</><li>b</></>"],
    ["3. a\n4. b", "<ol 3><li>a</><li>b</></>"],
    ["- [x] done\n- [ ] not", "<ul><li>☑ done</><li>☐ not</></>"],
    ["> a\n> b", "<blockquote><p>a\nb</></>"],
    ["```rust\nfn a() {}\n```", "<pre>fn a() {}</>"],
    ["a\n\n---", "<p>a</><hr></>"],
    ["|a|b|\n|-|-:|\n|1|2|", "<table><thead><tr><th>a</><th r>b</></></><tbody><tr><td>1</><td r>2</></></></>"],
    ["a<br>b", "<p>a<br></>b</>"],
    ["\\*a\\* &lt;b&gt; &#8594; &unknown;", "<p>*a* <b> → &unknown;</>"],
  ]) assert.equal(short(markdown(text)), tree, text);
});

test("links say where they lead, and only web addresses lead anywhere", () => {
  const href = "https" + "://docs.example/a";
  assert.equal(short(markdown(`[doc](${href})`)), `<p><a ${href}>doc</><span md-address> (${href})</></>`);
  assert.equal(short(markdown(href)), `<p><a ${href}>${href}</></>`);
  assert.equal(short(markdown(`[${href}](${"https"}://evil.example/)`)).includes("(https://evil.example/)"), true, "a link that shows another address shows its own, too");
  for (const address of ["javascript:alert(1)", "JAVASCRIPT:alert(1)", "java&#115;cript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "/a/b", "mailto:a@b.example", "blob:x", "//evil.example"]) {
    const blocks = markdown(`[x](${address})`);
    assert.equal(all(blocks).filter((one) => one.tag === "a").length, 0, address);
    assert.ok(short(blocks).includes("x"), address);
  }
});

test("an image is text, and so is HTML", () => {
  assert.equal(short(markdown("![pixel](https://evil.example/p.png)")), "<p><span md-image>image: pixel (https://evil.example/p.png)</></>");
  const html = "<script>alert(1)</script>\n\n<img src=x onerror=alert(1)> and <b>bold</b>";
  const blocks = markdown(html);
  assert.deepEqual([...new Set(all(blocks).map((one) => one.tag))], ["p"]);
  assert.ok(short(blocks).startsWith("<p><script>alert(1)</script></><p><img") && short(blocks).includes("<img src=x onerror=alert(1)>"));
});

test("a character reference gives at most one character", () => {
  assert.equal(entities("&amp;lt;"), "&lt;");
  assert.equal(entities("&#0;&#xD800;&#x110000;"), "\uFFFD\uFFFD\uFFFD");
  assert.equal(entities("&constructor; &toString;"), "&constructor; &toString;");
});

const CORPUS = JSON.parse(readFileSync(new URL("../corpus/markdown.json", import.meta.url), "utf8"));

test("hostile texts are read in bounded time and lose nothing that could mislead", () => {
  assert.ok(CORPUS.length >= 20);
  markdown("warm *up* `the` [code](https://a.example)");
  for (const { name, unit, times, last = "" } of CORPUS) {
    const text = unit.repeat(times) + last;
    const start = performance.now();
    const blocks = markdown(text);
    const ms = performance.now() - start;
    // The lexer alone takes seconds for some of these texts. The limit is generous, because the machine may be busy.
    assert.ok(ms < 400, `${name}: ${ms.toFixed(0)} ms`);
    assert.ok(all(blocks).length <= 3_100, `${name}: ${all(blocks).length} nodes`);
  }
});
