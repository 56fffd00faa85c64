// A plan: what runs where, and when.
import { files, get } from "../api.js";
import { colour, draw, plain } from "../chart.js";
import { choose, empty, gib, h, percent, put, seconds, table, warning } from "../dom.js";

export async function show(body, query, isHere) {
  const known = await files("plan");
  if (!isHere()) return;
  if (!known.length && !query.get("file")) {
    put(body, empty(h("p", {}, "No plan is in this folder yet. Make one: "), h("pre", {}, "paceline plan resnet50 --cluster abci --devices 16 --global-batch 1024 -o plan.json")));
    return;
  }
  const file = query.get("file") || known[0];
  const chooser = choose("Plan", known.includes(file) ? known : [file, ...known], { value: file,
    onchange: () => { location.hash = `#/plan?${new URLSearchParams({ file: chooser.select.value })}`; } });
  const rest = h("div");
  put(body, chooser.element, rest);
  const plan = await get("/api/plan", { file });
  if (!isHere()) return;
  const parts = h("div", { class: "chart short" }), gantt = h("div", { class: "chart", id: "gantt" });
  put(rest,
    h("h2", {}, `${plan.workload} on ${plan.n_devices} device${plan.n_devices > 1 ? "s" : ""} of ${plan.cluster}`),
    h("div", { class: "grid" },
      h("div", { class: "card" }, h("div", { class: "quiet small" }, "Predicted step"), h("div", { class: "big" }, seconds(plan.step_s)),
        h("div", { class: "small" }, `${Number((plan.global_batch / plan.step_s).toPrecision(4))} samples a second`)),
      h("div", { class: "card" }, h("dl", {},
        [["strategy", plan.strategy], ["global batch", String(plan.global_batch)], ["memory, fullest", gib(plan.memory_bytes)],
          ["optimizer", plan.optimizer], ["precision", plan.precision], ["objective", plan.objective]].map(([n, v]) => [h("dt", {}, n), h("dd", {}, v)])))),
    h("h2", {}, "Parts of the step"), parts,
    h("h2", {}, "Partition and placement"),
    table([
      { title: "stage", cell: (s) => s.name }, { title: "layers", long: true, cell: (s) => s.layers },
      { title: "devices of the first replica", cell: (s) => s.devices.join(", ") },
    ], plan.stages),
    plan.placement.length > 1 ? h("details", {}, h("summary", {}, `All ${plan.placement.length} replicas`),
      table([{ title: "replica", number: true, cell: (r) => String(r.i) }, { title: "samples", number: true, cell: (r) => String(r.batch) }, { title: "devices", cell: (r) => r.devices.join(", ") }],
        plan.placement.map((devices, i) => ({ i, devices, batch: plan.replica_batches[i] })))) : null,
    plan.passes.length ? [h("h2", {}, "When every pass runs"), h("p", { class: "quiet" }, `Stages wait for ${percent(plan.bubble_share)} of their time.`), gantt] : null,
    plan.note ? warning(plan.note) : null,
    plan.reasons.length ? [h("h2", {}, "Why this one"), h("ul", { class: "plain" }, plan.reasons.map((r) => h("li", {}, r)))] : null,
    plan.runners_up.length ? [h("h2", {}, "Runners-up"), table([
      { title: "strategy", cell: (r) => String(r.strategy) }, { title: "step", number: true, cell: (r) => seconds(r.step_s) },
      { title: "behind", number: true, cell: (r) => `+${percent(r.behind)}` }], plan.runners_up)] : null);
  drawParts(parts, plan);
  if (plan.passes.length) drawPasses(gantt, plan);
}

function scaleOf(top) {
  return top < 1e-3 ? [1e6, "µs"] : top < 1 ? [1e3, "ms"] : [1, "s"];
}

function drawParts(target, plan) {
  const rows = Object.entries(plan.parts_s).reverse();
  const [scale, unit] = scaleOf(plan.step_s);
  draw(target, [{ type: "bar", orientation: "h", x: rows.map(([, s]) => s * scale), y: rows.map((r, i) => i), marker: { color: colour.accent() }, hovertemplate: `%{x:.3g} ${unit}<extra></extra>` }],
    { height: rows.length * 32 + 80, showlegend: false, xaxis: { title: { text: `time, ${unit}` } }, yaxis: { tickvals: rows.map((r, i) => i), ticktext: rows.map(([n]) => plain(n)) } });
}

function drawPasses(target, plan) {
  const [scale, unit] = scaleOf(plan.step_s);
  const bars = (isBackward, name, shade) => {
    const passes = plan.passes.filter((p) => p.is_backward === isBackward);
    return { type: "bar", orientation: "h", name, base: passes.map((p) => p.start_s * scale), x: passes.map((p) => (p.end_s - p.start_s) * scale),
      y: passes.map((p) => p.stage), marker: { color: shade, line: { width: 1, color: "rgba(127,127,127,.6)" } }, customdata: passes.map((p) => [p.micro_batch, p.start_s * scale, p.end_s * scale]),
      text: passes.map((p) => String(p.micro_batch)), textposition: "inside", insidetextanchor: "middle", textangle: 0,
      hovertemplate: `stage %{y}, micro-batch %{customdata[0]}: %{customdata[1]:.4g} to %{customdata[2]:.4g} ${unit}<extra>${name}</extra>` };
  };
  const stages = [...new Set(plan.passes.map((p) => p.stage))].sort((a, b) => a - b);
  draw(target, [bars(false, "forward", colour.accent()), bars(true, "backward", colour.second())],
    { height: Math.max(220, stages.length * 34 + 110), barmode: "overlay", bargap: .25, uniformtext: { minsize: 8, mode: "hide" },
      xaxis: { title: { text: `time in the step, ${unit}` }, rangemode: "tozero" },
      yaxis: { title: { text: "stage" }, autorange: "reversed", tickvals: stages, ticktext: stages.map(String) } });
}
