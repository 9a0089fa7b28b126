// The page: which rollouts are on the stage, which step is shown, and what follows from both.

import { exportUrl, getJson, listen, postJson } from "rl/api";
import { Chart } from "rl/chart";
import { Explanations } from "rl/explain";
import { Jobs } from "rl/jobs";
import { showPanes, text } from "rl/panes";
import { Series } from "rl/series";
import { View } from "rl/view";

const $ = (id) => document.getElementById(id);
const CHARTS = [
  ["Reward", ["reward"]], ["Value of the state", ["state_value"]],
  ["Probabilities of actions", "action_probs"], ["Values of actions", "action_values"],
  ["Means", "action_means"], ["Variances", "action_vars"], ["Continuous action", "action_deterministic"],
  ["Value of the action", ["action_value"]], ["Length of the recurrent state", ["state_norm"]],
  ["Action", "action"],
];
const CONDITIONS = ["reward > 0", "max(action_values) drops by 0.5", "state_value drops by 0.5", "spread(action_values) < 0.01", "entropy(action_probs) > 0.6", "action changes", "done > 0"];

const page = { profile: {}, views: [], step: 0, from: 0, to: 0, all: true, charts: [], playing: 0 };
const explanations = new Explanations($("explanation"), () => goTo(page.step));
const jobs = new Jobs($("jobs"), jobEnded, jobRuns);

const main = () => page.views[0]?.series ?? null;
const actionName = (index) => page.profile.action_meanings?.[index] ?? `action ${index}`;

function say(words) {
  if (words) $("notes").append(text("p", words));
  while ($("notes").children.length > 6) $("notes").firstChild.remove();
}

async function tried(work) {
  try {
    return await work();
  } catch (error) {
    say(error.message);
    return null;
  }
}

async function loadProfile() {
  page.profile = await getJson("/api/agent_profile");
  const { agent_type: kind, agent_name: name, environment, notes, agents, keys = [] } = page.profile;
  $("agent-line").textContent = [kind, name !== kind ? name : "", environment].filter(Boolean).join(" · ");
  $("notes").replaceChildren();
  for (const note of notes ?? []) say(note);
  const several = agents.length > 1;
  $("agent-choice").hidden = $("compare").hidden = !several;
  $("agent").replaceChildren(...agents.map((agent, i) => Object.assign(text("option", agent.split("/").at(-1)), { value: i })));
  const outputs = ["all", "actor", "critic", "qfunc"];
  const count = Object.keys(page.profile.action_meanings ?? {}).length;
  for (const key of ["action_values", "action_probs"]) {
    if (keys.includes(key)) for (let i = 0; i < count; i++) outputs.push(`${key}.${i}`);
  }
  $("output").replaceChildren(...outputs.map((output) => {
    const [key, index] = output.split(".");
    const words = index === undefined ? output : `${key === "action_values" ? "value" : "probability"} of ${actionName(index)}`;
    return Object.assign(text("option", words), { value: output });
  }));
  $("reach-choice").hidden = !page.profile.contains_recurrent_model;
  if (!page.touched) $("method").value = page.profile.raw_image_input ? "greydanus" : "occlusion";
}

async function loadRollouts() {
  const { rollout_ids: ids } = await getJson("/api/rollouts");
  const shown = page.views.map((view) => view.series.id);
  $("rollouts").replaceChildren(...ids.reverse().slice(0, 200).map((id) => {
    const item = document.createElement("li");
    const line = document.createElement("div");
    line.className = "row";
    const open = text("button", id.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d\.\d\d).*/, "$1-$2-$3 $4:$5:$6"), "name");
    open.type = "button";
    open.title = id;
    open.setAttribute("aria-current", String(shown.includes(id)));
    open.addEventListener("click", () => tried(() => openRollout(id)));
    const beside = text("button", "+");
    beside.type = "button";
    beside.title = "Show beside the others";
    beside.setAttribute("aria-label", `Show ${id} beside the others`);
    beside.addEventListener("click", () => tried(() => openRollout(id, true)));
    line.append(open, beside);
    item.append(line);
    return item;
  }));
  if (!ids.length) $("rollouts").append(text("li", "none yet", "soft"));
}

async function openRollout(id, beside = false) {
  if (page.views.some((view) => view.series.id === id)) {
    if (beside) return;
    page.views = page.views.filter((view) => view.series.id === id);
  } else {
    const series = new Series(id);
    if (!beside) $("notes").replaceChildren(...(page.profile.notes ?? []).map((note) => text("p", note)));
    await series.refresh();
    const view = new View(series, actionName, beside ? () => closeView(id) : null);
    page.views = beside ? [...page.views, view].slice(-4) : [view];
    for (const words of series.warnings) say(`${id}: ${words}`);
  }
  $("stage").replaceChildren(...page.views.map((view) => view.element));
  if (!beside) {
    page.step = 0;
    page.all = true;
    buildCharts();
    await explanations.load(main());
  }
  spread();
  await loadRollouts();
  await goTo(page.step);
}

function closeView(id) {
  page.views = page.views.filter((view) => view.series.id !== id);
  $("stage").replaceChildren(...page.views.map((view) => view.element));
  loadRollouts();
  drawCharts();
}

function buildCharts() {
  const series = main();
  page.charts = [];
  for (const [title, key] of CHARTS) {
    const names = (Array.isArray(key) ? key.filter((name) => series.columns.has(name)) : series.parts(key)).slice(0, 16);
    if (!names.length) continue;
    const labels = names.map((name) => {
      const index = name.split(".")[1];
      if (index === undefined) return name;
      return ["action_probs", "action_values"].includes(key) ? actionName(index) : `part ${index}`;
    });
    page.charts.push(new Chart(title, names, labels, (step) => goTo(step), zoom));
  }
  page.columns = series.columns.size;
  $("charts").replaceChildren(...page.charts.map((chart) => chart.figure));
}

function spread() {
  const steps = main()?.steps ?? 0;
  if (page.all) [page.from, page.to] = [0, Math.max(0, steps - 1)];
  for (const id of ["scrub", "step-number", "range-from", "range-to", "explain-from", "explain-to"]) {
    $(id).max = Math.max(0, steps - 1);
  }
  $("range-from").value = page.from;
  $("range-to").value = page.to;
  $("step-total").textContent = `of ${steps}`;
}

function zoom(step, way, move) {
  const steps = main().steps;
  const width = page.to - page.from;
  let [from, to] = [page.from, page.to];
  if (move) {
    const shift = Math.round(way * Math.max(1, width / 8));
    [from, to] = [from + shift, to + shift];
  } else {
    const factor = way > 0 ? 1.25 : 0.8;
    from = step - (step - from) * factor;
    to = step + (to - step) * factor;
  }
  setRange(Math.round(from), Math.round(to), steps);
}

function setRange(from, to, steps = main()?.steps ?? 0) {
  page.from = Math.max(0, Math.min(from, steps - 1));
  page.to = Math.min(Math.max(0, steps - 1), Math.max(to, page.from + Math.min(9, steps - 1)));
  page.all = page.from === 0 && page.to === steps - 1;
  $("range-from").value = page.from;
  $("range-to").value = page.to;
  drawCharts();
}

function drawCharts() {
  const others = page.views.slice(1).map((view) => view.series);
  for (const chart of page.charts) chart.show(main(), page.from, page.to, page.step, others);
}

let asked = 0;
async function goTo(step) {
  const series = main();
  if (!series) return showPanes($("panes"), null, actionName);
  page.step = Math.max(0, Math.min(step, series.steps - 1));
  $("scrub").value = $("step-number").value = page.step;
  $("scrub").setAttribute("aria-valuetext", `step ${page.step} of ${series.steps}`);
  const mine = ++asked;
  drawCharts();
  const here = page.step;
  const maps = await explanations.at(here).catch(() => null);
  if (mine !== asked) return undefined;
  explanations.showNumbers(maps, here);
  const rows = await Promise.all(page.views.map((view, index) => view.show(Math.min(here, Math.max(0, view.series.steps - 1)), index === 0 ? explanations.overlay(maps) : null)));
  if (mine === asked) showPanes($("panes"), rows[0], actionName);
  return undefined;
}

function play(on) {
  clearInterval(page.playing);
  page.playing = 0;
  if (on && main()) {
    page.playing = setInterval(() => {
      if (page.step >= main().steps - 1) play(false);
      else goTo(page.step + 1);
    }, 1000 / Number($("speed").value));
  }
  $("play").textContent = page.playing ? "❚❚ Pause" : "▶ Play";
  $("play").setAttribute("aria-label", page.playing ? "Pause" : "Play");
}

async function jobEnded(job) {
  if (job.kind === "profile") {
    await tried(loadProfile);
    if (!main()) return undefined;
    buildCharts();  // names of actions may have come
    return goTo(page.step);
  }
  if (job.status === "failed") say(`job ${job.id}, ${job.kind}: ${job.message}`);
  await tried(loadRollouts);
  const view = page.views.find((item) => item.series.id === job.rollout_id);
  if (view) {
    await tried(() => view.series.refresh());
    if (page.columns !== main().columns.size) buildCharts();
    spread();
    if (job.kind === "saliency" && view === page.views[0]) {
      await tried(() => explanations.load(view.series));
      explanations.chosen = explanations.list.at(-1) ?? null;
      explanations.show();
    }
    await goTo(page.step);
  }
  if (job.kind === "video" && job.status === "done") {
    const link = text("a", `Download ${job.result.name}`);
    link.href = exportUrl(job.rollout_id, job.result.name);
    link.download = job.result.name;
    $("exported").replaceChildren(link);
  }
  return undefined;
}

let refreshed = 0;
async function jobRuns(job) {
  const now = performance.now();
  const view = page.views.find((item) => item.series.id === job.rollout_id);
  if (job.kind !== "rollout" || !view || now - refreshed < 200) return;
  refreshed = now;
  const first = view.series.steps === 0;
  await tried(() => view.series.refresh());
  if (view !== page.views[0]) return;
  if (page.columns !== view.series.columns.size) buildCharts();
  spread();
  if (first) goTo(0);
  else drawCharts();
}

async function rollOut(agent, seed, beside) {
  const body = { step_count: Number($("step-count").value), agent };
  if (seed !== null) body.seed = seed;
  const answer = await postJson("/api/rollouts", body);
  await openRollout(answer.rollout_id, beside);
}

$("method").addEventListener("change", () => {
  page.touched = true;
});
$("rollout-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const seed = $("seed").value === "" ? null : Number($("seed").value);
  tried(() => rollOut(Number($("agent").value || 0), seed, false));
});
$("compare").addEventListener("click", () => tried(async () => {
  const seed = $("seed").value === "" ? Math.floor(Math.random() * 1e6) : Number($("seed").value);
  $("seed").value = seed;
  const count = page.profile.agents.length;
  for (let agent = 0; agent < Math.min(4, count); agent++) await rollOut(agent, seed, agent > 0);
}));
$("explain-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!main()) return say("there is no rollout to explain: roll out some steps first");
  return tried(() => postJson(main().path("/saliency"), {
    from_step: Number($("explain-from").value), to_step: Number($("explain-to").value),
    method: $("method").value, output: $("output").value, reach: $("reach").value,
    checks: $("checks").checked,
  }));
});
$("search-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!main()) return say("there is no rollout to search: roll out some steps first");
  return tried(async () => {
    const answer = await getJson(main().path(`/search?where=${encodeURIComponent($("where").value)}&most=200`));
    const list = document.createElement("ol");
    for (const step of answer.steps) {
      const go = text("button", String(step));
      go.type = "button";
      go.setAttribute("aria-label", `Go to step ${step}`);
      go.addEventListener("click", () => goTo(step));
      const item = document.createElement("li");
      item.append(go);
      list.append(item);
    }
    $("found").replaceChildren(text("p", `${answer.count} steps`), list);
  });
});
$("export-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!main()) return say("there is no rollout to export: roll out some steps first");
  $("exported").replaceChildren(text("p", "in the making …"));
  return tried(() => postJson(main().path("/export"), {
    from_step: page.from, to_step: page.to, format: $("format").value,
    explanation: $("with-maps").checked ? explanations.chosen?.name ?? "" : "",
  }));
});
$("first").addEventListener("click", () => goTo(0));
$("back").addEventListener("click", () => goTo(page.step - 1));
$("forth").addEventListener("click", () => goTo(page.step + 1));
$("last").addEventListener("click", () => goTo(main()?.steps - 1 || 0));
$("play").addEventListener("click", () => play(!page.playing));
$("speed").addEventListener("change", () => page.playing && play(true));
let scrubbing = 0;
$("scrub").addEventListener("input", () => {
  scrubbing ||= requestAnimationFrame(() => {
    scrubbing = 0;
    goTo(Number($("scrub").value));
  });
});
$("step-number").addEventListener("change", () => goTo(Number($("step-number").value)));
for (const id of ["range-from", "range-to"]) {
  $(id).addEventListener("change", () => setRange(Number($("range-from").value), Number($("range-to").value)));
}
$("range-all").addEventListener("click", () => main() && setRange(0, main().steps - 1));
$("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  goTo(page.step);
});
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select, textarea, button, summary, a") || event.ctrlKey || event.metaKey || event.altKey) return;
  const far = event.shiftKey ? 10 : 1;
  const moves = { ArrowLeft: page.step - far, ArrowRight: page.step + far, Home: 0, End: main()?.steps - 1 };
  if (event.key in moves) goTo(moves[event.key]);
  else if (event.key === " ") play(!page.playing);
  else return;
  event.preventDefault();
});
$("conditions").append(...CONDITIONS.map((words) => Object.assign(document.createElement("option"), { value: words })));

await tried(loadProfile);
await tried(loadRollouts);
const latest = await tried(() => getJson("/api/rollouts?q=latest"));
if (latest?.rollout_id) await tried(() => openRollout(latest.rollout_id));
else showPanes($("panes"), null, actionName);
listen((news) => {
  if (news.type === "state") jobs.reset(news.jobs);
  else if (news.type === "job") jobs.hear(news);
}, (on) => {
  $("connection").textContent = on ? "connected" : "the server does not answer; trying again";
});
