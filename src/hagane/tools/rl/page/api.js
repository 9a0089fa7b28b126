// Requests with the token of the page's address, and news over a WebSocket that reconnects.

const token = new URLSearchParams(location.search).get("token") ?? "";
const headers = { Authorization: `Bearer ${token}` };

export async function ask(path, method = "GET", body = undefined) {
  const options = { method, headers: { ...headers } };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  const answer = await fetch(path, options);
  if (!answer.ok) {
    const facts = await answer.json().catch(() => ({}));
    throw new Error(facts.error ?? `${method} ${path}: ${answer.status}`);
  }
  return answer;
}

export const getJson = async (path) => (await ask(path)).json();
export const postJson = async (path, body) => (await ask(path, "POST", body)).json();

export function imageUrl(path) {
  return `/images?image_path=${encodeURIComponent(path)}&token=${encodeURIComponent(token)}`;
}

export function exportUrl(rollout, name) {
  const query = new URLSearchParams({ name, token });
  return `/api/rollouts/${encodeURIComponent(rollout)}/export?${query}`;
}

export function listen(heard, connected) {
  let wait = 500;
  const open = () => {
    const socket = new WebSocket(`ws://${location.host}/api/live?token=${encodeURIComponent(token)}`);
    socket.onopen = () => {
      wait = 500;
      connected(true);
    };
    socket.onmessage = (event) => heard(JSON.parse(event.data));
    socket.onclose = () => {
      connected(false);
      setTimeout(open, wait);
      wait = Math.min(wait * 2, 8000);
    };
  };
  open();
}
