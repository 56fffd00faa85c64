// Plotly with the colours of the page.

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const colour = { accent: () => style("--accent"), band: () => style("--band"), second: () => style("--second"),
  quiet: () => style("--quiet"), good: () => style("--good"), warn: () => style("--warn") };

// text of data is shown as it is: Plotly would read a few tags in it
export const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

export function draw(target, traces, layout = {}) {
  const axis = { gridcolor: style("--line"), zerolinecolor: style("--line"), automargin: true, ticklabelstandoff: 4 };
  const narrow = target.clientWidth < 500;
  const full = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: style("--text"), size: narrow ? 11 : 13, family: "system-ui, sans-serif" },
    margin: { l: 56, r: 16, t: 16, b: 48 }, height: target.classList.contains("short") ? 220 : 380,
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 }, hovermode: "closest",
    ...layout,
    xaxis: { ...axis, ...(layout.xaxis || {}) }, yaxis: { ...axis, ...(layout.yaxis || {}) },
  };
  target.style.minHeight = `${full.height}px`;
  return window.Plotly.react(target, traces, full, { responsive: true, displaylogo: false,
    displayModeBar: narrow ? false : "hover", modeBarButtonsToRemove: ["lasso2d", "select2d"] });
}

export function clear(target) {
  if (target.data) window.Plotly.purge(target);
}
