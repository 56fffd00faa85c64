// Pages by the part of the address behind #.
import { get, takeToken } from "./api.js";
import { h, problem, put } from "./dom.js";
import * as studies from "./pages/studies.js";
import * as data from "./pages/data.js";
import * as model from "./pages/model.js";
import * as whatif from "./pages/whatif.js";
import * as compare from "./pages/compare.js";
import * as oracle from "./pages/oracle.js";
import * as plan from "./pages/plan.js";

const PAGES = {
  studies: ["Studies", studies], data: ["New model", data], model: ["Model", model], whatif: ["What if", whatif],
  compare: ["Compare", compare], oracle: ["Oracle", oracle], plan: ["Plan", plan],
};
let visit = 0;

function here() {
  const [name, query] = location.hash.replace(/^#\/?/, "").split("?");
  return [PAGES[name] ? name : "studies", new URLSearchParams(query || "")];
}

async function show() {
  if (location.hash === "#main") { document.getElementById("main").focus(); return; }
  takeToken();
  const [name, query] = here();
  const mine = ++visit;
  const main = document.getElementById("main");
  const [title, page] = PAGES[name];
  document.title = `${title} · Paceline`;
  put(document.getElementById("nav"), Object.entries(PAGES).map(([key, [text]]) =>
    h("a", { href: `#/${key}`, "aria-current": key === name ? "page" : null }, text)));
  const body = h("div");
  put(main, h("h1", {}, title), body);
  try {
    await page.show(body, query, () => mine === visit);
  } catch (error) {
    if (mine === visit) body.append(problem(error));
  }
  if (mine === visit) main.dataset.ready = name;
}

addEventListener("hashchange", () => { delete document.getElementById("main").dataset.ready; show(); });
addEventListener("DOMContentLoaded", async () => {
  show();
  try {
    const about = await get("/api/about");
    document.getElementById("folder").textContent = `— ${about.folder}`;
  } catch { /* the page says it */ }
});
