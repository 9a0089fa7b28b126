// Explanations of a rollout: which there are, their maps over the picture, their checks beside them.

import { ask, getJson } from "rl/api";
import { COLOURS, short } from "rl/chart";
import { text } from "rl/panes";

const TINTS = { actor: [0, 110, 255], critic: [255, 60, 40], qfunc: [255, 60, 40] };

export class Explanations {
  constructor(place, changed) {
    this.place = place;
    this.changed = changed;
    this.list = [];
    this.maps = new Map();
    this.strength = {};
    this.chosen = null;
  }

  async load(series) {
    this.series = series;
    this.list = (await getJson(series.path("/explanations"))).explanations;
    if (!this.list.includes(this.chosen)) this.chosen = this.list.at(-1) ?? null;
    this.maps.clear();
    this.show();
  }

  // The map of a step for each target, null where none was made.
  async at(step) {
    const meta = this.chosen;
    if (!meta?.shape || step < meta.from_step || step >= meta.from_step + meta.steps) return null;
    const key = `${meta.name} ${step}`;
    if (!this.maps.has(key)) {
      const path = this.series.path(`/explanations/${encodeURIComponent(meta.name)}?step=${step}`);
      const raw = await (await ask(path)).arrayBuffer();
      const size = meta.shape.reduce((a, b) => a * b, 1);
      const names = Object.keys(meta.targets);
      this.maps.set(key, Object.fromEntries(names.map((name, i) => [name, new Float32Array(raw, 4 * size * i, size)])));
    }
    return this.maps.get(key);
  }

  // A function that paints the maps of a step over a picture, null for lists of numbers.
  overlay(maps) {
    const meta = this.chosen;
    if (!maps || meta.shape.length !== 2) return null;
    const [height, width] = meta.shape;
    return (paint, wide, high) => {
      for (const [name, map] of Object.entries(maps)) {
        const most = meta.largest[name] || 1;
        const [red, green, blue] = TINTS[name] ?? TINTS.qfunc;
        const layer = new ImageData(width, height);
        for (let i = 0; i < map.length; i++) {
          const share = Math.sqrt(Math.min(1, Math.abs(map[i]) / most)) * (this.strength[name] ?? 0.7);
          layer.data.set([red, green, blue, Math.round(255 * Math.min(1, share))], 4 * i);
        }
        const small = new OffscreenCanvas(width, height);
        small.getContext("2d").putImageData(layer, 0, 0);
        paint.imageSmoothingEnabled = width > 20;
        paint.drawImage(small, 0, 0, wide, high);
      }
    };
  }

  show() {
    this.place.replaceChildren();
    if (!this.list.length) return;
    const card = document.createElement("div");
    card.className = "card";
    const label = text("label", "Explanation ");
    const choice = document.createElement("select");
    this.list.forEach((meta, index) => {
      const option = text("option", `${meta.method}, steps ${meta.from_step}–${meta.to_step}`);
      option.value = index;
      option.selected = meta === this.chosen;
      choice.append(option);
    });
    choice.addEventListener("change", () => {
      this.chosen = this.list[Number(choice.value)];
      this.show();
      this.changed();
    });
    label.append(choice);
    card.append(label);
    const meta = this.chosen;
    for (const name of Object.keys(meta.targets)) {
      const line = text("label", `${name} intensity `);
      const slider = Object.assign(document.createElement("input"), { type: "range", min: 0, max: 1, step: 0.05, value: this.strength[name] ?? 0.7 });
      slider.addEventListener("input", () => {
        this.strength[name] = Number(slider.value);
        this.changed();
      });
      line.append(slider);
      card.append(line);
    }
    for (const words of meta.warnings ?? []) card.append(text("p", `Warning: ${words}`, "error"));
    if (meta.checks?.length) card.append(this.checks(meta));
    for (const [name, curves] of Object.entries(meta.curves ?? {})) card.append(this.curves(name, curves));
    this.numbers = document.createElement("div");
    card.append(this.numbers);
    this.place.append(card);
  }

  // The parts of a list of numbers, or objects, at a step.
  showNumbers(maps, step) {
    const meta = this.chosen;
    if (!this.numbers || !meta) return;
    this.numbers.replaceChildren();
    const objects = meta.objects?.[step];
    if (objects) {
      for (const [name, scores] of Object.entries(objects)) this.numbers.append(table(`${name}: objects`, Object.entries(scores)));
    } else if (maps && meta.shape.length === 1) {
      for (const [name, map] of Object.entries(maps)) {
        this.numbers.append(table(`${name}: parts of the observation`, [...map].map((value, i) => [`number ${i}`, value])));
      }
    }
  }

  checks(meta) {
    const details = document.createElement("details");
    const failed = meta.checks.filter((check) => check.holds === false).length;
    const passed = meta.checks.filter((check) => check.holds === true).length;
    details.append(text("summary", `Sanity checks: ${passed} hold, ${failed} fail`, failed ? "error" : "fine"));
    const made = document.createElement("table");
    for (const check of meta.checks) {
      const line = made.insertRow();
      const head = text("th", check.output ? `${check.output}: ${check.name}` : check.name);
      head.scope = "row";
      const verdict = check.holds === null ? "–" : check.holds ? "holds" : "fails";
      line.append(head, text("td", verdict, check.holds === false ? "error" : check.holds ? "fine" : ""), text("td", check.words));
    }
    details.append(made);
    return details;
  }

  curves(name, curves) {
    const details = document.createElement("details");
    details.append(text("summary", `${name}: deletion and insertion`));
    const canvas = document.createElement("canvas");
    canvas.width = 300;
    canvas.height = 130;
    canvas.setAttribute("role", "img");
    const mean = (line) => line.reduce((a, b) => a + b, 0) / line.length;
    canvas.setAttribute("aria-label", Object.entries(curves).map(([key, line]) => `${key} area ${short(mean(line))}`).join(", "));
    const paint = canvas.getContext("2d");
    const all = Object.values(curves).flat();
    const low = Math.min(0, ...all);
    const high = Math.max(1, ...all);
    Object.values(curves).forEach((line, index) => {
      paint.strokeStyle = COLOURS[index % 2];
      paint.setLineDash(index > 1 ? [4, 3] : []);
      paint.beginPath();
      line.forEach((value, i) => paint.lineTo(4 + (292 * i) / (line.length - 1), 124 - (118 * (value - low)) / (high - low)));
      paint.stroke();
    });
    details.append(canvas, text("p", "Blue: change of the output while what matters most is taken away. Orange: nearness while it is put back. Dashed: in random order.", "hint"));
    return details;
  }
}

function table(title, rows) {
  const made = document.createElement("table");
  made.append(text("caption", title));
  const most = Math.max(...rows.map(([, value]) => Math.abs(value))) || 1;
  for (const [label, value] of rows) {
    const line = made.insertRow();
    const head = text("th", label);
    head.scope = "row";
    const share = Object.assign(document.createElement("meter"), { min: 0, max: most, value: Math.abs(value) });
    share.setAttribute("aria-label", label);
    const cell = document.createElement("td");
    cell.append(share);
    line.append(head, cell, text("td", short(value), "number"));
  }
  return made;
}
