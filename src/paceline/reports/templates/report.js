"use strict";
(() => {
  const PRINT_WIDTH = 680; // pixels of the text on A4 within our margins
  const charts = Array.from(document.querySelectorAll(".chart"));
  const root = document.documentElement;
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  // colours of text follow the page; those of data do not change
  const inked = (layout) => {
    const ink = colour("--ink");
    const out = { ...layout, font: { ...layout.font, color: ink } };
    out.hoverlabel = { ...layout.hoverlabel, bgcolor: colour("--card"), bordercolor: colour("--line"), font: { color: ink } };
    return out;
  };
  const settings = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d"] };

  // on a narrow screen a legend beside the picture would leave no room for it
  const fitted = (layout, width) => {
    const out = inked(layout);
    if (width < 640 && out.legend && out.legend.orientation === "v") {
      out.legend = { orientation: "h", x: 0, y: -0.25, yanchor: "top" };
      out.margin = { ...out.margin, r: 24 };
    }
    return out;
  };
  const draw = (div) => {
    const spec = read(div.id.replace("chart-", "spec-"));
    return Plotly.react(div, spec.data, fitted(spec.layout, div.clientWidth), settings);
  };
  const drawAll = () => Promise.all(charts.map(draw));

  const save = (name, data) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(data, null, 1)], { type: "application/json" }));
    link.download = name + ".json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const content = (name) => ({ numbers: read("numbers-" + name), figure: read("spec-" + name) });
  for (const button of document.querySelectorAll("button.json")) {
    button.addEventListener("click", () => save(button.dataset.chart, content(button.dataset.chart)));
  }
  document.getElementById("all-json").addEventListener("click", () => {
    const names = charts.map((div) => div.id.replace("chart-", ""));
    save("report", Object.fromEntries(names.map((name) => [name, read("numbers-" + name)])));
  });

  const isDark = matchMedia("(prefers-color-scheme: dark)");
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : isDark.matches;
    root.dataset.theme = dark ? "light" : "dark";
    drawAll();
  });
  isDark.addEventListener("change", drawAll);

  let before;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    for (const div of charts) Plotly.relayout(div, { width: PRINT_WIDTH, "font.color": "#000000" });
  });
  addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before; else delete root.dataset.theme;
    for (const div of charts) Plotly.relayout(div, { width: null, autosize: true });
    drawAll();
  });
  drawAll().then(() => { root.dataset.drawn = "yes"; });
})();
