// What an agent shows of one step: a pane for each kind of output, or a line that says it is missing.

import { COLOURS, short } from "rl/chart";

const PANES = [
  ["action_probs", "Probabilities of actions", pie],
  ["action_values", "Values of actions", bars],
  ["action_value_dist", "Distribution of values", distribution],
  ["action_quantiles", "Quantiles of values", quantiles],
  ["action_means", "Gaussian policy", gaussians],
  ["action_deterministic", "Continuous action", levels],
  ["quadratic_value", "Quadratic value", quadratic],
  ["state_value", "Value of the state", number],
  ["action_value", "Value of the action", number],
  ["mellowmax_beta", "Mellowmax inverse temperature", number],
  ["state_norm", "Length of the recurrent state", number],
];

export function showPanes(place, row, name) {
  place.replaceChildren();
  if (!row) {
    place.append(text("p", "No step yet: roll out some.", "soft"));
    return;
  }
  for (const [key, title, draw] of PANES) {
    if (row[key] === undefined || row[key] === null) continue;
    const card = document.createElement("div");
    card.className = "card";
    card.append(text("h3", title));
    place.append(card); // canvases take its width and colour
    try {
      draw(card, row[key], row, name);
    } catch (error) {
      card.append(text("p", `cannot be drawn: ${error.message}`, "error"));
    }
  }
  if (!place.children.length) {
    place.append(text("p", "The agent shows nothing of its own here: explain(observation) gives no "
      + "key of the log, such as action_probs, action_values or state_value.", "soft"));
  }
}

function canvas(card, height, label) {
  const made = document.createElement("canvas");
  made.setAttribute("role", "img");
  made.setAttribute("aria-label", label);
  made.style.height = `${height}px`;
  card.append(made);
  const width = made.clientWidth || 300;
  const scale = devicePixelRatio || 1;
  made.width = Math.round(width * scale);
  made.height = Math.round(height * scale);
  const paint = made.getContext("2d");
  paint.scale(scale, scale);
  const style = getComputedStyle(card);
  paint.font = `12px ${style.fontFamily}`;
  paint.fillStyle = style.color;
  return { paint, width, ink: style.color };
}

function table(card, rows) {
  const made = document.createElement("table");
  rows.forEach(([label, value, index, bold]) => {
    const line = made.insertRow();
    const dot = document.createElement("span");
    dot.className = "dot";
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = label;
    if (index !== undefined) head.style.borderLeft = `6px solid ${COLOURS[index % COLOURS.length]}`;
    head.style.paddingLeft = "0.4rem";
    head.style.fontWeight = bold ? "700" : "400";
    const cell = document.createElement("td");
    cell.className = "number";
    cell.textContent = value;
    line.append(head, cell);
  });
  card.append(made);
}

function pie(card, shares, row, name) {
  shares = shares.map(Number);
  const label = shares.map((share, i) => `${name(i)} ${(100 * share).toFixed(1)} %`).join(", ");
  const { paint, width } = canvas(card, 120, label);
  let angle = -Math.PI / 2;
  shares.forEach((share, index) => {
    const next = angle + 2 * Math.PI * Math.max(0, share);
    paint.beginPath();
    paint.moveTo(width / 2, 60);
    paint.arc(width / 2, 60, 56, angle, next);
    paint.fillStyle = COLOURS[index % COLOURS.length];
    paint.fill();
    angle = next;
  });
  table(card, shares.map((share, i) => [name(i), `${(100 * share).toFixed(1)} %`, i, i === row.action]));
}

function bars(card, values, row, name) {
  values = values.map(Number);
  const label = values.map((value, i) => `${name(i)} ${short(value)}`).join(", ");
  const { paint, width, ink } = canvas(card, 18 * values.length + 6, label);
  const low = Math.min(0, ...values);
  const high = Math.max(0, ...values, low + 1e-9);
  const x = (value) => 4 + ((value - low) / (high - low)) * (width - 8);
  values.forEach((value, index) => {
    paint.fillStyle = COLOURS[index % COLOURS.length];
    paint.fillRect(Math.min(x(0), x(value)), 18 * index + 3, Math.max(1, Math.abs(x(value) - x(0))), 12);
  });
  paint.fillStyle = ink;
  paint.fillRect(x(0), 0, 1, 18 * values.length + 6);
  table(card, values.map((value, i) => [name(i), short(value), i, i === row.action]));
}

function curves(card, height, points, label, step = false) {
  const { paint, width, ink } = canvas(card, height, label);
  const xs = points.flatMap((line) => line.map((point) => point[0]));
  const ys = points.flatMap((line) => line.map((point) => point[1]));
  const low = Math.min(...xs);
  const high = Math.max(...xs);
  const top = Math.max(...ys) || 1;
  const x = (value) => 4 + ((value - low) / (high - low || 1)) * (width - 8);
  const y = (value) => height - 18 - (value / top) * (height - 24);
  points.forEach((line, index) => {
    paint.strokeStyle = COLOURS[index % COLOURS.length];
    paint.lineWidth = 1.6;
    paint.beginPath();
    line.forEach(([a, b], i) => (i ? paint.lineTo(x(a), y(b)) : paint.moveTo(x(a), y(b))));
    paint.stroke();
  });
  paint.fillStyle = ink;
  paint.textAlign = "left";
  paint.fillText(short(low), 4, height - 4);
  paint.textAlign = "right";
  paint.fillText(short(high), width - 4, height - 4);
  return { paint, x, y };
}

function distribution(card, rows, row, name) {
  const atoms = row.z_values?.map(Number) ?? rows.map((_, i) => i);
  const count = rows[0].length;
  const lines = [];
  for (let action = 0; action < count; action++) {
    lines.push(rows.map((chances, atom) => [atoms[atom], Number(chances[action])]));
  }
  const means = lines.map((line) => line.reduce((sum, [z, p]) => sum + z * p, 0));
  curves(card, 140, lines, `value distributions with means ${means.map((value) => short(value)).join(", ")}`);
  table(card, means.map((mean, i) => [name(i), `mean ${short(mean)}`, i, i === row.action]));
}

function quantiles(card, rows, row, name) {
  const count = rows[0].length;
  const lines = [];
  for (let action = 0; action < count; action++) {
    const sorted = rows.map((values) => Number(values[action])).sort((a, b) => a - b);
    lines.push(sorted.map((value, i) => [value, (i + 0.5) / sorted.length]));
  }
  const medians = lines.map((line) => line[Math.floor(line.length / 2)][0]);
  curves(card, 140, lines, `cumulative distributions with medians ${medians.map((value) => short(value)).join(", ")}`);
  table(card, medians.map((value, i) => [name(i), `median ${short(value)}`, i, i === row.action]));
}

function gaussians(card, means, row) {
  const spreads = (row.action_vars ?? means.map(() => 0)).map((value) => Math.sqrt(Math.max(Number(value), 0)));
  if (spreads.some((spread) => spread > 0)) {
    const lines = means.map((mean, index) => {
      const spread = spreads[index] || 1e-3;
      return Array.from({ length: 81 }, (_, i) => {
        const place = (i - 40) / 10;
        return [Number(mean) + place * spread, Math.exp(-0.5 * place * place) / spread];
      });
    });
    curves(card, 130, lines, `densities around ${means.map((value) => short(value)).join(", ")}`);
  } else {
    card.append(text("p", "no action_vars: only the means are known", "soft"));
  }
  const taken = Array.isArray(row.action) ? row.action : [row.action];
  table(card, means.map((mean, i) => {
    const took = taken[i] === undefined ? "" : `, took ${short(Number(taken[i]))}`;
    return [`part ${i}`, `${short(Number(mean))} ± ${short(spreads[i])}${took}`, i];
  }));
}

function levels(card, values) {
  table(card, values.map((value, i) => [`part ${i}`, short(Number(value)), i]));
}

function quadratic(card, value) {
  table(card, [["value at its best", short(Number(value.value))], ...(value.mean ?? []).map((m, i) => [`best part ${i}`, short(Number(m)), i])]);
}

function number(card, value) {
  card.append(text("p", short(Number(value))));
}

export function text(tag, words, kind = "") {
  const made = document.createElement(tag);
  made.textContent = words;
  if (kind) made.className = kind;
  return made;
}
