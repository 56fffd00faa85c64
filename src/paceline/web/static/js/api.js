// The JSON API; the token comes with the address and stays in this tab.

const KEY = "paceline-token";

export function takeToken() {
  const match = /^#token=([\w-]+)$/.exec(location.hash);
  if (!match) return;
  sessionStorage.setItem(KEY, match[1]);
  history.replaceState(null, "", "#/studies");
}

async function ask(path, options = {}) {
  const headers = { "X-Paceline-Token": sessionStorage.getItem(KEY) || "", ...(options.headers || {}) };
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is `paceline serve` still running?");
  }
  let data = null;
  try { data = await answer.json(); } catch { /* no JSON: said below */ }
  if (!answer.ok) throw new Error((data && data.error) || `The server answered ${answer.status}.`);
  return data;
}

export const get = (path, query = {}) => {
  const given = Object.entries(query).filter(([, v]) => v !== null && v !== undefined && v !== "");
  const text = new URLSearchParams(given).toString();
  return ask(text ? `${path}?${text}` : path);
};

export const post = (path, body, signal = undefined) =>
  ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });

export const upload = (name, file) =>
  ask(`/api/upload?${new URLSearchParams({ name })}`, { method: "POST", headers: { "Content-Type": "text/csv" }, body: file });

export async function files(...kinds) {
  const found = await get("/api/files");
  return found.files.filter((f) => kinds.includes(f.kind)).map((f) => f.name);
}
