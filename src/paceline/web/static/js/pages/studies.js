// Campaigns of the folder, with the progress of those that run.
import { get } from "../api.js";
import { empty, h, number, problem, put, seconds, table } from "../dom.js";

const OFTEN_MS = 1500, SELDOM_MS = 6000;

export async function show(body, query, isHere) {
  const list = h("div"), detail = h("div");
  put(body, h("p", { class: "quiet" }, "Campaigns and stores in this folder. What runs is followed while this page is open."), list, detail);
  const chosen = query.get("file");
  await refresh();

  async function refresh() {
    let pause = SELDOM_MS;
    try {
      const { studies } = await get("/api/studies");
      if (!isHere()) return;
      put(list, studies.length ? h("div", { class: "grid" }, studies.map((s) => card(s, chosen))) : nothing());
      if (studies.some((s) => s.is_running)) pause = OFTEN_MS;
      if (chosen) await showTrials(detail, chosen, isHere);
    } catch (error) {
      if (isHere()) put(list, problem(error));
    }
    setTimeout(() => { if (isHere()) refresh(); }, pause);
  }
}

function nothing() {
  return empty(h("p", {}, "No campaign is in this folder yet. Measure one: "), h("pre", {}, "paceline measure STUDY.toml -o runs.db"),
    h("p", {}, "or ", h("a", { href: "#/data" }, "start from a table of times"), "."));
}

function card(study, chosen) {
  if (study.error) return h("article", { class: "card" }, h("h3", {}, study.name), problem(study.error));
  const share = study.total ? study.done / study.total : 0;
  const state = study.is_running ? h("span", { class: "tag running" }, "running")
    : study.is_campaign && study.done < study.total ? h("span", { class: "tag" }, "stopped") : h("span", { class: "tag" }, "complete");
  const bar = h("progress", { max: study.total || 1, value: study.done, "aria-label": `Progress of ${study.name}` });
  bar.value = study.done;
  return h("article", { class: "card", "data-study": study.name },
    h("h3", {}, study.name, " ", state),
    study.is_campaign ? bar : null,
    h("p", { class: "done" }, study.is_campaign ? `${study.done} of ${study.total} trials` : `${study.done} observations`,
      study.is_campaign ? ` (${Math.floor(100 * share)} %)` : "",
      study.failed ? h("span", { class: "tag failed" }, `${study.failed} failed`) : ""),
    h("p", { class: "quiet small" },
      [study.study && `study ${study.study}`, (study.executors || []).join(", "),
        study.is_running && study.remaining_s ? `about ${seconds(study.remaining_s)} to go` : null].filter(Boolean).join(" · ")),
    h("p", { class: "small" },
      study.name === chosen ? h("a", { href: "#/studies" }, "Hide trials") : h("a", { href: `#/studies?${new URLSearchParams({ file: study.name })}` }, "Trials"), " · ",
      h("a", { href: `#/data?${new URLSearchParams({ file: study.name })}` }, "Fit"), " · ",
      h("a", { href: `#/compare?${new URLSearchParams({ file: study.name })}` }, "Compare")));
}

async function showTrials(target, file, isHere) {
  try {
    const study = await get("/api/study", { file });
    if (!isHere()) return;
    const names = study.parameters.map((p) => p.name);
    const failed = study.trials.filter((t) => t.reason);
    const columns = [
      { title: "trial", number: true, cell: (t) => String(t.trial) },
      { title: "step time", number: true, cell: (t) => (t.reason ? "failed" : seconds(t.time_s)) },
      ...names.map((name) => ({ title: name, cell: (t) => number(t.values[name]) })),
    ];
    put(target, h("h2", {}, `Trials of ${file}`),
      failed.length ? [h("h3", {}, "Failures"), table([
        { title: "trial", number: true, cell: (t) => String(t.trial) },
        { title: "reason", long: true, cell: (t) => t.reason },
      ], failed, { caption: `${failed.length} failed`, rowClass: () => "failed" })] : null,
      study.trials.length ? table(columns, study.trials.filter((t) => !t.reason), { caption: `The newest ${study.trials.length} of ${study.done}` })
        : empty("No trial has been measured yet."));
  } catch (error) {
    if (isHere()) put(target, problem(error));
  }
}
