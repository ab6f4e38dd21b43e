"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const get = (id) => document.getElementById(id);
function make(tag, cls, text) {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  if (text !== undefined) e.textContent = text;
  return e;
}
const count = (f, s) => f.diagnostics.reduce((n, d) => n + (d.severity === s), 0);
function draw(f, errors, warnings) {
  const e = make("details", "file");
  const head = make("summary");
  head.append(make("span", "path", f.path), make("span", f.status, f.why ? `${f.status} (${f.why})` : f.status),
    make("span", "n" + (errors ? " error" : " dim"), errors ? `${errors} left` : ""),
    make("span", "n" + (warnings ? " warning" : " dim"), warnings ? `${warnings} warned` : ""),
    make("span", "n dim", f.lines === undefined ? "" : `${f.lines} line${f.lines === 1 ? "" : "s"}`));
  e.append(head);
  e.addEventListener("toggle", () => {
    if (!e.open || e.childElementCount > 1) return;
    const rewrites = Object.entries(f.rewrites || {}).map(([k, n]) => `${k} ${n}`).join(", ");
    if (rewrites) e.append(make("p", "dim", `rewritten: ${rewrites}`));
    const list = make("ul");
    for (const text of f.done || []) list.append(make("li", "", text));
    for (const d of f.diagnostics) {
      const item = make("li");
      item.append(make("code", d.severity, `${d.line}:${d.column} ${d.code}`), " ", make("span", "", d.message));
      list.append(item);
    }
    if (!list.childElementCount) list.append(make("li", "dim", "nothing to tell"));
    e.append(list);
  });
  return e;
}
const rows = data.files.map((f) => ({
  f, e: null, errors: count(f, "error"), warnings: count(f, "warning"),
  words: (f.path + " " + f.diagnostics.map((d) => d.code + " " + d.message).join(" ")).toLowerCase(),
}));
const element = (r) => r.e || (r.e = draw(r.f, r.errors, r.warnings));
const page = 200;  // rows that are drawn at a time; more as they come into sight
let rest = [];
function more() {
  get("list").append(...rest.splice(0, page).map(element));
}
new IntersectionObserver((seen) => { if (seen.some((s) => s.isIntersecting)) more(); }, { rootMargin: "800px" }).observe(get("end"));
function show() {
  const text = get("text").value.toLowerCase(), status = get("status").value, severity = get("severity").value, order = get("order").value;
  const chosen = rows.filter((r) => (!text || r.words.includes(text)) && (!status || r.f.status === status) &&
    (!severity || (severity === "error" ? r.errors : r.warnings)));
  if (order !== "path") chosen.sort((a, b) => (b.f[order] || 0) - (a.f[order] || 0));
  rest = chosen.slice(page);
  get("list").replaceChildren(...chosen.slice(0, page).map(element));
  get("count").textContent = `${chosen.length} of ${rows.length}`;
}
let waiting = 0;
for (const id of ["text", "status", "severity", "order"]) get(id).addEventListener("input", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(show); });
for (const a of document.querySelectorAll("[data-code], [data-path]")) a.addEventListener("click", () => {
  get("text").value = (a.dataset.code || a.dataset.path).toLowerCase();
  get("status").value = get("severity").value = "";
  show();
  if (a.dataset.path) { const r = rows.find((r) => r.f.path === a.dataset.path); if (r) element(r).open = true; }
});
show();
