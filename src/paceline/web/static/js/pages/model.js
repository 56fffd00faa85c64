// What a model says: formula, shares, and other expressions to use instead.
import { files, get, post } from "../api.js";
import { draw, colour, plain } from "../chart.js";
import { choose, empty, h, percent, problem, put, table, warning } from "../dom.js";
import { follow } from "../jobs.js";

export const noModel = () => empty(h("p", {}, "No model is in this folder yet."), h("p", {}, h("a", { href: "#/data" }, "Make one from a table"), " or with ", h("code", {}, "paceline fit DATA -o model.json"), "."));

export async function pick(body, query, isHere, page) {
  const known = await files("model");
  if (!isHere()) return null;
  if (!known.length) { put(body, noModel()); return null; }
  const file = query.get("file") || known[0];
  const options = known.includes(file) ? known : [file, ...known];
  const chooser = choose("Model", options, { value: file, id: "model-file",
    onchange: () => { location.hash = `#/${page}?${new URLSearchParams({ file: chooser.select.value })}`; } });
  const rest = h("div");
  put(body, chooser.element, rest);
  return { file, rest };
}

export async function show(body, query, isHere) {
  const picked = await pick(body, query, isHere, "model");
  if (!picked) return;
  const model = await get("/api/model", { file: picked.file });
  if (!isHere()) return;
  const shares = h("div", { class: "chart short" }), front = h("div");
  put(picked.rest,
    h("ul", { class: "plain quiet" }, model.facts.map((f) => h("li", {}, f))),
    h("h2", {}, "Formula"), formula(model.typeset, model.basis),
    model.form === "corrected" ? h("p", { class: "quiet small" }, "A correction that is no formula is added to this in predictions.") : null,
    h("details", {}, h("summary", {}, "As text, with the factors of levels"), h("pre", {}, model.formula)),
    h("p", {}, h("a", { href: `#/whatif?${new URLSearchParams({ file: picked.file })}` }, "Ask what if")),
    h("h2", {}, "Shares of the time"), model.shares.length ? shares : empty("This model does not say."),
    h("h2", {}, "Other expressions"), front,
    model.warnings.length ? [h("h2", {}, "What not to rely on"), model.warnings.map((w) => warning(w))] : null,
    model.notes.length ? h("details", {}, h("summary", {}, "Notes of the fit"), h("ul", { class: "plain small" }, model.notes.map((n) => h("li", {}, n)))) : null);
  if (model.shares.length) drawShares(shares, model.shares);
  showFront(front, model, picked.file, isHere);
}

function formula(summands, basis) {
  const factor = (f) => {
    if (f.levels) return h("span", { class: "group" }, `[${f.levels}]`);
    if (f.collective) return h("span", {}, "(1 − 1/", h("i", {}, f.collective), ")");
    return h("i", {}, f.name, f.power ? h("sup", {}, f.power.replace("-", "−")) : "");
  };
  const parts = summands.map((s, k) => h("span", { class: "summand" }, k ? "+ " : "t = ", s.coefficient.replace(/ us$/, " µs"),
    s.factors.map((f, i) => [i || s.coefficient ? " · " : "", factor(f)])));
  return h("div", { class: "formula", tabindex: "0", role: "math", "aria-label": "Formula of the time" }, parts.length ? parts : "t = 0 s",
    h("div", { class: "quiet small" }, basis));
}

function drawShares(target, shares) {
  const rows = [...shares].reverse();
  const room = target.clientWidth < 500 ? 22 : 60;
  const short = (text) => plain(text.length > room ? `${text.slice(0, room - 1)}…` : text);
  draw(target, [{ type: "bar", orientation: "h", x: rows.map((s) => 100 * (s.mean ?? s.at_point ?? 0)),
    y: rows.map((s, i) => i), marker: { color: colour.accent() }, hovertext: rows.map((s) => plain(s.label)), hovertemplate: "%{hovertext}: %{x:.3g} %<extra></extra>" }],
  { height: rows.length * 34 + 70, xaxis: { title: { text: "mean share of the time, %" }, range: [0, 100] },
    yaxis: { tickvals: rows.map((s, i) => i), ticktext: rows.map((s) => short(s.label)) }, showlegend: false });
}

function showFront(target, model, file, isHere) {
  if (!model.front.length) { put(target, empty("This form has no front; a posynomial has.")); return; }
  const end = h("div"), chart = h("div", { class: "chart short" });
  const data = model.data.length ? choose("Fitted to", model.data, { value: model.data[0] }) : null;
  const best = new Map();
  for (const m of model.front) if (!best.has(m.n_terms) || m.is_chosen) best.set(m.n_terms, m);
  const use = async (n_terms) => {
    try {
      const result = await follow(await post("/api/model/use", { file, data: data.select.value, n_terms }), end, isHere);
      if (result) location.hash = `#/model?${new URLSearchParams({ file: result.model })}`;
    } catch (error) { put(end, problem(error)); }
  };
  put(target,
    h("p", { class: "quiet" }, "Simpler expressions err more. Use one: it is fitted again and kept as a model of its own."),
    data ? data.element : warning("The data that it was fitted to are not in this folder, so no other expression can be fitted."),
    chart,
    table([
      { title: "terms", number: true, cell: (m) => String(m.n_terms) },
      { title: "constants", number: true, cell: (m) => String(m.n_constants) },
      { title: "held-out error", number: true, cell: (m) => (m.error === null ? "unknown" : percent(m.error)) },
      { title: "", cell: (m) => (m.is_chosen ? "in use" : best.get(m.n_terms) === m && data
        ? h("button", { type: "button", onclick: () => use(m.n_terms), "aria-label": `Use ${m.n_terms} terms` }, "Use") : "") },
    ], model.front, { caption: "Front of expressions", rowClass: (m) => (m.is_chosen ? "chosen" : null) }), end);
  const known = model.front.filter((m) => m.error !== null);
  if (!known.length) { chart.remove(); return; }
  draw(chart, [{ x: known.map((m) => m.n_constants), y: known.map((m) => 100 * m.error), mode: "lines+markers",
    text: known.map((m) => `${m.n_terms} terms`), marker: { size: known.map((m) => (m.is_chosen ? 14 : 9)), color: known.map((m) => (m.is_chosen ? colour.second() : colour.accent())) },
    line: { color: colour.accent() }, hovertemplate: "%{text}, %{x} constants: %{y:.3g} %<extra></extra>" }],
  { xaxis: { title: { text: "independent constants" } }, yaxis: { title: { text: "held-out error, %" }, rangemode: "tozero" }, showlegend: false });
  chart.on("plotly_click", (event) => { const m = known[event.points[0].pointIndex]; if (!m.is_chosen && data) use(m.n_terms); });
}
