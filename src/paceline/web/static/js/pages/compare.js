// Every form and every black box on the same held-out rows.
import { files, get, post } from "../api.js";
import { colour, draw, plain } from "../chart.js";
import { choose, empty, h, percent, problem, put, seconds, table } from "../dom.js";
import { follow } from "../jobs.js";

export async function show(body, query, isHere) {
  const known = await files("store", "table");
  if (!isHere()) return;
  if (!known.length) { put(body, empty(h("p", {}, "No data are in this folder yet."), h("p", {}, h("a", { href: "#/data" }, "Upload a table"), "."))); return; }
  const data = choose("Data", known, { value: query.get("file") || known[0] });
  const folds = choose("Folds", ["3", "5", "10"], { value: "5" });
  const under = h("div"), end = h("div", { id: "comparison" });
  const start = h("button", { type: "button", class: "primary", id: "compare" }, "Compare");
  const run = async (job) => {
    start.disabled = true;
    try {
      const result = await follow(job, under, isHere);
      if (result) showResult(end, job.title, result);
    } catch (error) { put(under, problem(error)); }
    start.disabled = false;
  };
  start.addEventListener("click", async () => {
    put(end);
    try { await run(await post("/api/compare", { file: data.select.value, n_folds: Number(folds.select.value) })); }
    catch (error) { put(under, problem(error)); }
  });
  put(body, h("p", { class: "quiet" }, "Every form and every black box is fitted to the same rows and judged on the same others. This takes from seconds to minutes; the page may be left."),
    h("div", { class: "card row" }, data.element, folds.element, start), under, end);
  const { jobs } = await get("/api/jobs");
  const last = jobs.find((j) => j.kind === "compare" && ["running", "done"].includes(j.state));
  if (last && isHere()) run(await get(`/api/jobs/${last.id}`));
}

function showResult(target, title, found) {
  const good = found.rows.filter((r) => r.mape !== null);
  const chart = h("div", { class: "chart" });
  put(target,
    h("h2", {}, title),
    h("p", {}, `${found.n_held_out} of ${found.n_rows} rows held out: ${found.split}.`,
      found.floor === null ? "" : ` Repeats of one configuration differ by ${percent(found.floor)}, which no model can foresee.`),
    chart,
    table([
      { title: "model", cell: (r) => r.name },
      { title: "mean error", number: true, cell: (r) => (r.mape === null ? "failed" : percent(r.mape)) },
      { title: "covers", number: true, cell: (r) => percent(r.coverage) },
      { title: "one fit", number: true, cell: (r) => (r.mape === null ? "" : seconds(r.fit_seconds)) },
      ...(good.length < found.rows.length ? [{ title: "", cell: (r) => r.error }] : []),
    ], found.rows, { caption: "Least error first. Covers: share of the held-out times within the 90 % interval.", rowClass: (r) => (r.mape === null ? "failed" : null) }));
  if (!good.length) { chart.remove(); return; }
  const rows = [...good].reverse();
  const shapes = found.floor === null ? [] : [{ type: "line", x0: 100 * found.floor, x1: 100 * found.floor, yref: "paper", y0: 0, y1: 1, line: { color: colour.second(), dash: "dash" } }];
  draw(chart, [{ type: "bar", orientation: "h", y: rows.map((r, i) => i), x: rows.map((r) => 100 * r.mape), marker: { color: colour.accent() }, hovertemplate: "%{x:.3g} %<extra></extra>" }],
    { height: rows.length * 26 + 90, shapes, showlegend: false, xaxis: { title: { text: found.floor === null ? "mean absolute error, %" : "mean absolute error, % (dashed: noise)" } },
      yaxis: { tickvals: rows.map((r, i) => i), ticktext: rows.map((r) => plain(r.name)) } });
}
