// A job under way: progress, an end to wait for, and a way to stop it.
import { get, post } from "./api.js";
import { announce, h, problem, put, seconds } from "./dom.js";

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function follow(job, target, isHere) {
  const bar = h("progress", { "aria-label": "Progress" });
  const words = h("p", { class: "quiet small" });
  const stop = h("button", { type: "button", class: "plain", onclick: () => post(`/api/jobs/${job.id}/stop`, {}) }, "Stop");
  put(target, h("div", { class: "card" }, h("strong", {}, job.title), bar, words, stop));
  while (job.state === "running" && isHere()) {
    if (job.total > 0) { bar.max = job.total; bar.value = job.done; } else bar.removeAttribute("value");
    const count = job.total > 0 ? `${job.done} of ${job.total}, ` : "";
    words.textContent = `${count}${job.label} — ${seconds(job.seconds)} so far`;
    await pause(500);
    job = await get(`/api/jobs/${job.id}`);
  }
  if (!isHere()) return null;
  if (job.state === "done") { put(target); announce(`${job.title}: done`); return job.result; }
  put(target, job.state === "stopped" ? h("p", { class: "quiet" }, "Stopped.") : problem(job.error));
  return null;
}
