// From a table to a model: upload or choose, say what the columns are, fit.
import { files, get, post, upload } from "../api.js";
import { choose, h, problem, put, table, warning } from "../dom.js";
import { follow } from "../jobs.js";

const PARTS = [["time", "time"], ["intrinsic", "intrinsic, a number"], ["category", "intrinsic, a category"],
  ["extrinsic", "extrinsic, a number"], ["group", "groups the rows"], ["ignore", "not used"]];

export async function show(body, query, isHere) {
  const about = await get("/api/about");
  const known = await files("table", "store");
  if (!isHere()) return;
  const next = h("div");
  const file = h("input", { type: "file", accept: ".csv,.tsv,text/csv", id: "upload" });
  file.addEventListener("change", () => file.files[0] && take(file.files[0]));
  const chosen = choose("Or a file of the folder", [["", "choose …"], ...known.map((n) => [n, n])],
    { value: query.get("file") || "", onchange: () => chosen.select.value && open(chosen.select.value) });
  put(body,
    h("p", { class: "quiet" }, "A table with one row per measured run becomes a model: say what its columns are, and fit."),
    h("div", { class: "card row" },
      h("label", {}, `A CSV file, at most ${about.max_upload_bytes / 1e6} MB`, h("br"), file),
      known.length ? chosen.element : null),
    next);
  if (query.get("file")) await open(query.get("file"));

  async function take(given) {
    if (given.size > about.max_upload_bytes) { put(next, problem(`The file must have at most ${about.max_upload_bytes / 1e6} MB, but has ${(given.size / 1e6).toPrecision(3)} MB.`)); return; }
    try {
      put(next, h("p", { class: "quiet" }, "Reading …"));
      roles(await upload(given.name, given));
    } catch (error) { put(next, problem(error)); }
  }

  async function open(name) {
    try {
      if (name.endsWith(".db")) put(next, ready(name, null));
      else roles(await get("/api/table", { file: name }));
    } catch (error) { put(next, problem(error)); }
  }

  function roles(guess) {
    if (!isHere()) return;
    const parts = guess.columns.map((column) => {
      const select = h("select", { "aria-label": `Part of ${column.name}`, "data-column": column.name },
        PARTS.filter(([key]) => column.is_numeric || !["time", "extrinsic", "intrinsic"].includes(key))
          .map(([key, text]) => h("option", { value: key, selected: key === column.part }, text)));
      return { column, select };
    });
    const unit = choose("Unit of the time", [["s", "seconds"], ["ms", "milliseconds"], ["us", "microseconds"]], { value: guess.time_unit });
    const per = choose("The time is that of", [["", "not known"], ["step", "a step"], ["epoch", "an epoch"], ["sample", "a sample"]]);
    put(next,
      h("h2", {}, "What are the columns?"),
      h("p", { class: "quiet" }, `${guess.file}: ${guess.n_rows} rows. Intrinsic: what the job is. Extrinsic: how it is scaled, such as devices and batch.`),
      guess.error ? warning(guess.error) : null,
      table([
        { title: "column", cell: (p) => p.column.name },
        { title: "is", cell: (p) => p.select },
        { title: "values", number: true, cell: (p) => String(p.column.n_values) },
        { title: "such as", cell: (p) => p.column.examples.join(", ") },
      ], parts, { caption: "Guessed; change what is wrong" }),
      h("div", { class: "row" }, unit.element, per.element),
      guess.notes.length ? h("details", {}, h("summary", {}, "Why these guesses"), h("ul", { class: "plain small" }, guess.notes.map((n) => h("li", {}, n)))) : null,
      ready(guess.file, () => reading(parts, unit.select.value, per.select.value)));
  }

  function ready(name, read) {
    const form = choose("Form", [["auto", "choose for me"], ["posynomial", "posynomial: a sum of products of powers"], ["generic", "generic: the thesis' expression"], ["corrected", "corrected: a formula and what it misses"]], { value: "auto" });
    const save = h("input", { type: "text", value: name.replace(/^.*\//, "").replace(/\.[^.]+$/, "") + "-model", maxlength: 90, id: "save-as" });
    const end = h("div", { id: "outcome" });
    const button = h("button", { type: "button", class: "primary", id: "fit" }, "Fit the model");
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        const job = await post("/api/fit", { file: name, form: form.select.value, save_as: save.value.trim(), ...(read ? read() : {}) });
        const result = await follow(job, end, isHere);
        if (result) put(end, h("div", { class: "card" },
          h("p", {}, h("strong", {}, result.model), ` is ready: ${result.form} form, ${result.n_rows} rows`,
            result.error === null ? "." : `, held-out error ${Number((100 * result.error).toPrecision(3))} %.`),
          h("p", {}, h("a", { href: `#/model?${new URLSearchParams({ file: result.model })}` }, "See the formula"), " · ",
            h("a", { href: `#/whatif?${new URLSearchParams({ file: result.model })}` }, "Ask what if"))));
      } catch (error) { put(end, problem(error)); }
      button.disabled = false;
    });
    return h("section", {}, h("h2", {}, "Fit"),
      h("div", { class: "card row" }, form.element, h("label", {}, "Save as", h("br"), save), button), end);
  }
}

function reading(parts, unit, per) {
  const of = (...keys) => parts.filter((p) => keys.includes(p.select.value)).map((p) => p.column.name);
  const times = of("time");
  if (times.length !== 1) throw new Error(`One column must be the time, but ${times.length} are. Choose one.`);
  if (!of("intrinsic", "category", "extrinsic").length) throw new Error("One column at least must be a parameter, but none is.");
  if (of("group").length > 1) throw new Error("One column at most can group the rows. Choose one.");
  return { time: times[0], time_unit: unit, time_per: per || null, intrinsic: of("intrinsic", "category"),
    extrinsic: of("extrinsic"), categorical: of("category"), group: of("group")[0] || null };
}

