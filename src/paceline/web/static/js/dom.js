// Elements from plain data: text is always set as text, never read as markup.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "disabled" || name === "selected") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== ""));
  return element;
}

export function put(target, ...children) {
  target.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== ""));
  return target;
}

export const problem = (error) =>
  h("p", { class: "problem", role: "alert" }, String((error && error.message) || error));

export const warning = (text) => h("p", { class: "warning" }, text);

export const empty = (...children) => h("div", { class: "empty" }, ...children);

// columns: [{title, number?, long?, cell: (row) => text or element}]
export function table(columns, rows, { caption = null, rowClass = null } = {}) {
  const head = columns.map((c) => h("th", { scope: "col", class: c.number ? "number" : null }, c.title));
  const body = rows.map((row) =>
    h("tr", { class: rowClass ? rowClass(row) : null },
      columns.map((c) => h("td", { class: c.number ? "number" : c.long ? "long" : null }, c.cell(row) ?? ""))));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption || "Table" },
    h("table", {}, caption ? h("caption", {}, caption) : null, h("thead", {}, h("tr", {}, head)), h("tbody", {}, body)));
}

export function choose(label, options, { value = null, onchange = null, id = null } = {}) {
  const select = h("select", { id, onchange },
    options.map((o) => {
      const [key, text] = Array.isArray(o) ? o : [o, o];
      return h("option", { value: key, selected: key === value }, text);
    }));
  return { element: h("label", {}, label, h("br"), select), select };
}

export function seconds(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "unknown";
  const size = Math.abs(value);
  const digits = (x) => Number(x.toPrecision(3)).toString();
  if (size === 0) return "0 s";
  if (size < 1e-3) return `${digits(value * 1e6)} µs`;
  if (size < 1) return `${digits(value * 1e3)} ms`;
  if (size < 120) return `${digits(value)} s`;
  if (size < 7200) return `${digits(value / 60)} min`;
  if (size < 172800) return `${digits(value / 3600)} h`;
  return `${digits(value / 86400)} d`;
}

export const percent = (share) =>
  share === null || share === undefined ? "" : `${Number((100 * share).toPrecision(3))} %`;

export const number = (value) =>
  value === null || value === undefined ? "" : typeof value === "number" ? String(Number(value.toPrecision(4))) : String(value);

export const gib = (bytes) => (bytes === null || bytes === undefined ? "" : `${Number((bytes / 2 ** 30).toPrecision(3))} GiB`);

export function announce(text) {
  document.getElementById("live").textContent = text;
}
