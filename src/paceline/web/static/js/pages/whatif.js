// A slider per number, a choice per category: the time at once, and how it scales.
import { get, post } from "../api.js";
import { colour, draw, plain } from "../chart.js";
import { choose, h, number, problem, put, seconds, percent, table, warning } from "../dom.js";
import { pick } from "./model.js";

const LATER_MS = 600;

export async function show(body, query, isHere) {
  const picked = await pick(body, query, isHere, "whatif");
  if (!picked) return;
  const known = await get("/api/whatif", { file: picked.file });
  if (!isHere()) return;
  const point = { ...known.point };
  const answer = h("div", { "aria-live": "polite", id: "prediction" }), notes = h("div");
  const chart = h("div", { class: "chart", id: "curve" }), knee = h("p"), halving = h("div", { id: "halving" });
  const axis = known.axes.length ? choose("Curve over", known.axes, { value: known.axes[0], onchange: () => ask() }) : null;
  const controls = [
    ...known.numeric.map((p) => slider(p, point, ask)),
    ...known.categorical.map((p) => levels(p, point, ask)),
  ];
  put(picked.rest,
    h("div", { class: "split" },
      h("section", { class: "answer", "aria-label": "Prediction" }, h("div", { class: "card" }, answer)),
      h("section", { class: "inputs", "aria-label": "Parameters" }, h("div", { class: "card" }, controls)),
      h("section", { class: "details", "aria-label": "Scaling" }, notes,
        axis ? [h("h2", {}, "How it scales"), axis.element, chart, knee] : null,
        h("h2", {}, "What would halve this?"), halving)));
  let asked = 0, later = null, under = null;
  await ask();

  async function ask() {
    const mine = ++asked;
    if (under) under.abort();
    under = new AbortController();
    clearTimeout(later);
    try {
      const started = performance.now();
      const found = await post("/api/whatif", { file: picked.file, point, over: axis ? axis.select.value : null }, under.signal);
      if (!isHere() || mine !== asked) return;
      showPrediction(answer, found.prediction, known);
      answer.dataset.milliseconds = String(performance.now() - started);
      put(notes, found.outside.length ? warning(`Outside of what was measured — ${found.outside.join("; ")}. The interval is wider, and may still be too narrow.`) : null);
      if (found.curve) showCurve(chart, knee, found.curve, point, known);
      later = setTimeout(() => halve(mine), LATER_MS);
    } catch (error) {
      if (error.name !== "AbortError" && isHere() && mine === asked) put(notes, problem(error));
    }
  }

  async function halve(mine) {
    try {
      const found = await post("/api/whatif/halve", { file: picked.file, point });
      if (isHere() && mine === asked) showHalving(halving, found);
    } catch (error) {
      if (isHere() && mine === asked) put(halving, problem(error));
    }
  }
}

function slider(p, point, ask) {
  const id = `p-${Math.random().toString(36).slice(2)}`;
  const nearest = (value) => p.stops.reduce((best, s, i) => (Math.abs(s - value) < Math.abs(p.stops[best] - value) ? i : best), 0);
  const shown = h("span", { class: "value" });
  const range = h("input", { type: "range", id, min: 0, max: p.stops.length - 1, step: 1, "data-parameter": p.name });
  range.value = nearest(point[p.name]);
  const tell = () => {
    const value = point[p.name];
    const beyond = value < p.low || value > p.high;
    shown.textContent = number(value) + (beyond ? " (beyond)" : "");
    shown.classList.toggle("beyond", beyond);
    range.setAttribute("aria-valuetext", `${number(value)}${beyond ? ", beyond what was measured" : ""}`);
  };
  range.addEventListener("input", () => { point[p.name] = p.stops[Number(range.value)]; tell(); ask(); });
  tell();
  return h("div", { class: "slider" }, h("label", { for: id }, p.name, shown), range,
    h("div", { class: "quiet small" }, `measured ${number(p.low)} to ${number(p.high)}`));
}

function levels(p, point, ask) {
  const chooser = choose(p.name, p.levels, { value: point[p.name], onchange: () => { point[p.name] = chooser.select.value; ask(); } });
  return h("div", { class: "slider" }, chooser.element);
}

function showPrediction(target, prediction, known) {
  const interval = prediction.lower_s === null ? "no interval: too few rows were held out"
    : `${seconds(prediction.lower_s)} to ${seconds(prediction.upper_s)} with 90 % (${known.covers})`;
  put(target, h("div", { class: "quiet small" }, `Predicted ${known.time_per ? `time of ${known.time_per === "epoch" ? "an" : "a"} ${known.time_per}` : "time"}`),
    h("div", { class: "big" }, seconds(prediction.predicted_s)), h("div", { class: "small" }, interval));
}

function showCurve(target, knee, curve, point, known) {
  const all = curve.values.map((_, i) => i).filter((i) => curve.predicted_s[i] !== null);
  const x = all.map((i) => curve.values[i]), of = (name) => all.map((i) => curve[name][i]);
  const top = Math.max(...of("predicted_s"), 0);
  const [scale, unit] = top < 1e-3 ? [1e6, "µs"] : top < 1 ? [1e3, "ms"] : [1, "s"];
  const scaled = (values) => values.map((v) => (v === null ? null : v * scale));
  const isLog = x.length > 1 && x[0] > 0 && x[x.length - 1] / x[0] >= 8;
  const traces = [];
  if (curve.lower_s.some((v) => v !== null)) traces.push(
    { x, y: scaled(of("lower_s")), mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false },
    { x, y: scaled(of("upper_s")), mode: "lines", line: { width: 0 }, fill: "tonexty", fillcolor: colour.band(), name: "90 % interval", hoverinfo: "skip" });
  traces.push({ x, y: scaled(of("predicted_s")), mode: "lines+markers", line: { color: colour.accent(), width: 2.5 }, name: "predicted", hovertemplate: `%{x}: %{y:.3g} ${unit}<extra></extra>` });
  if (curve.ideal_s) traces.push({ x, y: scaled(all.map((i) => curve.ideal_s[i])), mode: "lines", line: { color: colour.quiet(), dash: "dot" }, name: "ideal", hoverinfo: "skip" });
  // far outside the interval is so wide that nothing else could be seen
  const most = Math.min(3 * top, Math.max(top, ...of("upper_s").filter((v) => v !== null))) * scale * 1.05;
  const at = point[curve.name];
  const shapes = [{ type: "line", x0: at, x1: at, yref: "paper", y0: 0, y1: 1, line: { color: colour.second(), width: 1.5, dash: "dash" } }];
  if (x.length && x[x.length - 1] > curve.measured_to) shapes.push({ type: "rect", x0: curve.measured_to, x1: x[x.length - 1], yref: "paper", y0: 0, y1: 1, fillcolor: colour.quiet(), opacity: .08, line: { width: 0 }, layer: "below" });
  const ticks = x.length <= 14 ? { tickvals: x, ticktext: x.map(number) } : {};
  draw(target, traces, { shapes,
    xaxis: { title: { text: plain(curve.name) }, type: isLog ? "log" : "linear", ...ticks },
    yaxis: { title: { text: `time${known.time_per ? ` of ${known.time_per === "epoch" ? "an" : "a"} ${known.time_per}` : ""}, ${unit}` }, range: [0, most || 1] } });
  put(knee, curve.knee ? (curve.knee.is_reached
    ? `Knee at ${curve.knee.n_devices}: doubling further would ${curve.knee.gain < 0 ? "take" : "add"} ${percent(Math.abs(curve.knee.gain))} ${curve.knee.gain < 0 ? "from the rate." : "to the rate, less than 10 %."}`
    : `No knee up to ${curve.knee.n_devices}: every doubling still adds 10 % or more to the rate.`)
    : curve.ideal_s === null ? h("span", { class: "quiet small" }, "Shaded: beyond what was measured. A knee needs a number of devices and a known basis of the time.") : "");
}

function showHalving(target, found) {
  if (!found.moves.length) { put(target, h("p", { class: "quiet" }, "There is nothing else to move.")); return; }
  const halves = found.moves.filter((m) => m.halves);
  put(target,
    h("p", {}, halves.length ? `One change alone would halve ${seconds(found.now_s)}:` : `No single change halves ${seconds(found.now_s)}. What each can do at best:`),
    table([
      { title: "parameter", cell: (m) => m.name },
      { title: "from", number: true, cell: (m) => number(m.now) },
      { title: "to", number: true, cell: (m) => number(m.value) + (m.extrapolates ? " *" : "") },
      { title: "time", number: true, cell: (m) => seconds(m.predicted_s) },
      { title: "of now", number: true, cell: (m) => percent(m.ratio) },
    ], halves.length ? halves : found.moves.slice(0, 8), { caption: "Others stay as they are; * beyond what was measured" }));
}
