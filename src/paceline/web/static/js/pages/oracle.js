// A network on a cluster, under every strategy, before anyone rents devices.
import { get, post } from "../api.js";
import { draw, plain } from "../chart.js";
import { choose, gib, h, number, percent, problem, put, seconds, table, warning } from "../dom.js";

export async function show(body, query, isHere) {
  const known = await get("/api/oracle");
  if (!isHere()) return;
  const label = (c) => [c.name, c.summary ? `${c.name} — ${c.summary.length > 60 ? `${c.summary.slice(0, 59)}…` : c.summary}` : c.name];
  const workload = choose("Network", known.workloads.map(label), { value: "resnet50" });
  const cluster = choose("Cluster", known.clusters.map(label), { value: "abci" });
  const sizes = Array.from({ length: 13 }, (_, i) => String(2 ** i));
  const first = choose("Devices from", sizes, { value: "1" }), last = choose("to", sizes, { value: "64" });
  const batch = h("input", { type: "number", min: 1, max: 10000000, value: 256, id: "batch" });
  const batchOf = choose("is the batch of", [["global_batch", "all devices (strong scaling)"], ["device_batch", "one device (weak scaling)"]]);
  const optimizer = choose("Optimizer", known.optimizers, { value: "adam" });
  const end = h("div", { id: "survey" });
  const button = h("button", { class: "primary", type: "submit" }, "Ask");
  const form = h("form", { class: "card row", onsubmit: (event) => { event.preventDefault(); ask(); } },
    workload.element, cluster.element, first.element, last.element, h("label", {}, "Batch", h("br"), batch), batchOf.element, optimizer.element, button);
  put(body, h("p", { class: "quiet" }, "Time and memory of a step from first principles."), form, end);
  await ask();

  async function ask() {
    button.disabled = true;
    put(end, h("p", { class: "quiet" }, "Working it out …"));
    try {
      const found = await post("/api/oracle", { workload: workload.select.value, cluster: cluster.select.value,
        first: Number(first.select.value), last: Number(last.select.value), batch: Math.round(Number(batch.value)) || 1,
        batch_of: batchOf.select.value, optimizer: optimizer.select.value });
      if (isHere()) showSurvey(end, found);
    } catch (error) { if (isHere()) put(end, problem(error)); }
    button.disabled = false;
  }
}

function showSurvey(target, found) {
  const chart = h("div", { class: "chart" }), rows = h("div");
  const counts = [...new Set(found.points.map((p) => p.n_devices))].sort((a, b) => a - b);
  const pick = choose("Strategies on", counts.map((n) => [String(n), `${n} device${n > 1 ? "s" : ""}`]), { value: String(counts[counts.length - 1]), onchange: () => list() });
  const knee = found.knees.best;
  const bests = found.points.filter((p) => p.is_best);
  put(target,
    found.note ? warning(found.note) : null,
    h("h2", {}, `${found.workload} on ${found.cluster}`),
    h("p", { class: "quiet" }, `${found.device}, ${gib(found.device_memory_bytes)} each; ${found.n_scenarios} scenarios looked at.`),
    knee ? h("p", {}, knee.is_reached ? `Knee of the best: ${knee.n_devices} devices; the next doubling ${knee.gain < 0 ? "loses" : "adds"} ${percent(Math.abs(knee.gain))}.` : `No knee up to ${knee.n_devices} devices: every doubling still pays.`) : null,
    chart, pick.element, rows,
    h("details", {}, h("summary", {}, "Largest degrees"), h("dl", {}, Object.entries(found.limits).map(([n, text]) => [h("dt", {}, n), h("dd", {}, text)]))));
  list();
  drawRates(chart, found, bests);

  function list() {
    const n = Number(pick.select.value);
    const here = found.points.filter((p) => p.n_devices === n)
      .sort((a, b) => (b.fits - a.fits) || ((b.samples_per_s ?? -1) - (a.samples_per_s ?? -1)));
    const possible = here.filter((p) => p.step_s !== null), others = here.filter((p) => p.step_s === null);
    put(rows, table([
      { title: "strategy", cell: (p) => p.strategy },
      { title: "step", number: true, cell: (p) => (p.step_s === null ? "" : seconds(p.step_s)) },
      { title: "samples/s", number: true, cell: (p) => number(p.samples_per_s) },
      { title: "memory", number: true, cell: (p) => gib(p.memory_bytes) },
      { title: "fits", cell: (p) => (p.fits ? "yes" : "no") },
      { title: "limited by", long: true, cell: (p) => p.limit },
      { title: "degrees", long: true, cell: (p) => p.degrees },
    ], possible, { caption: "Fastest first; what does not fit last", rowClass: (p) => (p.is_best ? "chosen" : p.fits ? null : "failed") }),
    others.length ? h("details", {}, h("summary", {}, `${others.length} strategies are not possible here`), table([
      { title: "strategy", cell: (p) => p.strategy }, { title: "why not", long: true, cell: (p) => p.limit }], others)) : null);
  }
}

function drawRates(target, found, bests) {
  const names = [...new Set(found.points.filter((p) => p.fits).map((p) => p.strategy))];
  const most = (name) => Math.max(...found.points.filter((p) => p.strategy === name && p.fits).map((p) => p.samples_per_s));
  const shown = names.sort((a, b) => most(b) - most(a)).slice(0, 7);
  const traces = shown.map((name) => {
    const points = found.points.filter((p) => p.strategy === name && p.fits);
    return { x: points.map((p) => p.n_devices), y: points.map((p) => p.samples_per_s), mode: "lines+markers", name: plain(name), hovertemplate: "%{x} devices: %{y:.4g}/s<extra>%{fullData.name}</extra>" };
  });
  if (!traces.length) { target.remove(); return; }
  if (bests.length) {
    const [b] = bests;
    traces.push({ x: bests.map((p) => p.n_devices), y: bests.map((p) => (b.samples_per_s * p.n_devices) / b.n_devices), mode: "lines", line: { dash: "dot", color: "gray" }, name: "ideal", hoverinfo: "skip" });
  }
  const x = [...new Set(found.points.map((p) => p.n_devices))].sort((a, b) => a - b);
  draw(target, traces, { height: 440, xaxis: { type: "log", title: { text: "devices" }, tickvals: x, ticktext: x.map(String) }, yaxis: { type: "log", ...decades(found.points.map((p) => p.samples_per_s)), title: { text: "samples per second" } } });
}

// 1, 2 and 5 of every power of ten that is reached
function decades(values) {
  const known = values.filter((v) => v > 0);
  const low = Math.floor(Math.log10(Math.min(...known))), high = Math.ceil(Math.log10(Math.max(...known)));
  const steps = high - low > 3 ? [1] : [1, 2, 5];
  const tickvals = Array.from({ length: high - low + 1 }, (_, i) => steps.map((s) => s * 10 ** (low + i))).flat();
  return { tickvals, ticktext: tickvals.map((v) => Number(v.toPrecision(3)).toLocaleString("en-US")) };
}
